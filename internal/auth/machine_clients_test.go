package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const tokenURL = "https://vigil.example.org/api/v1/oauth/token/"

var (
	clientClock  = vigiltest.Clock
	clientOrigin = audit.Origin{Address: "192.0.2.1", Client: "test", RequestID: "request-1"}
)

func newMachineClients(devHosts ...string) *auth.MachineClients {
	return auth.NewMachineClients(vigiltest.Sealer(), auth.MachineClientOptions{TokenURL: tokenURL, Outbound: auth.NewOutbound(devHosts)})
}

// register makes a client of the JSON of a body.
func register(t testing.TB, e *auth.MachineClients, app core.App, body string) auth.Credentials {
	t.Helper()
	made, err := e.Create(app, read(t, body, e.ReadNew), audit.System(), clientClock)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func read[B any](t testing.TB, body string, check func(B, *validate.Checks) auth.ClientDraft) auth.ClientDraft {
	t.Helper()
	var b B
	if err := validate.DecodeObject([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	checks := validate.NewChecks()
	draft := check(b, checks)
	if err := checks.Err(); err != nil {
		t.Fatal(err)
	}
	return draft
}

// signIn requests a token with an assertion.
func signIn(t testing.TB, e *auth.MachineClients, app core.App, assertion string, now time.Time) (auth.IssuedToken, error) {
	t.Helper()
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	}
	request, err := auth.ReadTokenRequest("application/x-www-form-urlencoded", []byte(form.Encode()), "")
	if err != nil {
		return auth.IssuedToken{}, err
	}
	return e.SignIn(t.Context(), app, request, func(string) error { return nil }, clientOrigin, now)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func assertion(t testing.TB, key *ecdsa.PrivateKey, kid, id, jti string, now time.Time) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodES384, jwt.MapClaims{
		"iss": id, "sub": id, "aud": tokenURL, "exp": now.Add(4 * time.Minute).Unix(), "jti": jti,
	})
	token.Header["kid"] = kid
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// published returns a JWKS document of the public keys by key id.
func published(t testing.TB, keys map[string]*ecdsa.PrivateKey) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for kid, key := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: &key.PublicKey, KeyID: kid})
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// reason returns the last audited reason for refusing a client a token.
func reason(t testing.TB, app core.App) string {
	t.Helper()
	page, _, err := audit.List(app, audit.Filter{Event: string(audit.ClientTokenRefused)}, 0, 1)
	if err != nil || len(page) == 0 {
		t.Fatalf("nothing in the trail, %v", err)
	}
	text, _ := page[0].Changes["reason"].New.(string)
	return text
}

func clientErrorCode(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return ""
	}
	return f.Code
}

// TestAssertionWorksOnceAcrossRestarts checks that an assertion works once until its expiry, even after a restart.
func TestAssertionWorksOnceAcrossRestarts(t *testing.T) {
	app := vigiltest.NewApp(t)
	key := newKey(t)
	m := register(t, newMachineClients(), app, `{"name":"Cloud","scopes":["ingest"],"jwks":`+string(published(t, map[string]*ecdsa.PrivateKey{"a": key}))+`}`)
	text := assertion(t, key, "a", m.Client.Id, "1", clientClock)
	if _, err := signIn(t, newMachineClients(), app, text, clientClock); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{0, time.Minute, 4*time.Minute - time.Second} {
		if _, err := signIn(t, newMachineClients(), app, text, clientClock.Add(after)); clientErrorCode(err) != "invalid_client" || !strings.Contains(reason(t, app), "used before") {
			t.Errorf("after %s: %v", after, err)
		}
	}
	if _, err := signIn(t, newMachineClients(), app, text, clientClock.Add(4*time.Minute)); clientErrorCode(err) != "invalid_client" || !strings.Contains(reason(t, app), "expired") {
		t.Errorf("when it has ended: %v", err)
	}
	other := register(t, newMachineClients(), app, `{"name":"Other","scopes":["ingest"],"jwks":`+string(published(t, map[string]*ecdsa.PrivateKey{"a": key}))+`}`)
	if _, err := signIn(t, newMachineClients(), app, assertion(t, key, "a", other.Client.Id, "1", clientClock), clientClock); err != nil {
		t.Errorf("another client's jti: %v", err)
	}
}

