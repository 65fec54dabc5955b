package routes_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

const (
	tokenURL      = "https://vigil.example.org/api/v1/oauth/token/"
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

// machine is a client with its secret.
type machine struct{ id, secret string }

// addClient creates a client; changes work as for patientBody.
func (c *clinic) addClient(changes object) machine {
	c.t.Helper()
	body := object{"name": "Device cloud", "scopes": []string{"ingest"}}
	for name, value := range changes {
		body[name] = value
	}
	body["with_secret"] = true
	made := c.request(authz.Admin, "POST", "/clients/", body).want(201).object()
	return machine{made["id"].(string), made["client_secret"].(string)}
}

// requestFrom sends a request without a user, from an address and with headers, and checks the answer against the
// contract.
func (c *clinic) requestFrom(address, method, path, body string, header ...string) reply {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), method, "/api/v1"+path, strings.NewReader(body))
	r.RemoteAddr = address + ":4711"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, method, r.URL.Path, rec.Code, rec.Header(), rec.Body.Bytes())
	if path == "/oauth/token/" && rec.Code != 429 && (rec.Header().Get("Cache-Control") != "no-store" || rec.Header().Get("Pragma") != "no-cache") {
		c.t.Errorf("a token may be kept: %v", rec.Header())
	}
	if challenge := rec.Header().Get("WWW-Authenticate"); path == "/oauth/token/" && (rec.Code == 401) != strings.HasPrefix(challenge, "Basic ") {
		c.t.Errorf("%d with the challenge %q", rec.Code, challenge)
	}
	return reply{c.t, method + " " + path, rec.Code, rec.Body.String()}
}

const home = "192.0.2.1"

// signIn requests a token with the secret.
func (c *clinic) signIn(m machine, scope string) reply {
	c.t.Helper()
	return c.grant(url.Values{"grant_type": {"client_credentials"}, "scope": {scope}}, m)
}

// grant sends a token request; a client authenticates with its secret.
func (c *clinic) grant(form url.Values, by ...machine) reply {
	c.t.Helper()
	header := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, m := range by {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(m.id, m.secret)
		header = append(header, "Authorization", r.Header.Get("Authorization"))
	}
	return c.requestFrom(home, "POST", "/oauth/token/", form.Encode(), header...)
}

// token returns the client's access token.
func (c *clinic) token(m machine, scope string) string {
	c.t.Helper()
	return c.signIn(m, scope).want(200).object()["access_token"].(string)
}

// requestAsClient sends a request with a client's token.
func (c *clinic) requestAsClient(token, method, path string, body any) reply {
	c.t.Helper()
	raw := []byte{}
	if body != nil {
		raw, _ = json.Marshal(body)
	}
	return c.requestFrom(home, method, path, string(raw), "Content-Type", "application/json", "Authorization", "Bearer "+token)
}

// refusedToken checks an OAuth error.
func (r reply) refusedToken(status int, word string) {
	r.t.Helper()
	o := r.want(status, word).object()
	if o["error"] != word || o["error_description"] != o["detail"] || o["access_token"] != nil {
		r.t.Errorf("%s: %s", r.what, r.body)
	}
}

// queryColumn returns the only column of a query's rows.
func (c *clinic) queryColumn(query string) (column []string) {
	c.t.Helper()
	if err := c.app.DB().NewQuery(query).Column(&column); err != nil {
		c.t.Fatal(err)
	}
	return column
}

