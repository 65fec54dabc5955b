package auth_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func wantOverloaded(t *testing.T, what string, err error) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "overloaded" || f.Kind != fault.Unavailable || f.RetryAfter < time.Second {
		t.Errorf("%s: %v", what, err)
	}
}

// The queue has an end: who comes when it is full is told at once, who waits too long in time, who hangs up makes room, and the others
// have their turn in the order in which they came.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock is not the world's
		places := auth.NewPlaces(1)
		giveBack, err := places.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		type turn struct {
			number int
			err    error
			waited time.Duration
		}
		turns := make(chan turn, 2*auth.Queue)
		ctx, hangUp := context.WithCancel(t.Context())
		began := time.Now()
		wait := func(ctx context.Context, number int, takes time.Duration) {
			go func() {
				giveBack, err := places.Take(ctx)
				turns <- turn{number, err, time.Since(began)}
				if err == nil {
					time.Sleep(takes)
					giveBack()
				}
			}()
			synctest.Wait()
		}
		wait(t.Context(), 0, 10*time.Second) // longer than anybody waits
		wait(ctx, 1, 0)
		for i := range auth.Queue - 2 {
			wait(t.Context(), 2+i, 0)
		}
		_, err = places.Take(t.Context())
		wantOverloaded(t, "one too many", err)
		if time.Since(began) != 0 || places.Waiting() != auth.Queue {
			t.Errorf("after %v %d wait", time.Since(began), places.Waiting())
		}
		hangUp()
		if gone := <-turns; gone.number != 1 || !errors.Is(gone.err, context.Canceled) || gone.waited != 0 {
			t.Errorf("who hung up: %+v", gone)
		}
		wait(t.Context(), 1000, 0)
		giveBack()
		if first := <-turns; first.number != 0 || first.err != nil {
			t.Errorf("first is %+v", first)
		}
		for range auth.Queue - 1 {
			late := <-turns
			wantOverloaded(t, "too late", late.err)
			if late.waited != auth.InGoodTime {
				t.Errorf("%d was told after %v", late.number, late.waited)
			}
		}
		if places.Waiting() != 0 {
			t.Errorf("%d still wait", places.Waiting())
		}
		time.Sleep(time.Minute) // until the first has given it back
		if giveBack, err = places.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		giveBack()
	})
}

// Whoever has hung up, or waited too long, takes no place, however many are free: nothing is hashed or counted for nobody.
func TestWhoGaveUpTakesNoPlace(t *testing.T) {
	places := auth.NewPlaces(1)
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for range 100 { // a free place and the end are two ways to go on, of which Go picks any
		if _, err := places.Take(gone); !errors.Is(err, context.Canceled) {
			t.Fatalf("who hung up: %v", err)
		}
		_, err := places.Take(late)
		wantOverloaded(t, "too late", err)
	}
	giveBack, err := places.Take(t.Context()) // they kept none
	if err != nil {
		t.Fatal(err)
	}
	giveBack()

	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse)
	before := vigiltest.RowCounts(t, app)
	for range 20 {
		if _, err := e.Login(gone, app, credentials(user.Email(), "Wrong-Password-1"), origin, clock); !errors.Is(err, context.Canceled) {
			t.Fatalf("sign-in: %v", err)
		}
	}
	if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 {
		t.Errorf("rows %v", added)
	}
}

// Whatever hashes a password waits in the same queue, and being told to come back counts as no failure.
func TestOverloaded(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse)
	caller := auth.Caller{RecordID: user.Id, ID: user.Number(), Email: user.Email(), Role: authz.Nurse}
	link, err := auth.Invite(app, auth.NewAccount{Email: "new@practice.test", FirstName: "New", LastName: "Person", Role: authz.Nurse},
		"https://vigil.example.org/reset", audit.System(), clock)
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(link, "token=")
	before := vigiltest.RowCounts(t, app)
	giveBack := e.HoldPlaces()
	proof := auth.ProofBody{Password: validate.Of(vigiltest.Password), TOTPCode: validate.Of("123456")}
	for name, try := range map[string]func(ctx context.Context) error{
		"login": func(ctx context.Context) error {
			_, err := e.Login(ctx, app, credentials(user.Email(), vigiltest.Password), origin, clock)
			return err
		},
		"password change": func(ctx context.Context) error {
			return e.ChangePassword(ctx, app, caller, passwordBody(vigiltest.Password, "Next-Password-1"), origin, clock)
		},
		"reset": func(ctx context.Context) error {
			return e.ConfirmReset(ctx, app, auth.ResetBody{
				Token: validate.Of(token), NewPassword: validate.Of("Next-Password-1"), NewPasswordConfirm: validate.Of("Next-Password-1"),
			}, origin, clock)
		},
		"second factor off": func(ctx context.Context) error { return e.DisableTwoFactor(ctx, app, caller, proof, origin, clock) },
		"backup codes": func(ctx context.Context) error {
			_, err := e.ReplaceBackupCodes(ctx, app, caller, proof, origin, clock)
			return err
		},
	} {
		ended, cancel := context.WithDeadline(t.Context(), time.Now())
		wantOverloaded(t, name, try(ended))
		cancel()
	}
	if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 {
		t.Errorf("rows %v", added)
	}
	giveBack()
	login(t, e, app, user, clock)
}
