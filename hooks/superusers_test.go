package hooks_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pquerna/otp/totp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const superusers = "/api/collections/_superusers/"

// A superuser's sign-in is audited, and locked after five failures, for existing and unknown addresses.
func TestSuperuserSignIn(t *testing.T) {
	n := newNative(t)
	root := n.superuser()
	login := func(address, password string) int {
		return n.call("POST /api/collections/_superusers/auth-with-password", "", map[string]string{"identity": address, "password": password}).Code
	}
	if got := login("root@practice.test", rootPassword); got != 200 {
		t.Fatalf("signing in answers %d", got)
	}
	for range 4 {
		login("root@practice.test", "wrong")
	}
	if got := login("root@practice.test", rootPassword); got != 200 {
		t.Errorf("after four failures %d", got)
	}
	for _, address := range []string{"root@practice.test", "nobody@practice.test"} {
		for range 5 {
			if got := login(address, "wrong"); got != 400 {
				t.Errorf("%s: a failure answers %d", address, got)
			}
		}
		if got := login(address, rootPassword); got != 423 {
			t.Errorf("%s: locked answers %d", address, got)
		}
	}
	n.now = n.now.Add(30*time.Minute + time.Second)
	if got := login("root@practice.test", rootPassword); got != 200 {
		t.Errorf("after the lock %d", got)
	}
	renewed := n.call("POST /api/collections/_superusers/auth-refresh", n.bearer(root), nil)
	if renewed.Code != 200 {
		t.Errorf("renewing answers %d", renewed.Code)
	}
	var logins, failures, locks int
	err := n.app.DB().NewQuery(`SELECT SUM(event = 'auth.login'), SUM(event = 'auth.login_failed'), SUM(event = 'auth.lockout') FROM audit_log`).
		WithContext(context.Background()).Row(&logins, &failures, &locks)
	if err != nil || logins != 3 || failures != 4+5+1+5+1 || locks != 2 {
		t.Errorf("%d sign-ins, %d failures, %d locks recorded, %v", logins, failures, locks, err)
	}
	var actor, resource string
	if err := n.app.DB().NewQuery(`SELECT actor_type || ' ' || actor_email, resource_type FROM audit_log WHERE event = 'auth.login' LIMIT 1`).Row(&actor, &resource); err != nil ||
		actor != "superuser root@practice.test" || resource != "Superuser" {
		t.Errorf("recorded %s %s, %v", actor, resource, err)
	}
}

// signIn is the first step of the dashboard's sign-in.
func (n *native) signIn(password string) *httptest.ResponseRecorder {
	n.t.Helper()
	return n.call("POST "+superusers+"auth-with-password", "", map[string]string{"identity": "root@practice.test", "password": password})
}

// member returns a text member of a response.
func member(t *testing.T, answer *httptest.ResponseRecorder, name string) string {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
		t.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	text, _ := body[name].(string)
	return text
}

// enrol sets up the superuser's authenticator app.
func (n *native) enrol() (secret string) {
	n.t.Helper()
	setup, err := n.auth.ResetSuperuserFactor(n.app, "Root@Practice.test", false, audit.System(), n.now)
	if err != nil || !strings.HasPrefix(setup.ProvisioningURI, "otpauth://totp/") {
		n.t.Fatal(err)
	}
	return setup.Secret
}

func (n *native) code(secret string) string {
	n.t.Helper()
	code, err := totp.GenerateCode(secret, n.now)
	if err != nil {
		n.t.Fatal(err)
	}
	return code
}