func TestClientAdministration(t *testing.T) {
	c := newClinic(t)
	made := c.request(authz.Admin, "POST", "/clients/", object{
		"name": " Device cloud ", "scopes": []string{"ingest", "system/Observation.read", "ingest"}, "allowed_cidrs": []string{"192.0.2.7", "2001:db8::1/32"},
	}).want(201).wantAt(object{"name": "Device cloud", "active": true, "jwks": nil, "jwks_url": nil, "last_used_at": nil}).object()
	id, secret := made["id"].(string), made["client_secret"].(string)
	if !strings.HasPrefix(secret, "cs_") || len(secret) != 46 {
		t.Errorf("the secret is %q", secret)
	}
	if got := fmt.Sprint(made["scopes"], made["allowed_cidrs"]); got != "[ingest system/Observation.rs] [192.0.2.7/32 2001:db8::/32]" {
		t.Errorf("stored as %s", got)
	}
	if kept := fmt.Sprint(c.queryColumn(`SELECT json_group_array(json_array(secret_hash, token_key, name, scopes)) FROM clients`)); strings.Contains(kept, secret[3:]) {
		t.Errorf("the secret is stored: %s", kept)
	}
	shown := c.request(authz.Admin, "GET", "/clients/"+id+"/", nil).want(200)
	listed := c.request(authz.Admin, "GET", "/clients/", nil).results()
	if len(listed) != 1 || shown.object()["id"] != id || strings.Contains(shown.body, "secret") || listed[0]["client_secret"] != nil {
		t.Errorf("shown as %s, listed as %v", shown.body, listed)
	}
	c.request(authz.Admin, "PATCH", "/clients/"+id+"/", object{"name": "Cloud", "scopes": []string{"patients.read"}}).want(200).
		wantAt(object{"name": "Cloud", "active": true})
	if again := c.request(authz.Admin, "POST", "/clients/"+id+"/rotate-secret/", object{}).want(200).object()["client_secret"]; again == secret || again == nil {
		t.Errorf("the secret stayed: %v", again)
	}
	c.request(authz.Admin, "DELETE", "/clients/"+id+"/", nil).want(204)
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		c.request(authz.Admin, method, "/clients/"+id+"/", object{}).want(404)
	}
	stored := c.queryColumn(`SELECT event FROM audit_log WHERE resource_type = 'Client' ORDER BY id`)
	if want := []string{"client.create", "client.update", "client.secret_rotate", "client.delete"}; !slices.Equal(stored, want) {
		t.Errorf("the audit trail has %v", stored)
	}
}

func TestClientBodies(t *testing.T) {
	c := newClinic(t)
	with := func(changes object) object {
		body := object{"name": "Cloud", "scopes": []string{"ingest"}}
		for name, value := range changes {
			body[name] = value
		}
		return body
	}
	private, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: ecKey(t), KeyID: "a"}}})
	small, _ := rsa.GenerateKey(rand.Reader, 1024) // too short on purpose
	for what, test := range map[string]struct {
		body  object
		wrong []string
	}{
		"nothing":              {object{}, []string{"name", "scopes"}},
		"no scope":             {with(object{"scopes": []string{"ingest", "everything", "system/Patient.write"}}), []string{"scopes.1", "scopes.2"}},
		"a string for a list":  {with(object{"scopes": "ingest"}), []string{"scopes"}},
		"no range":             {with(object{"allowed_cidrs": []string{"192.0.2.0/33", "here", "fe80::1%eth0", "::ffff:10.0.0.0/104"}}), []string{"allowed_cidrs.0", "allowed_cidrs.1", "allowed_cidrs.2", "allowed_cidrs.3"}},
		"a near address":       {with(object{"jwks_url": "https://10.0.0.1/jwks"}), []string{"jwks_url"}},
		"plain http":           {with(object{"jwks_url": "http://keys.example.org/jwks"}), []string{"jwks_url"}},
		"localhost":            {with(object{"jwks_url": "https://localhost/jwks"}), []string{"jwks_url"}},
		"a private key":        {with(object{"jwks": json.RawMessage(private)}), []string{"jwks"}},
		"a short key":          {with(object{"jwks": setOf(t, "a", &small.PublicKey)}), []string{"jwks"}},
		"another curve":        {with(object{"jwks": setOf(t, "a", &otherCurve(t).PublicKey)}), []string{"jwks"}},
		"a symmetric key":      {with(object{"jwks": object{"keys": []object{{"kty": "oct", "k": "AAAA", "kid": "a"}}}}), []string{"jwks"}},
		"a key without a name": {with(object{"jwks": setOf(t, "", &ecKey(t).PublicKey)}), []string{"jwks"}},
		"two of one name":      {with(object{"jwks": setOf(t, "a", &ecKey(t).PublicKey, &ecKey(t).PublicKey)}), []string{"jwks"}},
		"no set":               {with(object{"jwks": object{}}), []string{"jwks"}},
		"an empty set":         {with(object{"jwks": object{"keys": []any{}}}), []string{"jwks"}},
		"no object":            {with(object{"jwks": "keys"}), []string{"jwks"}},
		"both ways":            {with(object{"jwks_url": "https://keys.example.org/jwks", "jwks": setOf(t, "a", &ecKey(t).PublicKey)}), []string{"jwks"}},
		"no boolean":           {with(object{"active": "yes"}), []string{"active"}},
		"a long name":          {with(object{"name": strings.Repeat("n", 101)}), []string{"name"}},
	} {
		t.Run(what, func(t *testing.T) { c.request(authz.Admin, "POST", "/clients/", test.body).wantFields(test.wrong...) })
	}
	if n := len(c.request(authz.Admin, "GET", "/clients/", nil).results()); n != 0 {
		t.Errorf("%d were stored", n)
	}
}

