package vigiltest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The one client that an [IdentityProvider] knows.
const (
	SignOnClient = "vigil"
	SignOnSecret = "the client's own secret"
)

// IdentityProvider is a small OpenID Connect provider on a socket. It checks of a sign-in what a real one would.
type IdentityProvider struct {
	URL    string
	Scopes []string // offered
	// Page are claims that stand on the page about the person and not in the token; nil is no such page.
	Page map[string]any
	// Spoil changes what is signed.
	Spoil func(token *jwt.Token)
	// Forged has tokens signed with a key that nobody knows.
	Forged bool

	t     testing.TB
	clock func() time.Time
	key   *rsa.PrivateKey
	lock  sync.Mutex
	codes map[string]granted
	last  granted
}

// granted is who was let in, and what for.
type granted struct {
	asked  url.Values
	claims map[string]any
}

// NewIdentityProvider serves until the test ends.
func NewIdentityProvider(t testing.TB, clock func() time.Time) *IdentityProvider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &IdentityProvider{t: t, clock: clock, key: key, codes: map[string]granted{}, Scopes: []string{"openid", "email", "groups"}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.configuration)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, _ *http.Request) {
		page := map[string]any{"sub": p.last.claims["sub"]}
		maps.Copy(page, p.Page)
		answer(w, http.StatusOK, page)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the test fails of what comes of it
}

func (p *IdentityProvider) configuration(w http.ResponseWriter, _ *http.Request) {
	about := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"}, "scopes_supported": p.Scopes,
	}
	if p.Page != nil {
		about["userinfo_endpoint"] = p.URL + "/userinfo"
	}
	answer(w, http.StatusOK, about)
}

func (p *IdentityProvider) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256", "n": base64.RawURLEncoding.EncodeToString(p.key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// Admit lets somebody in who was sent here, and returns the query that the browser goes back with.
func (p *IdentityProvider) Admit(location string, claims map[string]any) url.Values {
	p.t.Helper()
	at, err := url.Parse(location)
	if err != nil {
		p.t.Fatal(err)
	}
	asked := at.Query()
	if at.Host != p.URL[len("http://"):] || at.Path != "/authorize" || asked.Get("client_id") != SignOnClient || asked.Get("response_type") != "code" ||
		asked.Get("code_challenge_method") != "S256" || asked.Get("code_challenge") == "" || asked.Get("state") == "" || asked.Get("nonce") == "" {
		p.t.Fatalf("sent to %s", location)
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	code := rand.Text()
	p.codes[code] = granted{asked, claims}
	return url.Values{"state": {asked.Get("state")}, "code": {code}}
}

func (p *IdentityProvider) token(w http.ResponseWriter, r *http.Request) {
	p.lock.Lock()
	defer p.lock.Unlock()
	id, secret, ok := r.BasicAuth()
	code, known := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case !ok || id != SignOnClient || secret != url.QueryEscape(SignOnSecret):
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	case !known, r.FormValue("redirect_uri") != code.asked.Get("redirect_uri"),
		base64.RawURLEncoding.EncodeToString(challenge[:]) != code.asked.Get("code_challenge"):
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	p.last = code
	now := p.clock()
	claims := jwt.MapClaims{
		"iss": p.URL, "aud": SignOnClient, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "nonce": code.asked.Get("nonce"),
	}
	maps.Copy(claims, code.claims)
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = "one"
	if p.Spoil != nil {
		p.Spoil(token)
	}
	key := p.key
	if p.Forged {
		var err error
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			p.t.Error(err)
		}
	}
	signed, err := token.SignedString(key)
	if err != nil {
		p.t.Error(err)
	}
	answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": signed})
}