// As in the dashboard: the password completes the first step, the code the second, once. A wrong code counts like a wrong password.
func TestSuperuserSecondFactor(t *testing.T) {
	n := newNative(t)
	n.superuser()
	secret := n.enrol()
	described := n.call("GET "+superusers+"auth-methods", "", nil)
	if described.Code != 200 || strings.Count(described.Body.String(), `"enabled":true`) != 3 {
		t.Fatalf("the dashboard receives %s", described.Body)
	}
	first := n.signIn(rootPassword)
	half := member(t, first, "mfaId")
	if first.Code != 401 || half == "" || member(t, first, "token") != "" {
		t.Fatalf("the password alone answers %d %s", first.Code, first.Body)
	}
	if answer := n.call("GET /api/collections", half, nil); answer.Code != 401 {
		t.Errorf("half a sign-in opens the dashboard: %d", answer.Code)
	}
	announced := n.call("POST "+superusers+"request-otp", "", map[string]string{"email": "root@practice.test"})
	second := func(half, code string) *httptest.ResponseRecorder {
		return n.call("POST "+superusers+"auth-with-otp", "", map[string]string{"otpId": member(t, announced, "otpId"), "password": code, "mfaId": half})
	}
	for name, test := range map[string]struct {
		half, code string
		want       int
	}{
		"a wrong code":      {half, "000000", 400},
		"no code":           {half, "", 400},
		"an invalid half":   {"x.y.z", n.code(secret), 401},
		"no half":           {"", n.code(secret), 401},
		"a token as a half": {n.bearer(n.root()), n.code(secret), 401},
	} {
		if got := second(test.half, test.code).Code; got != test.want {
			t.Errorf("%s answers %d, want %d", name, got, test.want)
		}
	}
	whole := second(half, n.code(secret))
	token := member(t, whole, "token")
	if whole.Code != 200 || n.call("GET /api/collections", token, nil).Code != 200 {
		t.Fatalf("the code answers %d %s", whole.Code, whole.Body)
	}
	if got := second(half, n.code(secret)).Code; got != 400 {
		t.Errorf("the same code again answers %d", got)
	}
	n.now = n.now.Add(30 * time.Second)
	both := n.call("POST "+superusers+"auth-with-password", "", map[string]string{"identity": "root@practice.test", "password": rootPassword, "totp_code": n.code(secret)})
	if both.Code != 200 || member(t, both, "token") == "" {
		t.Errorf("password and code at once answer %d %s", both.Code, both.Body)
	}
	n.now = n.now.Add(5 * time.Minute)
	if got := second(half, n.code(secret)).Code; got != 401 {
		t.Errorf("an old half answers %d", got)
	}
	half = member(t, n.signIn(rootPassword), "mfaId")
	for range 5 {
		second(half, "000000")
	}
	if got := second(half, n.code(secret)).Code; got != 423 {
		t.Errorf("after five wrong codes the right one answers %d", got)
	}
	if got := n.signIn(rootPassword).Code; got != 423 {
		t.Errorf("after five wrong codes the password answers %d", got)
	}
	if err := n.auth.UnlockSuperuser(n.app, "root@practice.test", audit.System(), n.now); err != nil {
		t.Fatal(err)
	}
	if got := n.signIn(rootPassword).Code; got != 401 {
		t.Errorf("unlocked, the password answers %d", got)
	}
}

// root returns the superuser's current record.
func (n *native) root() *core.Record {
	n.t.Helper()
	record, err := n.app.FindAuthRecordByEmail(core.CollectionNameSuperusers, "root@practice.test")
	if err != nil {
		n.t.Fatal(err)
	}
	return record
}

// Of sixty concurrent guesses at most five are checked; after them even the right password is locked.
func TestConcurrentSuperuserGuesses(t *testing.T) {
	n := newNative(t)
	n.superuser()
	var guesses sync.WaitGroup
	var lock sync.Mutex
	answers := map[int]int{}
	for i := range 60 {
		guesses.Go(func() {
			answer := n.signIn("Wrong-Password-" + string(rune('A'+i%26)) + "1")
			lock.Lock()
			defer lock.Unlock()
			answers[answer.Code]++
		})
	}
	guesses.Wait()
	// Locked means that five guesses were checked. 503: too many requests are queued on this machine.
	if answers[200] > 0 || answers[400] > 5 || answers[423] > 0 && answers[400] != 5 || answers[400]+answers[423]+answers[503] != 60 {
		t.Errorf("the answers were %v", answers)
	}
	for range 5 - answers[400] {
		n.signIn("Wrong-Password-Z2")
	}
	if got := n.signIn(rootPassword).Code; got != 423 {
		t.Errorf("then the right password answers %d", got)
	}
}

// A session can be renewed for twelve hours from its sign-in, and a token is valid for one hour.
func TestSuperuserSessionEnds(t *testing.T) {
	n := newNative(t)
	n.superuser()
	token := member(t, n.signIn(rootPassword), "token")
	began := n.now
	renew := func() *httptest.ResponseRecorder { return n.call("POST "+superusers+"auth-refresh", token, nil) }
	for n.now.Before(began.Add(12*time.Hour - 50*time.Minute)) {
		n.now = n.now.Add(50 * time.Minute)
		answer := renew()
		if answer.Code != 200 {
			t.Fatalf("after %v: %d %s", n.now.Sub(began), answer.Code, answer.Body)
		}
		token = member(t, answer, "token")
	}
	n.now = began.Add(12*time.Hour - time.Second)
	if got := n.call("GET /api/collections", token, nil).Code; got != 200 {
		t.Errorf("in the last second of the session: %d", got)
	}
	n.now = began.Add(12 * time.Hour)
	if got := renew().Code; got != 401 {
		t.Errorf("after twelve hours renewing answers %d", got)
	}
	if got := n.call("GET /api/collections", token, nil).Code; got != 401 {
		t.Errorf("after twelve hours: %d", got)
	}
	fresh := member(t, n.signIn(rootPassword), "token")
	n.now = n.now.Add(time.Hour)
	if got := n.call("GET /api/collections", fresh, nil).Code; got != 401 {
		t.Errorf("an hour old: %d", got)
	}
}