// A client's readings are stored as device readings under the client's name.
func TestClientSendsReadings(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	m := c.addClient(nil)
	answer := c.signIn(m, "").want(200).wantAt(object{"token_type": "bearer", "expires_in": 900.0, "scope": "ingest"}).object()
	token := answer["access_token"].(string)
	reading := object{"patient_id": patient, "systolic": 185, "diastolic": 125, "pulse": 80, "device_id": "BP-1", "measured_at": c.now.Add(-time.Minute).Format(time.RFC3339)}
	sent := c.requestAsClient(token, "POST", "/ingestion/blood-pressure/", reading).want(201).wantAt(object{"origin": "machine", "source": "api", "alert_triggered": true})
	if sent.object()["alert_details"] != nil {
		t.Errorf("a client without the alerts scope receives one: %s", sent.body)
	}
	c.requestAsClient(token, "POST", "/ingestion/blood-pressure/", reading).want(200).wantAt(object{"duplicate": true})
	c.requestAsClient(token, "POST", "/ingestion/blood-pressure/", object{"patient_id": patient, "systolic": 1}).want(400)

	page, _, err := audit.List(c.app, audit.Filter{Event: "observation.create", Actor: m.id}, 0, 10)
	if err != nil || len(page) != 1 || page[0].ActorType != "client" || page[0].ActorName != "Device cloud" || page[0].ActorEmail != "" {
		t.Errorf("the trail: %+v, %v", page, err)
	}
	c.request(authz.Admin, "GET", "/audit/events/?actor="+m.id, nil).want(200)
	c.request(authz.Admin, "GET", fmt.Sprintf("/audit/events/%d/?_format=fhir", page[0].Number()), nil).want(200)
	if result, err := audit.Verify(c.app, nil); err != nil || !result.Valid {
		t.Errorf("the trail does not hold: %+v, %v", result, err)
	}
	if used := c.request(authz.Admin, "GET", "/clients/"+m.id+"/", nil).object()["last_used_at"]; used != "2026-01-15T13:45:00Z" {
		t.Errorf("last used at %v", used)
	}
	c.now = c.now.Add(20 * time.Second)
	c.requestAsClient(token, "POST", "/ingestion/blood-pressure/", object{}).want(400)
	if used := c.request(authz.Admin, "GET", "/clients/"+m.id+"/", nil).object()["last_used_at"]; used != "2026-01-15T13:45:20Z" {
		t.Errorf("then at %v", used)
	}
	if stored := c.queryColumn(`SELECT last_used_at FROM clients`); !slices.Equal(stored, []string{"2026-01-15T13:45:00.000000Z"}) {
		t.Errorf("stored with each request: %v", stored)
	}
}

// Every route with a token of every scope: the routes of the scope table are open to their own scope only, and all
// others return 403.
func TestEveryRouteForClients(t *testing.T) {
	c := newClinic(t)
	file, err := os.Open("../internal/authz/testdata/scopes.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]string{}
	for _, line := range lines[1:] {
		wanted[line[0]+" "+line[1]] = line[2]
	}
	all := authz.AllClientScopes.Strings()
	m := c.addClient(object{"scopes": all})
	full := c.token(m, "")
	without := map[string]string{}
	for _, scope := range all {
		rest := slices.DeleteFunc(slices.Clone(all), func(s string) bool {
			return s == scope || s == "system/*.rs" && strings.HasPrefix(scope, "system/") // covers every resource
		})
		without[scope] = c.token(m, strings.Join(rest, " "))
	}
	without[string(authz.AnySystemScope)] = c.token(m, strings.Join(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return strings.HasPrefix(s, "system/") }), " "))
	for _, route := range routes.Rows() {
		name := route.Method + " " + route.Path
		if string(route.Scope) != wanted[name] {
			t.Errorf("%s names the scope %q, the table %q", name, route.Scope, wanted[name])
		}
		delete(wanted, name)
		if route.Public || route.Gateway {
			if route.Scope != "" {
				t.Errorf("%s is public and has a scope", name)
			}
			continue
		}
		path := pathParameter.ReplaceAllString(route.Path, "999999")
		answer := c.requestWithToken(route.Method, path, full)
		if route.Scope == "" {
			if answer.Code != 403 || code(t, answer) != "insufficient_scope" {
				t.Errorf("%s is closed to clients, but answers %d", name, answer.Code)
			}
			continue
		}
		if answer.Code == 401 || answer.Code == 403 {
			t.Errorf("%s is open by %s, but answers %d %s", name, route.Scope, answer.Code, answer.Body)
		}
		if answer = c.requestWithToken(route.Method, path, without[string(route.Scope)]); answer.Code != 403 || code(t, answer) != "insufficient_scope" ||
			!strings.Contains(answer.Header().Get("WWW-Authenticate"), `scope="`+string(route.Scope)+`"`) {
			t.Errorf("%s without %s answers %d, %q", name, route.Scope, answer.Code, answer.Header().Get("WWW-Authenticate"))
		}
	}
	for name := range wanted {
		t.Errorf("%s has a scope in the table, and is no route", name)
	}
	if answer := c.requestWithToken("GET", "/api/v1/health-of-nothing/", full); answer.Code != 404 {
		t.Errorf("a path without a route answers %d", answer.Code)
	}
}

