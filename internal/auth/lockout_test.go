package auth_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestLockoutRules(t *testing.T) {
	var f collections.LoginFailure
	for n := 1; n <= 5; n++ {
		if auth.IsLocked(f, clock) {
			t.Fatalf("locked after %d failures", n-1)
		}
		f = auth.CountFailure(f, clock)
	}
	until := clock.Add(30 * time.Minute)
	if !f.LockedUntil.Equal(until) || !auth.IsLocked(f, clock) || !auth.IsLocked(f, until.Add(-1)) || auth.IsLocked(f, until) {
		t.Errorf("the fifth failure gives %+v", f)
	}
	later := clock.Add(20 * time.Minute)
	if g := auth.ExtendLock(f, later); !g.LockedUntil.Equal(later.Add(30*time.Minute)) || g.Failures != 5 {
		t.Errorf("an attempt while locked gives %+v", g)
	}
	if g := auth.CountFailure(f, until); g.Failures != 1 || auth.IsLocked(g, until) {
		t.Errorf("the first failure after the lock gives %+v", g)
	}
}

// TestUnknownAddressLooksLikeAKnownOne checks that an address with an account and one without get the same responses, attempt by attempt.
func TestUnknownAddressLooksLikeAKnownOne(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	known := vigiltest.User(t, app, authz.Nurse)
	script := func(email string) (codes []string) {
		for n, after := range []time.Duration{0, 1, 2, 3, 4, 5, 6 * time.Minute, 35 * time.Minute, 65 * time.Minute, 66 * time.Minute} {
			_, err := e.Login(t.Context(), app, credentials(email, "wrong"), origin, clock.Add(after))
			var f *fault.Error
			if !errors.As(err, &f) {
				t.Fatalf("attempt %d: %v", n, err)
			}
			codes = append(codes, fmt.Sprint(f.Kind, f.Code, f.Detail, f.Fields, f.Extra, f.RetryAfter))
		}
		return codes
	}
	a, b := script(known.Email()), script("nobody@vigil.test")
	for n := range a {
		if a[n] != b[n] {
			t.Errorf("attempt %d: a known address gets %q, an unknown one %q", n, a[n], b[n])
		}
	}
	want := "[auth.login_failed auth.login_failed auth.login_failed auth.login_failed auth.login_failed auth.lockout " +
		"auth.login_failed auth.login_failed auth.login_failed auth.login_failed auth.login_failed]"
	all := events(t, app)
	if got := fmt.Sprint(all[:len(all)/2]); got != want || fmt.Sprint(all[len(all)/2:]) != want {
		t.Errorf("audited %v", all)
	}
	rows, err := collections.AuditRows(app, "", "~", 100)
	if err != nil {
		t.Fatal(err)
	}
	for n, row := range rows {
		isKnown := n < len(rows)/2
		if row.ActorEmail != "" || isKnown != (row.ResourceType == "User") || !isKnown && row.ResourceID != vigiltest.Sealer().LoginKey("nobody@vigil.test") {
			t.Errorf("row %d names %s %s, %s", n, row.ResourceType, row.ResourceID, row.ActorEmail)
		}
	}
}

func TestLock(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Nurse)
	right, wrong := credentials(user.Email(), vigiltest.Password), credentials(user.Email(), "wrong")
	try := func(body auth.LoginBody, after time.Duration) error {
		_, err := e.Login(t.Context(), app, body, origin, clock.Add(after))
		return err
	}
	for n := range 4 {
		wantCode(t, fmt.Sprint("failure ", n+1), try(wrong, 0), "authentication_failed")
	}
	wantCode(t, "success starts the count over", try(right, 0), "")
	for n := range 5 {
		wantCode(t, fmt.Sprint("failure ", n+1), try(wrong, 0), "authentication_failed")
	}
	err := try(right, 10*time.Minute)
	wantCode(t, "right password while locked", err, "account_locked")
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatal(err)
	}
	if f.Kind != fault.Locked || f.Extra["locked_until"] != "2026-01-15T14:25:00Z" || f.RetryAfter != 30*time.Minute {
		t.Errorf("the lock has %v, %v, %v", f.Kind, f.Extra, f.RetryAfter)
	}
	wantCode(t, "the timer was reset", try(right, 39*time.Minute), "account_locked")
	wantCode(t, "thirty quiet minutes later", try(wrong, 69*time.Minute), "authentication_failed")
	wantCode(t, "the count started over", try(right, 69*time.Minute), "")
	if left := vigiltest.RowCounts(t, app)[collections.LoginFailures]; left != 0 {
		t.Errorf("%d rows of failures are left", left)
	}
}

// TestConcurrentFailuresAreAllCounted: of twenty concurrent wrong attempts exactly five count as failures; the others are refused by the
// lockout.
func TestConcurrentFailuresAreAllCounted(t *testing.T) {
	for _, email := range []string{"known", "nobody@vigil.test"} {
		app, e := vigiltest.NewApp(t), newEngine().WithoutHashPause()
		if email == "known" {
			email = vigiltest.User(t, app, authz.Nurse).Email()
		}
		codes := map[string]int{}
		var lock sync.Mutex
		var attempts sync.WaitGroup
		for range 20 {
			attempts.Go(func() {
				_, err := e.Login(t.Context(), app, credentials(email, "wrong"), origin, clock)
				lock.Lock()
				defer lock.Unlock()
				codes[code(err)]++
			})
		}
		attempts.Wait()
		if codes["authentication_failed"] != 5 || codes["account_locked"] != 15 {
			t.Errorf("%s: codes %v", email, codes)
		}
		if f := failures(t, app, email); f.Failures != 5 || !auth.IsLocked(f, clock) {
			t.Errorf("%s: stored %+v", email, f)
		}
	}
}

func failures(t *testing.T, app core.App, email string) (f collections.LoginFailure) {
	t.Helper()
	err := app.RunInTransaction(func(tx core.App) (err error) {
		f, err = collections.LockLoginFailure(tx, vigiltest.Sealer().LoginKey(email))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}