// The password policy applies to superusers and users on every path of the dashboard.
func TestDashboardPasswordPolicy(t *testing.T) {
	n := newNative(t)
	root := n.superuser()
	bearer := n.bearer(root)
	user := vigiltest.User(t, n.app, authz.Nurse)
	for _, weak := range []string{"12345678", "short-A1", "all-lower-case-1", "ALL-UPPER-CASE-1", "No-Digits-At-All", "NoSignsAtAll77", "new@practice.testA1"} {
		body := map[string]string{"email": "new@practice.test", "password": weak, "passwordConfirm": weak}
		if answer := n.call("POST "+superusers+"records", bearer, body); answer.Code != 400 {
			t.Errorf("a superuser with %q: %d", weak, answer.Code)
		}
		delete(body, "email")
		for _, path := range []string{superusers + "records/" + root.Id, "/api/collections/users/records/" + user.Id} {
			if answer := n.call("PATCH "+path, bearer, body); answer.Code != 400 && weak != "new@practice.testA1" {
				t.Errorf("%s with %q: %d", path, weak, answer.Code)
			}
		}
	}
}

// The dashboard never shows a second factor, and saving a whole record leaves it unchanged.
func TestSecondFactorsAreHidden(t *testing.T) {
	n := newNative(t)
	root := n.superuser()
	secret := n.enrol()
	const theirs = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
	user := vigiltest.User(t, n.app, authz.Nurse, vigiltest.TwoFactor(theirs))
	bearer := n.bearer(n.root())
	for _, path := range []string{superusers + "records", superusers + "records/" + root.Id, "/api/collections/users/records", "/api/collections/users/records/" + user.Id} {
		answer := n.call("GET "+path, bearer, nil)
		if answer.Code != 200 || strings.Contains(answer.Body.String(), secret) || strings.Contains(answer.Body.String(), theirs) {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
	for _, path := range []string{superusers + "records/" + root.Id, "/api/collections/users/records/" + user.Id} {
		for _, value := range []any{"", nil, "MFRGGZDFMZTWQ2LK"} {
			if answer := n.call("PATCH "+path, bearer, map[string]any{"totp_secret": value, "totp_last_step": 0}); answer.Code != 200 {
				t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
			}
		}
	}
	if got := n.root().GetString("totp_secret"); got != secret {
		t.Error("the superuser's second factor was written")
	}
	kept, err := n.app.FindRecordById("users", user.Id)
	if err != nil || kept.GetString("totp_secret") != theirs {
		t.Errorf("the user's second factor was written, %v", err)
	}
	if answer := n.call("PATCH "+superusers+"records/"+root.Id, bearer, map[string]any{"two_factor_enabled": false}); answer.Code != 200 || !n.root().GetBool("two_factor_enabled") {
		t.Errorf("a superuser's second factor is turned off in the dashboard: %d", answer.Code)
	}
}

// PocketBase's mail routes do not exist, for users and superusers, existing and unknown addresses.
func TestMailRoutesAreClosed(t *testing.T) {
	n := newNative(t)
	n.superuser()
	for _, collection := range []string{"users", "_superusers", "_pb_users_auth_", "patients"} {
		for _, way := range []string{"password-reset", "verification", "email-change"} {
			for _, verb := range []string{"request-", "confirm-"} {
				answer := n.call("POST /api/collections/"+collection+"/"+verb+way, "", map[string]string{"email": "root@practice.test", "token": "x"})
				if answer.Code != 404 {
					t.Errorf("%s %s%s answers %d", collection, verb, way, answer.Code)
				}
			}
		}
	}
	for _, way := range []string{"auth-with-password", "auth-with-otp", "auth-with-oauth2", "auth-refresh", "request-otp"} {
		if got := n.call("POST /api/collections/users/"+way, "", map[string]string{"email": "root@practice.test"}).Code; got != 404 {
			t.Errorf("users/%s answers %d", way, got)
		}
	}
}

// The dashboard cannot create or delete records that sign a user in or protect a sign-in from reuse.
func TestDashboardCannotCreateSignIns(t *testing.T) {
	n := newNative(t)
	bearer := n.bearer(n.superuser())
	user := vigiltest.User(t, n.app, authz.Admin)
	_, err := collections.CreateRefreshToken(n.app, collections.RefreshToken{
		UserID: user.Id, TokenHash: "hash", Family: "f", FamilyStartedAt: n.now, IssuedAt: n.now, ExpiresAt: n.now.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	var id string
	if err := n.app.DB().NewQuery("SELECT id FROM refresh_tokens").Row(&id); err != nil {
		t.Fatal(err)
	}
	before := n.accounts()
	for _, collection := range []string{"refresh_tokens", "reset_tokens", "backup_codes", "sign_in_steps", "used_challenges", "login_failures", "passkeys"} {
		path := "/api/collections/" + collection + "/records"
		body := map[string]any{"user": user.Id, "token_hash": "known", "code_hash": "known", "state": "valid", "family": "g"}
		if got := n.call("POST "+path, bearer, body).Code; got != 400 {
			t.Errorf("creating %s answers %d", collection, got)
		}
	}
	for _, request := range []string{"PATCH", "DELETE"} {
		if got := n.call(request+" /api/collections/refresh_tokens/records/"+id, bearer, map[string]any{"token_hash": "known"}).Code; got != 400 {
			t.Errorf("%s answers %d", request, got)
		}
	}
	if after := n.accounts(); after != before {
		t.Errorf("a sign-in changed:\n%s\n%s", before, after)
	}
}