// A revoked right ends with the next request.
func TestRevocation(t *testing.T) {
	c := newClinic(t)
	read := func(token string) reply { return c.requestAsClient(token, "GET", "/patients/", nil) }
	scopes := object{"scopes": []string{"patients.read", "alerts.read"}}
	for what, revoke := range map[string]func(m machine){
		"disabled": func(m machine) {
			c.request(authz.Admin, "PATCH", "/clients/"+m.id+"/", object{"active": false}).want(200)
		},
		"another secret": func(m machine) {
			c.request(authz.Admin, "POST", "/clients/"+m.id+"/rotate-secret/", object{}).want(200)
		},
		"removed": func(m machine) { c.request(authz.Admin, "DELETE", "/clients/"+m.id+"/", nil).want(204) },
		"other keys": func(m machine) {
			c.request(authz.Admin, "PATCH", "/clients/"+m.id+"/", object{"jwks": setOf(t, "a", &ecKey(t).PublicKey)}).want(200)
		},
	} {
		m := c.addClient(scopes)
		token := c.token(m, "")
		read(token).want(200)
		revoke(m)
		if got := read(token); got.status != 401 || got.object()["code"] != "token_invalid" {
			t.Errorf("%s: the token answers %d", what, got.status)
		}
		if got := c.signIn(m, "").status; (got == 200) != (what == "other keys") {
			t.Errorf("%s: signing in answers %d", what, got)
		}
		if what == "disabled" {
			c.request(authz.Admin, "PATCH", "/clients/"+m.id+"/", object{"active": true}).want(200)
			read(token).want(401, "token_invalid")
			read(c.token(m, "")).want(200)
		}
	}
	m := c.addClient(scopes)
	token := c.token(m, "")
	c.request(authz.Admin, "PATCH", "/clients/"+m.id+"/", object{"scopes": []string{"alerts.read"}}).want(200)
	read(token).want(403, "insufficient_scope")
	c.requestAsClient(token, "GET", "/alerts/", nil).want(200)
	c.request(authz.Admin, "PATCH", "/clients/"+m.id+"/", object{"allowed_cidrs": []string{"198.51.100.0/24"}}).want(200)
	c.requestAsClient(token, "GET", "/alerts/", nil).want(403, "permission_denied")
	c.signIn(m, "").refusedToken(401, "invalid_client")

	m = c.addClient(scopes)
	token = c.token(m, "")
	c.now = c.now.Add(15*time.Minute - time.Second)
	read(token).want(200)
	c.now = c.now.Add(time.Second)
	read(token).want(401, "token_expired")
	for _, forged := range []string{token + "A", "ct_", "ct_x.y.z", strings.TrimPrefix(token, "ct_"), "ct_" + vigiltest.Token(t, c.people[authz.Admin], c.now)} {
		read(forged).want(401, "token_invalid")
	}
}

// A client removed in the PocketBase dashboard bypasses the engine and loses access all the same.
func TestClientRemovedInDashboard(t *testing.T) {
	c := newClinic(t)
	m := c.addClient(object{"scopes": []string{"patients.read"}})
	token := c.token(m, "")
	c.requestAsClient(token, "GET", "/patients/", nil).want(200)
	record, err := c.app.FindRecordById("clients", m.id)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.app.Delete(record); err != nil {
		t.Fatal(err)
	}
	c.requestAsClient(token, "GET", "/patients/", nil).want(401, "token_invalid")
}

// signer signs assertions.
type signer struct {
	method jwt.SigningMethod
	key    crypto.PrivateKey
	kid    string
}

