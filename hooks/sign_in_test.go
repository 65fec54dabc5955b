package hooks_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// native is PocketBase's own router with Vigil's hooks, without the API.
type native struct {
	t       *testing.T
	app     *tests.TestApp
	handler http.Handler
	auth    *auth.Engine
	routes  []string // "POST /api/collections/{collection}/auth-refresh" …
	now     time.Time
}

func newNative(t *testing.T) *native {
	t.Helper()
	n := &native{t: t, app: vigiltest.NewApp(t), now: vigiltest.Clock}
	authority := auth.New(vigiltest.Sealer(), auth.Options{RefreshFamilyLife: time.Hour})
	n.auth = authority
	directory := patients.NewDirectory()
	t.Cleanup(directory.Close)
	engines := hooks.Engines{
		Directory: directory, Zone: time.UTC, Clock: func() time.Time { return n.now }, EvictUser: authority.Evict,
		Wake: func() {}, WakeMailer: func() {}, Auth: authority,
	}
	hooks.Bind(n.app, engines)
	router, err := apis.NewRouter(n.app)
	if err != nil {
		t.Fatal(err)
	}
	router.Bind(hooks.Guard(engines)...)
	n.routes = routesOf("", reflect.ValueOf(router.RouterGroup))
	if n.handler, err = router.BuildMux(); err != nil {
		t.Fatal(err)
	}
	return n
}

// routesOf lists the routes of the running router by reflection, because PocketBase does not export a group's children.
func routesOf(prefix string, group reflect.Value) (list []string) {
	group = reflect.Indirect(group)
	prefix += group.FieldByName("Prefix").String()
	children := group.FieldByName("children")
	for i := range children.Len() {
		child := reflect.Indirect(children.Index(i).Elem())
		if child.FieldByName("children").IsValid() {
			list = append(list, routesOf(prefix, child)...)
			continue
		}
		list = append(list, child.FieldByName("Method").String()+" "+prefix+child.FieldByName("Path").String())
	}
	return list
}

