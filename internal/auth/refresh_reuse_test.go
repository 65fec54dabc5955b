package auth_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// mailCount returns the number of queued mails.
func mailCount(t *testing.T, app core.App) int {
	t.Helper()
	return vigiltest.RowCounts(t, app)[collections.Mails]
}

// TestLostResponseIsReissued checks that a lost refresh response is answered again with new tokens, the first ones become invalid, and no one is
// notified.
func TestLostResponseIsReissued(t *testing.T) {
	for _, after := range []time.Duration{-time.Second, 0, time.Second, 30 * time.Second} {
		app, e := vigiltest.NewApp(t), newEngine()
		first := login(t, e, app, vigiltest.User(t, app, authz.Provider), clock)
		at := clock.Add(time.Hour)
		lost, err := refresh(e, app, first.Refresh, at)
		wantCode(t, "swap", err, "")
		again, err := refresh(e, app, first.Refresh, at.Add(after))
		wantCode(t, fmt.Sprint("again after ", after), err, "")
		if again.Refresh == lost.Refresh || again.Access == lost.Access {
			t.Error("the lost tokens were handed out again")
		}
		if got := fmt.Sprint(events(t, app)); got != "[auth.login auth.refresh auth.refresh]" || mailCount(t, app) != 0 {
			t.Errorf("audited %s, %d mails", got, mailCount(t, app))
		}
		_, err = e.Authenticate(app, again.Access, at.Add(time.Minute))
		wantCode(t, "the second access token", err, "")
		next, err := refresh(e, app, again.Refresh, at.Add(10*time.Minute))
		wantCode(t, "the second refresh token", err, "")
		_, err = e.Authenticate(app, next.Access, at.Add(10*time.Minute))
		wantCode(t, "and so on", err, "")
	}
}

// TestGraceAppliesToEveryRotation checks that each rotation of a session can be repeated once.
func TestGraceAppliesToEveryRotation(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	session := login(t, e, app, vigiltest.User(t, app, authz.Provider), clock)
	at := clock
	for range 5 {
		at = at.Add(10 * time.Minute)
		_, err := refresh(e, app, session.Refresh, at)
		wantCode(t, "swap", err, "")
		again, err := refresh(e, app, session.Refresh, at.Add(20*time.Second))
		wantCode(t, "again", err, "")
		session = again
	}
	if mailCount(t, app) != 0 {
		t.Error("the owner was notified")
	}
}

// TestReuseGetsNoGrace checks that no grace applies if anything indicates two holders.
func TestReuseGetsNoGrace(t *testing.T) {
	type scene struct {
		t            *testing.T
		app          core.App
		e            *auth.Engine
		user         *collections.User
		first, child auth.Session
		at           time.Time
	}
	for name, test := range map[string]struct {
		before func(s scene)
		after  time.Duration
		want   string
	}{
		"later than 30 s":       {func(scene) {}, 30*time.Second + time.Millisecond, "token_reused"},
		"days later":            {func(scene) {}, 48 * time.Hour, "token_reused"},
		"the child was swapped": {func(s scene) { _, _ = refresh(s.e, s.app, s.child.Refresh, s.at) }, time.Second, "token_reused"},
		"the child's access token was used": {func(s scene) {
			_, err := s.e.Authenticate(s.app, s.child.Access, s.at.Add(900*time.Millisecond))
			wantCode(s.t, "use", err, "")
		}, time.Second, "token_reused"},
		"a stream was opened with it": {func(s scene) {
			_, err := s.e.AuthenticatePassively(s.app, s.child.Access, s.at)
			wantCode(s.t, "use", err, "")
		}, time.Second, "token_reused"},
		"used, and the service restarted": {func(s scene) {
			_, err := newEngine().Authenticate(s.app, s.child.Access, s.at)
			wantCode(s.t, "use", err, "")
		}, time.Second, "token_reused"},
		"forgiven before": {func(s scene) {
			_, err := refresh(s.e, s.app, s.first.Refresh, s.at)
			wantCode(s.t, "forgiven", err, "")
		}, time.Second, "token_reused"},
		"signed out": {func(s scene) {
			me := callerOf(s.t, s.e, s.app, s.first.Access)
			if err := s.e.Logout(s.app, me, logoutBody(s.first.Refresh, ""), origin, s.at); err != nil {
				s.t.Fatal(err)
			}
		}, time.Second, "token_reused"},
		"the account is inactive": {func(s scene) {
			s.user.SetActive(false)
			if err := s.app.Save(s.user); err != nil {
				s.t.Fatal(err)
			}
		}, time.Second, "token_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			app, e := vigiltest.NewApp(t), newEngine()
			user := vigiltest.User(t, app, authz.Provider)
			first := login(t, e, app, user, clock)
			at := clock.Add(time.Minute)
			child, err := refresh(e, app, first.Refresh, at)
			wantCode(t, "swap", err, "")
			test.before(scene{t, app, e, user, first, child, at})
			mails := mailCount(t, app)
			_, err = refresh(e, app, first.Refresh, at.Add(test.after))
			wantCode(t, "again", err, test.want)
			if test.want == "token_reused" && (mailCount(t, app) != mails+1 || !slices.Contains(events(t, app), "auth.refresh_reuse")) {
				t.Errorf("%d mails, audited %v", mailCount(t, app)-mails, events(t, app))
			}
			if valid := validTokens(t, app); test.want == "token_reused" && valid != 0 {
				t.Errorf("%d refresh tokens are good still", valid)
			}
			_, err = refresh(e, app, first.Refresh, at.Add(test.after))
			wantCode(t, "and again", err, test.want)
			if mailCount(t, app) > mails+1 {
				t.Error("notified twice about one token")
			}
		})
	}
}