func (s signer) sign(t *testing.T, claims jwt.MapClaims, header ...string) string {
	t.Helper()
	token := jwt.NewWithClaims(s.method, claims)
	token.Header["kid"] = s.kid
	for i := 0; i+1 < len(header); i += 2 {
		token.Header[header[i]] = header[i+1]
	}
	text, err := token.SignedString(s.key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (c *clinic) claims(m machine, jti string) jwt.MapClaims {
	return jwt.MapClaims{"iss": m.id, "sub": m.id, "aud": tokenURL, "exp": c.now.Add(5 * time.Minute).Unix(), "jti": jti}
}

func (c *clinic) assert(assertion string) reply {
	c.t.Helper()
	return c.grant(url.Values{"grant_type": {"client_credentials"}, "client_assertion_type": {assertionType}, "client_assertion": {assertion}})
}

func TestAssertions(t *testing.T) {
	c := newClinic(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve := ecKey(t)
	es, rs := signer{jwt.SigningMethodES384, curve, "e"}, signer{jwt.SigningMethodRS384, rsaKey, "r"}
	both, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &curve.PublicKey, KeyID: "e", Use: "sig", Algorithm: "ES384"}, {Key: &rsaKey.PublicKey, KeyID: "r"}}})
	m := c.addClient(object{"scopes": []string{"ingest", "system/*.rs"}, "jwks": json.RawMessage(both)})
	other := c.addClient(object{"jwks": setOf(t, "e", &ecKey(t).PublicKey)})

	c.assert(es.sign(t, c.claims(m, "1"))).want(200).wantAt(object{"scope": "ingest system/*.rs"})
	c.assert(rs.sign(t, c.claims(m, "2"))).want(200)
	c.assert(es.sign(t, c.claims(m, "1"))).refusedToken(401, "invalid_client") // replayed
	c.assert(rs.sign(t, c.claims(m, "1"))).refusedToken(401, "invalid_client") // under another key
	list := c.claims(m, "3")
	list["aud"] = []string{"https://elsewhere.example/token", strings.TrimSuffix(tokenURL, "/")}
	c.assert(es.sign(t, list)).want(200)

	with := func(name string, value any) jwt.MapClaims {
		claims := c.claims(m, "wrong "+name)
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
		return claims
	}
	at := func(d time.Duration) int64 { return c.now.Add(d).Unix() }
	good := es.sign(t, c.claims(m, "parts"))
	head, rest, _ := strings.Cut(good, ".")
	body, _, _ := strings.Cut(rest, ".")
	for what, assertion := range map[string]string{
		"another audience":         es.sign(t, with("aud", "https://vigil.example.org/")),
		"no audience":              es.sign(t, with("aud", nil)),
		"no end":                   es.sign(t, with("exp", nil)),
		"ended":                    es.sign(t, with("exp", at(0))),
		"lasting too long":         es.sign(t, with("exp", at(6*time.Minute))),
		"lasting for ever":         es.sign(t, with("exp", 1e300)),
		"made in the future":       es.sign(t, with("iat", at(2*time.Minute))),
		"not yet":                  es.sign(t, with("nbf", at(2*time.Minute))),
		"without a jti":            es.sign(t, with("jti", nil)),
		"with an endless jti":      es.sign(t, with("jti", strings.Repeat("j", 513))),
		"without a subject":        es.sign(t, with("sub", nil)),
		"for another client":       es.sign(t, with("sub", other.id)),
		"of an unknown client":     es.sign(t, jwt.MapClaims{"iss": "x", "sub": "x", "aud": tokenURL, "exp": at(time.Minute), "jti": "n"}),
		"of no client":             es.sign(t, c.claims(machine{id: "0190b2c4-0000-7000-8000-00000000000c"}, "n")),
		"by another client's key":  es.sign(t, c.claims(other, "k")),
		"by an unknown key":        signer{jwt.SigningMethodES384, ecKey(t), "x"}.sign(t, c.claims(m, "u")),
		"by a key of that name":    signer{jwt.SigningMethodES384, ecKey(t), "e"}.sign(t, c.claims(m, "f")),
		"without a kid":            signer{jwt.SigningMethodES384, curve, ""}.sign(t, c.claims(m, "k")),
		"under another algorithm":  signer{jwt.SigningMethodRS256, rsaKey, "r"}.sign(t, c.claims(m, "a")),
		"under HS256":              signer{jwt.SigningMethodHS256, []byte(m.secret), "e"}.sign(t, c.claims(m, "h")),
		"under HS256 of the key":   signer{jwt.SigningMethodHS256, both, "e"}.sign(t, c.claims(m, "h")),
		"under none":               signer{jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "e"}.sign(t, c.claims(m, "o")),
		"with something critical":  es.sign(t, c.claims(m, "c"), "crit", "exp"),
		"with keys elsewhere":      es.sign(t, c.claims(m, "j"), "jku", "https://keys.example.org/jwks"),
		"without a signature":      head + "." + body + ".",
		"with another signature":   good[:len(good)-4] + "AAAA",
		"with a part too many":     good + ".x",
		"that is none":             "x",
		"too long":                 es.sign(t, with("more", strings.Repeat("x", 8<<10))),
		"of an RSA key by its kid": signer{jwt.SigningMethodES384, curve, "r"}.sign(t, c.claims(m, "x")),
	} {
		t.Run(what, func(t *testing.T) { c.assert(assertion).refusedToken(401, "invalid_client") })
	}
	c.assert(good).want(200) // none of the refused assertions used it up

	reasons, total, err := audit.List(c.app, audit.Filter{Event: "client.token_refused"}, 0, 100)
	if err != nil || total < 30 || reasons[0].ActorType != "anonymous" || reasons[0].Changes["reason"].New == nil {
		t.Errorf("%d refusals are in the trail, %v", total, err)
	}
}