func (n *native) call(route, token string, body any) *httptest.ResponseRecorder {
	n.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	if method == "" {
		method = http.MethodGet
	}
	raw, err := json.Marshal(body)
	if err != nil {
		n.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(n.t.Context(), method, path, strings.NewReader(string(raw)))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	answer := httptest.NewRecorder()
	n.handler.ServeHTTP(answer, r)
	return answer
}

func made(t *testing.T) func(string, error) string {
	return func(token string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
}

var (
	parameter = regexp.MustCompile(`\{[a-zA-Z.]+\}`)
	tokenLike = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{10,}\.`)
)

// accounts returns the state of users and sign-ins that no route may change.
func (n *native) accounts() string {
	n.t.Helper()
	var state strings.Builder
	for _, collection := range []string{
		collections.Users, collections.RefreshTokens, collections.LoginFailures, collections.BackupCodes, collections.ResetTokens, collections.Passkeys, collections.SignInSteps,
		core.CollectionNameExternalAuths, core.CollectionNameMFAs, core.CollectionNameOTPs,
	} {
		var rows []string
		columns := map[string]string{collections.Users: "id || password || tokenKey || email || role || is_active || two_factor_enabled || totp_secret || verified"}
		column := columns[collection]
		if column == "" {
			column = "id"
		}
		if err := n.app.DB().NewQuery("SELECT " + column + " FROM " + collection + " ORDER BY id").Column(&rows); err != nil {
			n.t.Fatal(err)
		}
		state.WriteString(collection + strings.Join(rows, "|") + "\n")
	}
	return state.String()
}

// No route of PocketBase signs a user in or out or skips the second factor: without a token, with a valid access token, or with PocketBase's
// own reset and confirmation tokens. The routes come from the running router.
func TestNativeRoutesGiveUsersNoToken(t *testing.T) {
	n := newNative(t)
	user := vigiltest.User(t, n.app, authz.Nurse, vigiltest.TwoFactor("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"))
	record := user.ProxyRecord()
	fresh := made(t)
	tokens := []string{
		fresh(record.NewPasswordResetToken()), fresh(record.NewVerificationToken()), fresh(record.NewEmailChangeToken("thief@practice.test")),
		fresh(record.NewAuthToken()), fresh(record.NewStaticAuthToken(0)), fresh(record.NewFileToken()),
	}
	before := n.accounts()
	if len(n.routes) < 40 {
		t.Fatalf("the router has %d routes", len(n.routes))
	}
	tried := 0
	for _, route := range n.routes {
		if strings.Contains(route, "/_/") || strings.HasSuffix(route, "GET /api/realtime") { // pages, and an endless stream
			continue
		}
		path := strings.NewReplacer("{collection}", collections.Users, "{id}", user.Id, "{recordId}", user.Id).Replace(route)
		path = parameter.ReplaceAllString(path, "x")
		onUsers := strings.Contains(route, "{collection}") && !strings.Contains(route, "/records")
		for _, password := range []string{vigiltest.Password, "Another-Pass-77"} {
			for _, token := range tokens {
				body := map[string]any{
					"identity": user.Email(), "email": user.Email(), "newEmail": "thief@practice.test", "password": password, "passwordConfirm": password,
					"oldPassword": vigiltest.Password, "token": token, "otpId": "x", "mfaId": "x", "provider": "google", "code": "x", "codeVerifier": "x",
					"redirectURL": "https://x.test", "redirectUrl": "https://x.test", "duration": 99999, "role": "admin", "is_active": true,
					"two_factor_enabled": false, "verified": true,
				}
				for who, bearer := range map[string]string{"anonymous": "", "the user": vigiltest.Token(t, user, n.now)} {
					answer := n.call(path, bearer, body)
					tried++
					if tokenLike.MatchString(answer.Body.String()) {
						t.Errorf("%s gives %s a token: %d", route, who, answer.Code)
					}
					if onUsers && answer.Code < 400 {
						t.Errorf("%s answers %d to %s", route, answer.Code, who)
					}
				}
			}
		}
	}
	if after := n.accounts(); after != before {
		t.Errorf("an account changed:\n%s\n%s", before, after)
	}
	if tried < 500 {
		t.Errorf("only %d requests were made", tried)
	}
}

// A superuser cannot sign in as a user either.
func TestSuperusersCannotBecomeUsers(t *testing.T) {
	n := newNative(t)
	user := vigiltest.User(t, n.app, authz.Nurse)
	bearer := n.bearer(n.superuser())
	for _, route := range n.routes {
		if !strings.Contains(route, "{collection}") || !strings.Contains(route, "/api/collections/{collection}/") || strings.Contains(route, "/records") ||
			strings.Contains(route, "truncate") {
			continue
		}
		path := strings.NewReplacer("{collection}", collections.Users, "{id}", user.Id).Replace(route)
		answer := n.call(path, bearer, map[string]any{"identity": user.Email(), "email": user.Email(), "password": vigiltest.Password, "newEmail": "x@y.test"})
		if answer.Code < 400 || tokenLike.MatchString(answer.Body.String()) {
			t.Errorf("%s answers %d: %s", route, answer.Code, answer.Body)
		}
	}
}

// bearer returns the token of a superuser who has just signed in.
func (n *native) bearer(superuser *core.Record) string {
	n.t.Helper()
	return made(n.t)(n.auth.SignSuperuser(superuser, n.now, n.now))
}

const rootPassword = "Lantern-Orchard-42"

func (n *native) superuser() *core.Record {
	n.t.Helper()
	record, err := collections.NewRecord(n.app, core.CollectionNameSuperusers)
	if err != nil {
		n.t.Fatal(err)
	}
	record.SetEmail("root@practice.test")
	record.SetPassword(rootPassword)
	if err := n.app.Save(record); err != nil {
		n.t.Fatal(err)
	}
	return record
}

// Changes of superusers in the dashboard are audited.
func TestSuperuserChangesAreAudited(t *testing.T) {
	n := newNative(t)
	root := n.superuser()
	bearer := n.bearer(root)
	created := n.call("POST /api/collections/_superusers/records", bearer,
		map[string]string{"email": "second@practice.test", "password": rootPassword, "passwordConfirm": rootPassword})
	var second struct{ ID string }
	if err := json.Unmarshal(created.Body.Bytes(), &second); err != nil || created.Code != 200 {
		t.Fatalf("creating answers %d: %s", created.Code, created.Body)
	}
	path := "/api/collections/_superusers/records/" + second.ID
	if got := n.call("PATCH "+path, bearer, map[string]string{"email": "third@practice.test"}).Code; got != 200 {
		t.Errorf("changing answers %d", got)
	}
	if got := n.call("DELETE "+path, bearer, nil).Code; got != 204 {
		t.Errorf("deleting answers %d", got)
	}
	var events []string
	err := n.app.DB().NewQuery(`SELECT event || ' ' || actor_type || ' ' || resource_id FROM audit_log WHERE event LIKE 'superuser.%' ORDER BY id`).Column(&events)
	want := "superuser.create system " + root.Id + ",superuser.create superuser " + second.ID + ",superuser.update superuser " + second.ID + ",superuser.delete superuser " + second.ID
	if err != nil || strings.Join(events, ",") != want {
		t.Errorf("recorded %v (%v), want %s", events, err, want)
	}
}
