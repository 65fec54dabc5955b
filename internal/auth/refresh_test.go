package auth_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestRefreshRotates(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Provider)
	first := login(t, e, app, user, clock)
	if len(first.Refresh) != 46 || !strings.HasPrefix(first.Refresh, "rt_") {
		t.Errorf("refresh token looks like %q", first.Refresh)
	}
	second, err := refresh(e, app, first.Refresh, clock.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if second.Refresh == first.Refresh || second.Access == first.Access || second.RefreshExpiresIn != 24*time.Hour {
		t.Error("nothing was renewed")
	}
	if _, err := e.Authenticate(app, second.Access, clock.Add(time.Hour+14*time.Minute)); err != nil {
		t.Errorf("the new access token: %v", err)
	}
	if _, err := refresh(e, app, second.Refresh, clock.Add(25*time.Hour-1)); err != nil {
		t.Errorf("the new refresh token in its last moment: %v", err)
	}
	if got, want := fmt.Sprint(events(t, app)), "[auth.login auth.refresh auth.refresh]"; got != want {
		t.Errorf("audited %s", got)
	}
}

func TestRefreshReuseEndsTheFamily(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Provider)
	other := login(t, e, app, user, clock)
	first := login(t, e, app, user, clock)
	second, err := refresh(e, app, first.Refresh, clock)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = refresh(e, app, first.Refresh, clock.Add(48*time.Hour)) // long expired, and still a theft
		wantCode(t, "reuse", err, "token_reused")
	}
	_, err = refresh(e, app, second.Refresh, clock)
	wantCode(t, "the newest of the family", err, "token_revoked")
	_, err = refresh(e, app, other.Refresh, clock)
	wantCode(t, "another family", err, "")
	if got := events(t, app); !slices.Contains(got, "auth.refresh_reuse") {
		t.Errorf("audited %v", got)
	}
}

// TestConcurrentRefreshHasOneWinner: of concurrent rotations of one token, one succeeds and one counts as its repetition; more of them end the
// family.
func TestConcurrentRefreshHasOneWinner(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	session := login(t, e, app, vigiltest.User(t, app, authz.Provider), clock)
	var lock sync.Mutex
	codes := map[string]int{}
	var winners []auth.Session
	var attempts sync.WaitGroup
	for range 10 {
		attempts.Go(func() {
			next, err := refresh(e, app, session.Refresh, clock)
			lock.Lock()
			defer lock.Unlock()
			codes[code(err)]++
			if err == nil {
				winners = append(winners, next)
			}
		})
	}
	attempts.Wait()
	if codes[""] != 2 || codes["token_reused"] != 8 {
		t.Errorf("codes %v", codes)
	}
	for _, winner := range winners {
		if _, err := refresh(e, app, winner.Refresh, clock); code(err) != "token_revoked" && code(err) != "token_reused" {
			t.Errorf("a winner's token: %v", err)
		}
	}
	if n := vigiltest.RowCounts(t, app)[collections.Mails]; n != 1 {
		t.Errorf("%d mails", n)
	}
}

func TestRefreshRefusals(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user := vigiltest.User(t, app, authz.Provider)
	session := login(t, e, app, user, clock)
	for name, test := range map[string]struct {
		token string
		after time.Duration
		want  string
	}{
		"missing":      {"", 0, "validation_error"},
		"too long":     {strings.Repeat("x", 513), 0, "validation_error"},
		"malformed":    {"rt_abc", 0, "token_invalid"},
		"another case": {strings.ToUpper(session.Refresh), 0, "token_invalid"},
		"line break":   {session.Refresh + "\n", 0, "token_invalid"},
		"unknown":      {"rt_" + strings.Repeat("A", 43), 0, "token_invalid"},
		"access token": {session.Access, 0, "token_invalid"},
		"expired":      {session.Refresh, 24 * time.Hour, "token_invalid"},
	} {
		_, err := refresh(e, app, test.token, clock.Add(test.after))
		wantCode(t, name, err, test.want)
	}
	user.Set("is_active", false)
	if err := app.Save(user); err != nil {
		t.Fatal(err)
	}
	_, err := refresh(e, app, session.Refresh, clock)
	wantCode(t, "inactive user", err, "token_invalid")
}

func TestRefreshFamilyEnds(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	session := login(t, e, app, vigiltest.User(t, app, authz.Provider), clock)
	now := clock
	for range 8 {
		now = now.Add(20 * time.Hour)
		next, err := refresh(e, app, session.Refresh, now)
		if err != nil {
			t.Fatalf("after %v: %v", now.Sub(clock), err)
		}
		session = next
	}
	if session.RefreshExpiresIn != 8*time.Hour { // 160 of 168 hours are gone
		t.Errorf("the last token lasts %v", session.RefreshExpiresIn)
	}
	_, err := refresh(e, app, session.Refresh, clock.Add(7*24*time.Hour))
	wantCode(t, "after seven days", err, "token_invalid")
}

