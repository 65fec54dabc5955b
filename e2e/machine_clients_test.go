package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// requestToken requests a machine client's token.
func (p *practice) requestToken(t testing.TB, form url.Values, header ...string) (status int, answer object) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/api/v1/oauth/token/", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	if err := json.NewDecoder(got.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, answer
}

// A machine client with a JWKS on a local address, which only development allows: it signs in by assertion, its token
// survives a restart, its assertion cannot be used again after one, its address is the one that a trusted proxy reports, and
// a revocation applies at once.
func TestMachineClient(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "one", Use: "sig", Algorithm: "ES384"}}})
	if err != nil {
		t.Fatal(err)
	}
	published := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(keys) }))
	t.Cleanup(published.Close)
	p := newPractice(t, "VIGIL_PUBLIC_URL=http://vigil.test", "VIGIL_OUTBOUND_DEV_ALLOWED_HOSTS="+strings.TrimPrefix(published.URL, "http://"),
		"VIGIL_TRUSTED_PROXIES=127.0.0.1", "VIGIL_TRUSTED_PROXY_HEADERS=X-Forwarded-For").serve(t, "")
	admin := p.Admin(t)
	made := p.post(t, "/api/v1/clients/", admin, object{
		"name": "Device cloud", "scopes": []string{"ingest", "patients.read"}, "jwks_url": published.URL + "/jwks", "allowed_cidrs": []string{"198.51.100.0/24"},
	}).expect(t, 201)
	id := text(t, made, "id")
	assertion := func(jti string) url.Values {
		token := jwt.NewWithClaims(jwt.SigningMethodES384, jwt.MapClaims{
			"iss": id, "sub": id, "aud": "http://vigil.test/api/v1/oauth/token/", "exp": now().Add(4 * time.Minute).Unix(), "jti": jti,
		})
		token.Header["kid"] = "one"
		signed, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return url.Values{
			"grant_type": {"client_credentials"}, "client_assertion": {signed},
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		}
	}
	first := assertion("first")
	if status, answer := p.requestToken(t, first); status != 401 || answer["error"] != "invalid_client" {
		t.Errorf("from another address: %d %v", status, answer)
	}
	status, answer := p.requestToken(t, first, "X-Forwarded-For", "198.51.100.7")
	if status != 200 || answer["token_type"] != "bearer" || answer["expires_in"] != 900.0 {
		t.Fatalf("behind the proxy: %d %v", status, answer)
	}
	token, _ := answer["access_token"].(string)
	read := func(header ...string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/api/v1/patients/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		for i := 0; i+1 < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		got, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		return got.StatusCode
	}
	if there, elsewhere := read("X-Forwarded-For", "198.51.100.7"), read(); there != 200 || elsewhere != 403 {
		t.Errorf("reading: %d, and from another address %d", there, elsewhere)
	}
	p.Kill()
	p.serve(t, "")
	got := 0
	eventually(t, time.Minute, "the list of patients is prepared", func() bool { got = read("X-Forwarded-For", "198.51.100.7"); return got != 503 })
	if got != 200 {
		t.Errorf("after a restart the token answers %d", got)
	}
	if status, answer := p.requestToken(t, first, "X-Forwarded-For", "198.51.100.7"); status != 401 {
		t.Errorf("after a restart the assertion answers %d %v", status, answer)
	}
	if status, _ := p.requestToken(t, assertion("second"), "X-Forwarded-For", "198.51.100.7"); status != 200 {
		t.Errorf("another assertion: %d", status)
	}
	p.post(t, "/api/v1/clients/"+id+"/rotate-secret/", admin, nil).expect(t, 200)
	if got := read("X-Forwarded-For", "198.51.100.7"); got != 401 {
		t.Errorf("after a rotation the token answers %d", got)
	}
	if err := p.Stop(t); err != nil {
		t.Error(err)
	}
	p.must(t, p.Dir, "audit", "verify")
}
