package auth_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func passwordProof(password string) auth.PasswordProof {
	return auth.PasswordProof{Password: validate.Of(password)}
}

// TestFreshSignIn: a session is fresh for the configured time after its sign-in, regardless of rotations. A revoked session and a token without
// one are not fresh.
func TestFreshSignIn(t *testing.T) {
	for _, life := range []time.Duration{0, time.Minute, 10 * time.Minute} {
		app, e := vigiltest.NewApp(t), newEngine(freshFor(life))
		user := vigiltest.User(t, app, authz.Nurse)
		caller, session := signedIn(t, e, app, user, clock)
		try := func(c auth.Caller, body auth.PasswordProof, at time.Time) string {
			_, err := e.SetUpTwoFactor(t.Context(), app, c, body, origin, at)
			return code(err)
		}
		within, after := "", "reauthentication_required"
		if life == 0 { // reauthentication is always required
			within = after
		}
		if got := try(caller, auth.PasswordProof{}, clock); got != within {
			t.Errorf("%v: at once %q", life, got)
		}
		if got := try(caller, auth.PasswordProof{}, clock.Add(life)); got != within {
			t.Errorf("%v: in the last moment %q", life, got)
		}
		later := clock.Add(life + time.Second)
		next, err := refresh(e, app, session.Refresh, later)
		if err != nil {
			t.Fatal(err)
		}
		refreshed, err := e.Authenticate(app, next.Access, later)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []auth.Caller{caller, refreshed} {
			for _, body := range []auth.PasswordProof{{}, passwordProof("")} {
				if got := try(c, body, later); got != after {
					t.Errorf("%v: later %q", life, got)
				}
			}
			if got := try(c, passwordProof(vigiltest.Password), later); got != "" {
				t.Errorf("%v: later, with the password %q", life, got)
			}
		}
		bare := callerOf(t, e, app, vigiltest.Token(t, user, clock))
		if got := try(bare, auth.PasswordProof{}, clock); got != after {
			t.Errorf("%v: a token of no sign-in %q", life, got)
		}
		if err := e.LogoutAll(t.Context(), app, caller, passwordProof(vigiltest.Password), origin, clock); err != nil {
			t.Fatal(err)
		}
		if got := try(caller, auth.PasswordProof{}, clock); got != after {
			t.Errorf("%v: signed out %q", life, got)
		}
	}
}

// TestProofsCountLikeSignIns: reauthentication cannot be guessed more easily than a sign-in: both count failures, and a lockout of either
// applies to both.
func TestProofsCountLikeSignIns(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(freshFor(0))
	user := vigiltest.User(t, app, authz.Nurse)
	caller, _ := signedIn(t, e, app, user, clock)
	at := clock.Add(time.Minute)
	try := func(password string) string {
		_, err := e.SetUpTwoFactor(t.Context(), app, caller, passwordProof(password), origin, at)
		return code(err)
	}
	for _, step := range []struct{ password, want string }{
		{"wrong", "authentication_failed"},
		{"wrong", "authentication_failed"},
		{vigiltest.Password, ""}, // does not reset the count
		{"wrong", "authentication_failed"},
		{"wrong", "authentication_failed"},
		{"wrong", "authentication_failed"},
		{vigiltest.Password, "account_locked"},
		{"wrong", "account_locked"},
	} {
		if got := try(step.password); got != step.want {
			t.Errorf("%s: %s, want %s", step.password, got, step.want)
		}
	}
	if got := loginCode(t, e, app, user, vigiltest.Password, "", at); got != "account_locked" {
		t.Errorf("the sign-in: %s", got)
	}
	at = at.Add(30 * time.Minute)
	if got := try(vigiltest.Password); got != "" {
		t.Errorf("after the lock: %s", got)
	}
	for range 5 {
		loginCode(t, e, app, user, "wrong", "", at)
	}
	if got := try(vigiltest.Password); got != "account_locked" {
		t.Errorf("locked at the sign-in: %s", got)
	}
}

// TestProofOfInactiveAccount checks that the password of a deactivated account is not accepted.
func TestProofOfInactiveAccount(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(freshFor(0))
	user := vigiltest.User(t, app, authz.Nurse)
	caller, _ := signedIn(t, e, app, user, clock)
	if _, err := e.Deactivate(app, administrator(t, e, app), user.Id, origin, clock); err != nil {
		t.Fatal(err)
	}
	_, err := e.SetUpTwoFactor(t.Context(), app, caller, passwordProof(vigiltest.Password), origin, clock)
	wantCode(t, "closed", err, "token_invalid")
	if secret := reloadUser(t, app, user).TOTPPending().Secret; secret != "" {
		t.Error("a set-up was begun")
	}
}