func TestIdleLogout(t *testing.T) {
	app := vigiltest.NewApp(t)
	e := auth.New(vigiltest.Sealer(), auth.Options{RefreshFamilyLife: 7 * 24 * time.Hour, IdleLogout: 10 * time.Minute})
	user := vigiltest.User(t, app, authz.Provider)
	busy, idle := login(t, e, app, user, clock), login(t, e, app, user, clock)
	for _, after := range []time.Duration{time.Minute, 8 * time.Minute, 14 * time.Minute} {
		if _, err := e.Authenticate(app, busy.Access, clock.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	now := clock.Add(20 * time.Minute)
	for range 2 {
		_, err := refresh(e, app, idle.Refresh, now)
		wantCode(t, "idle", err, "token_expired")
	}
	_, err := refresh(e, app, busy.Refresh, now)
	wantCode(t, "busy", err, "")
}

func TestLogout(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	user, stranger := vigiltest.User(t, app, authz.Provider), vigiltest.User(t, app, authz.Nurse)
	body := credentials(user.Email(), vigiltest.Password)
	body.DeviceID = validate.Of("phone-1")
	phone, err := e.Login(t.Context(), app, body, origin, clock)
	if err != nil {
		t.Fatal(err)
	}
	desk := login(t, e, app, user, clock)
	for i, device := range []string{"phone-1", "tablet", "desk"} {
		pushToken(t, app, user, device, i)
	}
	pushToken(t, app, stranger, "phone-1", 9)
	me, them := callerOf(t, e, app, phone.Access), callerOf(t, e, app, login(t, e, app, stranger, clock).Access)
	for _, test := range []struct {
		name   string
		caller auth.Caller
		body   auth.LogoutBody
		silent string
	}{
		{"unknown", me, logoutBody("rt_"+strings.Repeat("A", 43), ""), ""},
		{"malformed", me, logoutBody("x", ""), ""},
		{"a stranger's", them, logoutBody(phone.Refresh, ""), ""},
		{"own", me, logoutBody(phone.Refresh, ""), "[phone-1]"},
		{"own again", me, logoutBody(phone.Refresh, ""), "[phone-1]"},
		{"another device", me, logoutBody("x", "tablet"), "[phone-1 tablet]"},
	} {
		err := e.Logout(app, test.caller, test.body, origin, clock)
		if got := inactiveDevices(t, app, user); err != nil || got != cmp.Or(test.silent, "[]") {
			t.Errorf("%s: silent %s, %v", test.name, got, err)
		}
	}
	err = e.Logout(app, me, auth.LogoutBody{}, origin, clock)
	wantCode(t, "missing", err, "validation_error")
	_, err = refresh(e, app, phone.Refresh, clock)
	wantCode(t, "after logout", err, "token_revoked")
	if _, err := e.Authenticate(app, phone.Access, clock); err != nil {
		t.Errorf("the access token lasts until it expires: %v", err)
	}
	desk, err = refresh(e, app, desk.Refresh, clock)
	wantCode(t, "another sign-in", err, "")
	if err := e.LogoutAll(t.Context(), app, me, auth.PasswordProof{Password: validate.Of(vigiltest.Password)}, origin, clock); err != nil {
		t.Fatal(err)
	}
	_, err = refresh(e, app, desk.Refresh, clock)
	wantCode(t, "after logout everywhere", err, "token_revoked")
	if got := inactiveDevices(t, app, user); got != "[desk phone-1 tablet]" {
		t.Errorf("silent after logout everywhere: %s", got)
	}
	if got := inactiveDevices(t, app, stranger); got != "[]" {
		t.Errorf("a stranger's device is silent: %s", got)
	}
	want := "[auth.login auth.login auth.login auth.logout auth.refresh auth.logout]"
	if got := fmt.Sprint(events(t, app)); got != want {
		t.Errorf("audited %s", got)
	}
}

func TestRevokeAllSparesOthers(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine()
	one, two := vigiltest.User(t, app, authz.Provider), vigiltest.User(t, app, authz.Nurse)
	a, b, c := login(t, e, app, one, clock), login(t, e, app, one, clock), login(t, e, app, two, clock)
	if n, err := auth.RevokeAll(app, one.Id, "password change", clock); n != 2 || err != nil {
		t.Errorf("revoked %d, %v", n, err)
	}
	for token, want := range map[string]string{a.Refresh: "token_revoked", b.Refresh: "token_revoked", c.Refresh: ""} {
		_, err := refresh(e, app, token, clock)
		wantCode(t, "refresh", err, want)
	}
	if n := vigiltest.RowCounts(t, app)[collections.RefreshTokens]; n != 4 {
		t.Errorf("%d tokens are kept, want 4", n)
	}
}

func logoutBody(refresh, device string) auth.LogoutBody {
	body := auth.LogoutBody{Refresh: validate.Of(refresh)}
	if device != "" {
		body.DeviceID = validate.Of(device)
	}
	return body
}

func pushToken(t *testing.T, app core.App, user *collections.User, device string, n int) {
	t.Helper()
	record, err := collections.NewRecord(app, collections.PushTokens)
	if err != nil {
		t.Fatal(err)
	}
	record.Load(map[string]any{"user": user.Id, "type": "web_push", "device_id": device, "platform": "web", "active": true, "token_hash": fmt.Sprint(n)})
	if err := app.Save(record); err != nil {
		t.Fatal(err)
	}
}

// inactiveDevices lists the devices of a user with inactive push tokens.
func inactiveDevices(t *testing.T, app core.App, user *collections.User) string {
	t.Helper()
	var devices []string
	err := app.DB().NewQuery("SELECT device_id FROM push_tokens WHERE user = {:user} AND active = FALSE ORDER BY device_id").
		Bind(dbx.Params{"user": user.Id}).Column(&devices)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(devices)
}