// keyServer publishes keys and counts requests.
type keyServer struct {
	*httptest.Server
	requests atomic.Int32
	handler  atomic.Pointer[http.HandlerFunc]
}

func newKeyServer(t *testing.T) *keyServer {
	t.Helper()
	s := &keyServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		(*s.handler.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *keyServer) serve(h http.HandlerFunc) { s.handler.Store(&h) }

func (s *keyServer) publish(raw []byte) {
	s.serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(raw) })
}

// TestPublishedKeys checks when published keys are fetched: on first use, after they become stale, and for an unknown key id, but not more often
// than allowed.
func TestPublishedKeys(t *testing.T) {
	app := vigiltest.NewApp(t)
	server := newKeyServer(t)
	e := newMachineClients("127.0.0.1")
	old, young := newKey(t), newKey(t)
	m := register(t, e, app, `{"name":"Cloud","scopes":["ingest"],"jwks_url":"`+server.URL+`/jwks"}`)
	number, now := 0, clientClock
	try := func(key *ecdsa.PrivateKey, kid string) error {
		number++
		_, err := signIn(t, e, app, assertion(t, key, kid, m.Client.Id, string(rune('a'+number%26))+now.String()+kid+string(rune('0'+number/26)), now), now)
		return err
	}
	want := func(what string, err error, allowed bool, requests int32) {
		t.Helper()
		if (err == nil) != allowed || server.requests.Load() != requests {
			t.Errorf("%s: %v, %s; the keys were fetched %d times, want %d", what, err, errors.Unwrap(err), server.requests.Load(), requests)
		}
	}
	server.serve(http.NotFound)
	want("nothing there", try(old, "1"), false, 1)
	want("at once again", try(old, "1"), false, 1)
	now = now.Add(5 * time.Second)
	server.publish(published(t, map[string]*ecdsa.PrivateKey{"1": old}))
	want("there", try(old, "1"), true, 2)
	for range 5 {
		want("known", try(old, "1"), true, 2)
	}
	server.publish(published(t, map[string]*ecdsa.PrivateKey{"2": young}))
	want("a new key", try(young, "2"), true, 3)
	want("the old one", try(old, "1"), false, 3)
	for range 20 {
		want("an unknown one", try(old, "3"), false, 3)
	}
	now = now.Add(time.Minute)
	want("a minute later", try(old, "3"), false, 4)
	want("and again", try(old, "3"), false, 4)
	server.serve(http.NotFound)
	now = now.Add(11 * time.Minute)
	want("while the server fails", try(young, "2"), true, 5)
	want("and again", try(young, "2"), true, 5)
	now = now.Add(time.Hour)
	want("for too long", try(young, "2"), false, 6)

	now = now.Add(time.Minute)
	server.publish([]byte(`{"keys":[{"kty":"oct","kid":"2","k":"AAAA"},{"kty":"unknown"},5,` + string(published(t, map[string]*ecdsa.PrivateKey{"2": young})[len(`{"keys":[`):])))
	want("among others that are of no use", try(young, "2"), true, 7)
}