func TestTokenRequests(t *testing.T) {
	c := newClinic(t)
	key := ecKey(t)
	m := c.addClient(object{"scopes": []string{"ingest", "system/Patient.rs"}, "jwks": setOf(t, "e", &key.PublicKey)})
	assertion := signer{jwt.SigningMethodES384, key, "e"}.sign(t, c.claims(m, "1"))
	form := func(pairs ...string) url.Values {
		values := url.Values{"grant_type": {"client_credentials"}}
		for i := 0; i+1 < len(pairs); i += 2 {
			values.Set(pairs[i], pairs[i+1])
		}
		return values
	}
	for what, test := range map[string]struct {
		form   url.Values
		by     []machine
		status int
		word   string
	}{
		"no grant":                {url.Values{}, []machine{m}, 400, "invalid_request"},
		"another grant":           {form("grant_type", "authorization_code"), []machine{m}, 400, "unsupported_grant_type"},
		"a refresh":               {form("grant_type", "refresh_token"), []machine{m}, 400, "unsupported_grant_type"},
		"a grant twice":           {url.Values{"grant_type": {"client_credentials", "client_credentials"}}, []machine{m}, 400, "invalid_request"},
		"no proof":                {form(), nil, 401, "invalid_client"},
		"an id alone":             {form("client_id", m.id), nil, 401, "invalid_client"},
		"both proofs":             {form("client_assertion", assertion, "client_assertion_type", assertionType), []machine{m}, 400, "invalid_request"},
		"a secret in the body":    {form("client_id", m.id, "client_secret", m.secret), nil, 400, "invalid_request"},
		"another kind of proof":   {form("client_assertion", assertion, "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"), nil, 400, "invalid_request"},
		"no assertion":            {form("client_assertion_type", assertionType), nil, 400, "invalid_request"},
		"another client_id":       {form("client_id", "x"), []machine{m}, 400, "invalid_request"},
		"an assertion of another": {form("client_id", "x", "client_assertion", assertion, "client_assertion_type", assertionType), nil, 400, "invalid_request"},
		"a wrong secret":          {form(), []machine{{m.id, m.secret + "x"}}, 401, "invalid_client"},
		"no secret":               {form(), []machine{{m.id, ""}}, 401, "invalid_client"},
		"an unknown client":       {form(), []machine{{"0190b2c4-0000-7000-8000-00000000000c", m.secret}}, 401, "invalid_client"},
		"no client":               {form(), []machine{{"admin@example.org", "Correct-Horse-42"}}, 401, "invalid_client"},
		"a scope too many":        {form("scope", "ingest patients.read"), []machine{m}, 400, "invalid_scope"},
		"another resource":        {form("scope", "system/Observation.rs"), []machine{m}, 400, "invalid_scope"},
		"no such scope":           {form("scope", "openid"), []machine{m}, 400, "invalid_scope"},
	} {
		t.Run(what, func(t *testing.T) { c.grant(test.form, test.by...).refusedToken(test.status, test.word) })
	}
	for scope, want := range map[string]string{"": "ingest system/Patient.rs", "system/Patient.read": "system/Patient.read", " ingest  ingest ": "ingest"} {
		c.signIn(m, scope).want(200).wantAt(object{"scope": want})
	}
	c.requestFrom(home, "POST", "/oauth/token/", `{"grant_type":"client_credentials"}`, "Content-Type", "application/json").refusedToken(400, "invalid_request")
	c.requestFrom(home, "POST", "/oauth/token/", "%zz", "Content-Type", "application/x-www-form-urlencoded").refusedToken(400, "invalid_request")
	c.requestFrom(home, "POST", "/oauth/token/", "grant_type=client_credentials", "Content-Type", "application/x-www-form-urlencoded", "Authorization", "Basic !!").
		refusedToken(401, "invalid_client")
	if got := c.requestFrom(home, "POST", "/oauth/token/", strings.Repeat("a", 65<<10), "Content-Type", "application/x-www-form-urlencoded").status; got != 413 {
		t.Errorf("an endless form answers %d", got)
	}
	if got := c.requestWithToken("GET", "/api/v1/oauth/token/?grant_type=client_credentials", "").Code; got != 405 {
		t.Errorf("GET answers %d", got)
	}
	empty := c.addClient(object{"scopes": []string{}})
	c.signIn(empty, "").refusedToken(400, "invalid_scope")
}

