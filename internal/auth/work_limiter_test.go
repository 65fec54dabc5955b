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

// TestHashLimiter checks the queue: a caller that finds it full is refused at once, a caller that waits too long is refused in time, a
// disconnecting caller makes room, and the others are served in order.
func TestHashLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fake clock
		limiter := auth.NewHashLimiter(1)
		release, err := limiter.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		type turn struct {
			number int
			err    error
			waited time.Duration
		}
		turns := make(chan turn, 2*auth.QueuePerSlot)
		ctx, cancelCaller := context.WithCancel(t.Context())
		began := time.Now()
		wait := func(ctx context.Context, number int, takes time.Duration) {
			go func() {
				release, err := limiter.Acquire(ctx)
				turns <- turn{number, err, time.Since(began)}
				if err == nil {
					time.Sleep(takes)
					release()
				}
			}()
			synctest.Wait()
		}
		wait(t.Context(), 0, 10*time.Second) // longer than the queue timeout
		wait(ctx, 1, 0)
		for i := range auth.QueuePerSlot - 2 {
			wait(t.Context(), 2+i, 0)
		}
		_, err = limiter.Acquire(t.Context())
		wantOverloaded(t, "one too many", err)
		if time.Since(began) != 0 || limiter.Waiting() != auth.QueuePerSlot {
			t.Errorf("after %v %d wait", time.Since(began), limiter.Waiting())
		}
		cancelCaller()
		if gone := <-turns; gone.number != 1 || !errors.Is(gone.err, context.Canceled) || gone.waited != 0 {
			t.Errorf("the canceled caller: %+v", gone)
		}
		wait(t.Context(), 1000, 0)
		release()
		if first := <-turns; first.number != 0 || first.err != nil {
			t.Errorf("first is %+v", first)
		}
		for range auth.QueuePerSlot - 1 {
			late := <-turns
			wantOverloaded(t, "too late", late.err)
			if late.waited != auth.QueueTimeout {
				t.Errorf("%d was refused after %v", late.number, late.waited)
			}
		}
		if limiter.Waiting() != 0 {
			t.Errorf("%d still wait", limiter.Waiting())
		}
		time.Sleep(time.Minute) // until the first has released its slot
		if release, err = limiter.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		release()
	})
}

// TestCanceledCallersTakeNoSlot checks that a caller that disconnected or waited too long never takes a slot, even if one is free, and that
// nothing is hashed or counted for it.
func TestCanceledCallersTakeNoSlot(t *testing.T) {
	limiter := auth.NewHashLimiter(1)
	gone, cancelCaller := context.WithCancel(t.Context())
	cancelCaller()
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for range 100 { // with a free slot and a done context, select picks either
		if _, err := limiter.Acquire(gone); !errors.Is(err, context.Canceled) {
			t.Fatalf("the canceled caller: %v", err)
		}
		_, err := limiter.Acquire(late)
		wantOverloaded(t, "too late", err)
	}
	release, err := limiter.Acquire(t.Context()) // no slot was kept
	if err != nil {
		t.Fatal(err)
	}
	release()

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

// TestOverloaded checks that every operation that hashes a password uses the queue, and that an overload refusal does not count as a failure.
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
	release := e.HoldHashSlots()
	proof := auth.ProofBody{Password: validate.Of(vigiltest.Password), TOTPCode: validate.Of("123456")}
	for name, try := range map[string]func(ctx context.Context) error{
		"login": func(ctx context.Context) error {
			_, err := e.Login(ctx, app, credentials(user.Email(), vigiltest.Password), origin, clock)
			return err
		},
		"password change": func(ctx context.Context) error {
			return e.ChangePassword(ctx, app, caller, passwordBody(vigiltest.Password, "Next-Lantern-41"), origin, clock)
		},
		"reset": func(ctx context.Context) error {
			return e.ConfirmReset(ctx, app, auth.ResetBody{
				Token: validate.Of(token), NewPassword: validate.Of("Next-Lantern-41"), NewPasswordConfirm: validate.Of("Next-Lantern-41"),
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
	release()
	login(t, e, app, user, clock)
}