// TestUnreadableKeys checks that an invalid JWKS response refuses the client and does not leak into the audit trail.
func TestUnreadableKeys(t *testing.T) {
	app := vigiltest.NewApp(t)
	server := newKeyServer(t)
	key := newKey(t)
	good := published(t, map[string]*ecdsa.PrivateKey{"1": key})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(good) }))
	t.Cleanup(elsewhere.Close)
	for what, answer := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) },
		"no JSON":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"no set":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"key":1}`)) },
		"too many": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[` + strings.Repeat("{},", 20) + `{}]}`))
		},
		"too much": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(append([]byte(strings.Repeat(" ", 64<<10)), good...))
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); _, _ = w.Write(good) },
		"a cut":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a private key": func(w http.ResponseWriter, _ *http.Request) {
			raw, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key, KeyID: "1"}}})
			_, _ = w.Write(raw)
		},
	} {
		e := newMachineClients("127.0.0.1")
		server.serve(answer)
		m := register(t, e, app, `{"name":"Cloud","scopes":["ingest"],"jwks_url":"`+server.URL+`/jwks"}`)
		_, err := signIn(t, e, app, assertion(t, key, "1", m.Client.Id, what, clientClock), clientClock)
		if clientErrorCode(err) != "invalid_client" || strings.Contains(reason(t, app), "html") {
			t.Errorf("%s: %v (%s)", what, err, reason(t, app))
		}
	}
	// An address that was allowed at registration and is now a loopback address.
	server.publish(good)
	m := register(t, newMachineClients("127.0.0.1"), app, `{"name":"Cloud","scopes":["ingest"],"jwks_url":"`+server.URL+`/jwks"}`)
	before := server.requests.Load()
	_, err := signIn(t, newMachineClients(), app, assertion(t, key, "1", m.Client.Id, "home", clientClock), clientClock)
	if clientErrorCode(err) != "invalid_client" || server.requests.Load() != before {
		t.Errorf("a loopback address was requested: %v", err)
	}
}