// All callers at an address share its limit; the client has another limit that only its own requests count toward.
func TestClientRateLimits(t *testing.T) {
	hour := time.Hour
	c := newClinic(t, func(e *routes.Engines) {
		e.Limits = ratelimit.NewLimiter(map[ratelimit.Class]ratelimit.Policy{
			ratelimit.Auth: {Requests: 5, Window: hour}, ratelimit.Client: {Requests: 3, Window: hour}, ratelimit.User: {Requests: 100, Window: hour}, ratelimit.Anon: {Requests: 1, Window: hour},
		})
	})
	ask := func(address string, m machine) int {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(m.id, m.secret)
		return c.requestFrom(address, "POST", "/oauth/token/", "grant_type=client_credentials", "Content-Type", "application/x-www-form-urlencoded",
			"Authorization", r.Header.Get("Authorization")).status
	}
	one, two := c.addClient(object{"scopes": []string{"patients.read"}}), c.addClient(object{"scopes": []string{"patients.read"}})
	token, others := c.token(one, ""), c.token(two, "")
	for i := range 9 { // requests by others with its id, from any address
		if got := ask(fmt.Sprintf("198.51.100.%d", i), machine{one.id, "wrong"}); got != 401 {
			t.Fatalf("a stranger is answered %d", got)
		}
	}
	for i := range 4 { // its own requests; one is used
		if got := ask(fmt.Sprintf("203.0.113.%d", i), one); got != 200 {
			t.Fatalf("%d tokens and then %d", i, got)
		}
	}
	if got := ask("203.0.113.9", one); got != 429 {
		t.Errorf("a client without an end of tokens: %d", got)
	}
	if got := ask("203.0.113.9", two); got != 200 {
		t.Errorf("another client is answered %d", got)
	}
	for i := range 3 {
		if got := c.requestAsClient(token, "GET", "/patients/", nil).status; got != 200 {
			t.Errorf("%d requests and then %d", i, got)
		}
	}
	c.requestAsClient(token, "GET", "/patients/", nil).want(429, "throttled")
	c.requestAsClient(others, "GET", "/patients/", nil).want(200)
	c.request(authz.Admin, "GET", "/patients/", nil).want(200)
}

// A day with a client's device reading counts as a day of transmission; a day with a typed reading does not.
func TestClientReadingDays(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	c.assignDevice("BP-1", patient, 20)
	token := c.token(c.addClient(nil), "")
	for day := range 3 {
		c.requestAsClient(token, "POST", "/ingestion/blood-pressure/", object{
			"patient_id": patient, "systolic": 120 + day, "diastolic": 75, "device_id": "BP-1", "measured_at": c.now.AddDate(0, 0, -day).Add(-time.Hour).Format(time.RFC3339),
		}).want(201)
	}
	c.requestAsClient(token, "POST", "/ingestion/blood-pressure/", object{ // requestFrom a device that the patient does not hold
		"patient_id": patient, "systolic": 125, "diastolic": 75, "device_id": "BP-2", "measured_at": c.now.AddDate(0, 0, -4).Format(time.RFC3339),
	}).want(201)
	for day := 5; day < 8; day++ {
		c.measure(patient, "BP-1", 120+day, 24*day)
	}
	if got := c.queryColumn(`SELECT substr(day, 6) || ' ' || readings || ' ' || device_readings FROM reading_days ORDER BY day`); !slices.Equal(got,
		[]string{"01-08 1 0", "01-09 1 0", "01-10 1 0", "01-11 1 0", "01-13 1 1", "01-14 1 1", "01-15 1 1"}) {
		t.Errorf("the days are %q", got)
	}
	explained := c.request(authz.Admin, "GET", "/billing/explain/"+patient+"/", nil).want(200).body
	if !strings.Contains(explained, `"days":3,"days_needed":16`) {
		t.Errorf("billing has %s", explained)
	}
}