// TestOldAccessTokenProvesNothing checks that using the access token from before the rotation does not confirm the response: concurrent requests
// may still use it.
func TestOldAccessTokenProvesNothing(t *testing.T) {
	app := vigiltest.NewApp(t)
	e := newEngine(func(o *auth.Options) { o.IdleLogout = time.Minute })
	first := login(t, e, app, vigiltest.User(t, app, authz.Provider), clock)
	_, err := refresh(e, app, first.Refresh, clock)
	wantCode(t, "swap", err, "")
	for range 3 {
		_, err = e.Authenticate(app, first.Access, clock.Add(time.Second))
		wantCode(t, "the old access token", err, "")
	}
	_, err = refresh(e, app, first.Refresh, clock.Add(2*time.Second))
	wantCode(t, "again", err, "")
}

// TestForkedSessionEnds checks that a thief within the grace period gets tokens, but the session ends as soon as the other holder uses theirs.
func TestForkedSessionEnds(t *testing.T) {
	for name, use := range map[string]func(e *auth.Engine, app core.App, lost auth.Session, at time.Time) error{
		"refresh token": func(e *auth.Engine, app core.App, lost auth.Session, at time.Time) error {
			_, err := refresh(e, app, lost.Refresh, at)
			return err
		},
		"access token": func(e *auth.Engine, app core.App, lost auth.Session, at time.Time) error {
			_, err := e.Authenticate(app, lost.Access, at)
			return err
		},
		"access token, after a restart": func(_ *auth.Engine, app core.App, lost auth.Session, at time.Time) error {
			_, err := newEngine().Authenticate(app, lost.Access, at)
			return err
		},
	} {
		for _, after := range []time.Duration{2 * time.Second, 5 * time.Minute, 14 * time.Minute} {
			app, e := vigiltest.NewApp(t), newEngine()
			user := vigiltest.User(t, app, authz.Provider)
			first := login(t, e, app, user, clock)
			lost, err := refresh(e, app, first.Refresh, clock)
			wantCode(t, "swap", err, "")
			thief, err := refresh(e, app, first.Refresh, clock.Add(time.Second))
			wantCode(t, "the thief", err, "")
			want := "token_revoked"
			if name == "refresh token" {
				want = "token_reused"
			}
			for range 3 {
				wantCode(t, name, use(e, app, lost, clock.Add(after)), want)
			}
			_, err = refresh(e, app, thief.Refresh, clock.Add(after))
			wantCode(t, "the thief's next", err, "token_revoked")
			if mailCount(t, app) != 1 {
				t.Errorf("%s after %v: %d mails", name, after, mailCount(t, app))
			}
		}
	}
}

func validTokens(t *testing.T, app core.App) (n int) {
	t.Helper()
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM refresh_tokens WHERE state = 'valid'").Row(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