// TestKeyFetchHoldsNoLock checks that keys are fetched outside transactions, so a slow server does not block writers.
func TestKeyFetchHoldsNoLock(t *testing.T) {
	app := vigiltest.NewApp(t)
	server := newKeyServer(t)
	e := newMachineClients("127.0.0.1")
	key := newKey(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	server.serve(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = w.Write(published(t, map[string]*ecdsa.PrivateKey{"1": key}))
	})
	m := register(t, e, app, `{"name":"Cloud","scopes":["ingest"],"jwks_url":"`+server.URL+`/jwks"}`)
	done := make(chan error)
	go func() {
		_, err := signIn(t, e, app, assertion(t, key, "1", m.Client.Id, "1", clientClock), clientClock)
		done <- err
	}()
	<-arrived
	register(t, e, app, `{"name":"Another","scopes":["ingest"]}`) // would wait for ever
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestClientChangedDuringSignIn checks that a client changed between authentication and signing gets no token.
func TestClientChangedDuringSignIn(t *testing.T) {
	app := vigiltest.NewApp(t)
	e := newMachineClients()
	key := newKey(t)
	m := register(t, e, app, `{"name":"Cloud","scopes":["ingest"],"jwks":`+string(published(t, map[string]*ecdsa.PrivateKey{"a": key}))+`}`)
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_assertion": {assertion(t, key, "a", m.Client.Id, "1", clientClock)},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	}
	request, err := auth.ReadTokenRequest("application/x-www-form-urlencoded; charset=UTF-8", []byte(form.Encode()), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.SignIn(t.Context(), app, request, func(id string) error {
		_, err := e.Change(app, id, read(t, `{"active":false}`, e.ReadChange), audit.System(), clientClock)
		return err
	}, clientOrigin, clientClock)
	if clientErrorCode(err) != "invalid_client" || !strings.Contains(reason(t, app), "changed during the sign-in") {
		t.Errorf("answered %v", err)
	}
}

// TestNothingPrints checks that values with secrets do not print them.
func TestNothingPrints(t *testing.T) {
	for _, value := range []any{auth.Credentials{Secret: "cs_x"}, auth.IssuedToken{Access: "ct_x"}, auth.TokenRequest{}} {
		if text := fmt.Sprintf("%v %+v %#v %s", value, value, value, value); strings.Contains(text, "_x") {
			t.Errorf("prints as %s", text)
		}
	}
}

// countingAuthenticator counts calls.
type countingAuthenticator struct{ calls int }

func (a *countingAuthenticator) Authenticate(core.App, string, time.Time) (auth.Caller, error) {
	a.calls++
	return auth.Caller{ID: 1}, nil
}

// TestUserTokensSkipClients checks that a user's token is passed directly to the user authenticator.
func TestUserTokensSkipClients(t *testing.T) {
	known := &countingAuthenticator{}
	b := auth.TokenAuthenticator{Users: known}
	for _, token := range []string{"", "eyJhbGciOiJIUzI1NiJ9.e30.AA", "CT_x", "x ct_x"} {
		if caller, err := b.Authenticate(nil, token, clientClock); err != nil || caller.ID != 1 {
			t.Errorf("%q: %+v, %v", token, caller, err)
		}
	}
	if known.calls != 4 {
		t.Errorf("asked %d times", known.calls)
	}
}

// TestUserEndpointsRefuseClientTokens checks that no user authentication accepts a client's token in any form.
func TestUserEndpointsRefuseClientTokens(t *testing.T) {
	app := vigiltest.NewApp(t)
	e := newMachineClients()
	key := newKey(t)
	m := register(t, e, app, `{"name":"Cloud","scopes":["ingest"],"jwks":`+string(published(t, map[string]*ecdsa.PrivateKey{"a": key}))+`}`)
	token, err := signIn(t, e, app, assertion(t, key, "a", m.Client.Id, "1", clientClock), clientClock)
	if err != nil {
		t.Fatal(err)
	}
	person := auth.New(vigiltest.Sealer(), auth.Options{})
	for _, text := range []string{token.Access, strings.TrimPrefix(token.Access, "ct_")} {
		if _, err := person.AuthenticatePassively(app, text, clientClock); clientErrorCode(err) != "token_invalid" { // realtime uses AuthenticatePassively, too
			t.Errorf("as a user's token: %v", err)
		}
		if record, err := app.FindAuthRecordByToken(text); err == nil {
			t.Errorf("PocketBase accepts it as %v", record)
		}
	}
	user := vigiltest.Token(t, vigiltest.User(t, app, authz.Admin), clientClock)
	if _, err := e.Authenticate(app, "ct_"+user, clientClock); clientErrorCode(err) != "token_invalid" {
		t.Errorf("a user's token as a client's: %v", err)
	}
}

func BenchmarkAuthenticateClient(b *testing.B) {
	app := vigiltest.NewApp(b)
	e := newMachineClients()
	key := newKey(b)
	m := register(b, e, app, `{"name":"Cloud","scopes":["ingest","patients.read"],"jwks":`+string(published(b, map[string]*ecdsa.PrivateKey{"a": key}))+`}`)
	token, err := signIn(b, e, app, assertion(b, key, "a", m.Client.Id, "1", clientClock), clientClock)
	if err != nil {
		b.Fatal(err)
	}
	known := auth.New(vigiltest.Sealer(), auth.Options{})
	holders := auth.TokenAuthenticator{Users: known, Clients: e}
	user := vigiltest.Token(b, vigiltest.User(b, app, authz.Nurse), clientClock)
	for name, ask := range map[string]func() error{
		"client":      func() error { _, err := holders.Authenticate(app, token.Access, clientClock); return err },
		"user":        func() error { _, err := holders.Authenticate(app, user, clientClock); return err },
		"user before": func() error { _, err := known.Authenticate(app, user, clientClock); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzAssertion checks that no altered assertion is accepted, nothing panics, and every refusal is an OAuth error.
func FuzzAssertion(f *testing.F) {
	app := vigiltest.NewApp(f)
	e := newMachineClients()
	key := newKey(f)
	m := register(f, e, app, `{"name":"Cloud","scopes":["ingest"],"jwks":`+string(published(f, map[string]*ecdsa.PrivateKey{"a": key}))+`}`)
	good := assertion(f, key, "a", m.Client.Id, "1", clientClock)
	head, rest, _ := strings.Cut(good, ".")
	for _, seed := range []string{
		"", ".", "..", "...", good + ".", head + "." + rest[:10], head + ".e30.AA", "e30.e30.AA", "eyJhbGciOiJub25lIn0." + rest, good[:len(good)-1], "\x00.\xff.é",
		"eyJhbGciOiJFUzM4NCIsImtpZCI6ImEifQ.eyJleHAiOjFlMzAwfQ.AA", "eyJhbGciOiJFUzM4NCIsImtpZCI6MX0.bnVsbA.AA", "bnVsbA.bnVsbA.AA",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == good {
			return
		}
		if err := e.Assert(t.Context(), app, text, clientClock); clientErrorCode(err) != "invalid_client" {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// FuzzKeys checks that a key set is either refused or can be stored and parsed again.
func FuzzKeys(f *testing.F) {
	f.Add(published(f, map[string]*ecdsa.PrivateKey{"a": newKey(f)}))
	for _, seed := range []string{`{}`, `{"keys":null}`, `{"keys":[]}`, `{"keys":[{}]}`, `{"keys":[null]}`, `[]`, `{"keys":[{"kty":"RSA","n":"AA","e":"AQAB","kid":"a"}]}`, `{"keys":[{"kty":"EC","crv":"P-384","x":"AA","y":"AA","kid":"a"}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		stored, err := auth.ParseKeys(raw)
		if err != nil {
			return
		}
		if _, err := auth.ParseKeys(stored); err != nil {
			t.Errorf("%s was stored and is not read again: %v", stored, err)
		}
	})
}

// TestOmittedFieldsStay checks that a change keeps omitted fields and that jwks_url and jwks replace each other.
func TestOmittedFieldsStay(t *testing.T) {
	app := vigiltest.NewApp(t)
	e := newMachineClients()
	m := register(t, e, app, `{"name":"Cloud","scopes":["ingest"],"allowed_cidrs":["192.0.2.1"]}`)
	before := m.Client.Values()
	changed, err := e.Change(app, m.Client.Id, read(t, `{"jwks_url":"https://keys.example.org/jwks"}`, e.ReadChange), audit.System(), clientClock)
	if err != nil || changed.Values().JWKSURL == "" || changed.Values().Name != before.Name || len(changed.Values().AllowedCIDRs) != 1 {
		t.Fatalf("%+v, %v", changed.Values(), err)
	}
	keys := string(published(t, map[string]*ecdsa.PrivateKey{"a": newKey(t)}))
	if changed, err = e.Change(app, m.Client.Id, read(t, `{"jwks":`+keys+`}`, e.ReadChange), audit.System(), clientClock); err != nil || changed.Values().JWKSURL != "" {
		t.Fatalf("keys beside an address: %+v, %v", changed.Values(), err)
	}
	stored, err := collections.FindClient(app, m.Client.Id)
	if err != nil || stored.Values().JWKS == nil {
		t.Fatalf("stored %+v, %v", stored.Values(), err)
	}
	rows := vigiltest.RowCounts(t, app)
	if _, err = e.Change(app, m.Client.Id, read(t, `{"name":"Cloud","jwks":`+string(stored.Values().JWKS)+`}`, e.ReadChange), audit.System(), clientClock.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if added := vigiltest.RowsAdded(t, app, rows); len(added) != 0 {
		t.Errorf("the same again left %v", added)
	}
	if changed, err = e.Change(app, m.Client.Id, read(t, `{"jwks":null}`, e.ReadChange), audit.System(), clientClock); err != nil || changed.Values().JWKS != nil {
		t.Errorf("keys stay: %+v, %v", changed.Values(), err)
	}
}