// Implausible values from a client wait for a person, who sees that a client sent them; once confirmed they count as
// device readings.
func TestImplausibleClientReadings(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	token := c.token(c.addClient(nil), "")
	c.requestAsClient(token, "POST", "/ingestion/pulse-oximetry/", object{"patient_id": patient, "spo2": 40, "device_id": "OX-1", "measured_at": c.now.Add(-time.Minute).Format(time.RFC3339)}).
		want(400, "validation_error")
	waiting := c.request(authz.Nurse, "GET", "/ingestion/quarantine/", nil)
	if waiting.status == 403 {
		waiting = c.request(authz.Admin, "GET", "/ingestion/quarantine/", nil)
	}
	list := waiting.results()
	if len(list) != 1 || list[0]["source"] != "client" || list[0]["patient_id"] != patient {
		t.Fatalf("in quarantine: %v", list)
	}
	c.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/quarantine/%v/confirm/", list[0]["id"]), object{"notes": "Seen on the display."}).want(201).
		wantAt(object{"origin": "machine", "source": "api"})
}

// Clients receive only the members that their scopes cover.
func TestClientVisibility(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"phone": "+12125550100", "ssn": "123-45-6789"})
	token := c.token(c.addClient(object{"scopes": []string{"patients.read", "patients.write", "observations.read"}}), "")
	c.requestAsClient(token, "GET", "/patients/"+patient+"/", nil).want(200).wantAt(object{"phone": "+12125550100", "ssn_last4": nil})
	c.requestAsClient(token, "GET", "/patients/?deleted=true", nil).want(403, "permission_denied")
	made := c.requestAsClient(token, "POST", "/patients/", patientBody(object{"first_name": "Grace", "last_name": "Hopper"})).want(201).object()["id"].(string)
	c.requestAsClient(token, "PUT", "/patients/"+made+"/", patientBody(object{"first_name": "Grace", "last_name": "Murray"})).want(200)
	c.requestAsClient(token, "DELETE", "/patients/"+made+"/", nil).want(403, "insufficient_scope")
	c.requestAsClient(token, "GET", "/users/me/", nil).want(403, "insufficient_scope")
	c.requestAsClient(token, "POST", "/auth/logout/", object{"refresh": "rt_x"}).want(403, "insufficient_scope")
	for _, event := range []string{"patient.create", "patient.update"} {
		if page, _, err := audit.List(c.app, audit.Filter{Event: event, PatientID: made}, 0, 10); err != nil || len(page) != 1 || page[0].ActorName != "Device cloud" {
			t.Errorf("%s in the trail: %+v, %v", event, page, err)
		}
	}
	denied, total, err := audit.List(c.app, audit.Filter{Event: "access.denied"}, 0, 10)
	if err != nil || total != 4 || denied[0].ActorType != "client" {
		t.Errorf("refusals in the trail: %d, %v", total, err)
	}
	c.requestAsClient(token, "GET", "/patients/"+patient+"/", nil).want(200)
	c.request(authz.Admin, "GET", "/patients/"+patient+"/access-log/", nil).want(200)
}

// Of fifty concurrent requests with one assertion, exactly one receives a token.
func TestAssertionWorksOnce(t *testing.T) {
	c := newClinic(t)
	key := ecKey(t)
	m := c.addClient(object{"jwks": setOf(t, "e", &key.PublicKey)})
	form := url.Values{"grant_type": {"client_credentials"}, "client_assertion_type": {assertionType}, "client_assertion": {signer{jwt.SigningMethodES384, key, "e"}.sign(t, c.claims(m, "1"))}}.Encode()
	var group sync.WaitGroup
	statuses := make([]int, 50)
	for i := range statuses {
		group.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/api/v1/oauth/token/", strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			rec := httptest.NewRecorder()
			c.handler.ServeHTTP(rec, r)
			statuses[i] = rec.Code
		})
	}
	group.Wait()
	slices.Sort(statuses)
	if statuses[0] != 200 || statuses[1] != 401 || statuses[49] != 401 {
		t.Errorf("answered %v", statuses)
	}
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func otherCurve(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// setOf returns a set of public keys with one name.
func setOf(t *testing.T, kid string, keys ...any) json.RawMessage {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, key := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key, KeyID: kid})
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
