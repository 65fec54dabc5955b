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

// Credentials of the one client that an [IdentityProvider] accepts.
const (
	SignOnClient = "vigil"
	SignOnSecret = "the client's own secret"
)

// IdentityProvider is a small OpenID Connect provider on a local port. It checks sign-ins as a real one would.
type IdentityProvider struct {
	URL    string
	Scopes []string // offered
	// UserInfo holds claims that the userinfo endpoint returns and the token omits.
	UserInfo map[string]any
	// ModifyToken changes a token before it is signed.
	ModifyToken func(token *jwt.Token)
	// Launch makes it an EMR's: it describes itself as SMART does, with these members in addition, and accepts a client without a secret, or one
	// with an assertion if it requires them.
	Launch map[string]any
	// Context are further members of a token answer, such as the patient of a launch.
	Context map[string]any
	// SignedIn are the claims of the person that the browser signs in at once; without them [IdentityProvider.Authorize] completes a sign-in.
	SignedIn map[string]any
	// Assertions are the client assertions received.
	Assertions []string
	// UnknownKey signs tokens with a key that is not published.
	UnknownKey bool

	t     testing.TB
	clock func() time.Time
	key   *rsa.PrivateKey
	lock  sync.Mutex
	codes map[string]authorization
	last  authorization
}

// authorization is an authorization code's request and claims.
type authorization struct {
	request url.Values
	claims  map[string]any
}

// NewIdentityProvider serves until the test ends.
func NewIdentityProvider(t testing.TB, clock func() time.Time) *IdentityProvider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &IdentityProvider{t: t, clock: clock, key: key, codes: map[string]authorization{}, Scopes: []string{"openid", "email", "groups"}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.configuration)
	mux.HandleFunc("GET /.well-known/smart-configuration", p.smartConfiguration)
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+p.Authorize(p.URL+r.URL.String(), p.SignedIn).Encode(), http.StatusFound)
	})
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, _ *http.Request) {
		page := map[string]any{"sub": p.last.claims["sub"]}
		maps.Copy(page, p.UserInfo)
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
	_ = json.NewEncoder(w).Encode(body) // the test fails on an incomplete answer
}

func (p *IdentityProvider) configuration(w http.ResponseWriter, _ *http.Request) {
	about := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"}, "scopes_supported": p.Scopes,
	}
	if p.UserInfo != nil {
		about["userinfo_endpoint"] = p.URL + "/userinfo"
	}
	answer(w, http.StatusOK, about)
}

func (p *IdentityProvider) smartConfiguration(w http.ResponseWriter, r *http.Request) {
	if p.Launch == nil {
		http.NotFound(w, r)
		return
	}
	about := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"capabilities": []string{"launch-ehr", "sso-openid-connect"}, "code_challenge_methods_supported": []string{"S256"},
	}
	maps.Copy(about, p.Launch)
	answer(w, http.StatusOK, about)
}

func (p *IdentityProvider) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256", "n": base64.RawURLEncoding.EncodeToString(p.key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// Authorize completes the sign-in of a redirected browser, and returns the query of the redirect back.
func (p *IdentityProvider) Authorize(location string, claims map[string]any) url.Values {
	p.t.Helper()
	at, err := url.Parse(location)
	if err != nil {
		p.t.Fatal(err)
	}
	asked := at.Query()
	if at.Host != p.URL[len("http://"):] || at.Path != "/authorize" || asked.Get("client_id") != SignOnClient || asked.Get("response_type") != "code" ||
		asked.Get("code_challenge_method") != "S256" || asked.Get("code_challenge") == "" || asked.Get("state") == "" || asked.Get("nonce") == "" {
		p.t.Fatalf("the authorization request is not valid: %s", location)
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	code := rand.Text()
	p.codes[code] = authorization{asked, claims}
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
	case p.Launch != nil && !ok && r.FormValue("client_id") == SignOnClient:
		if assertion := r.FormValue("client_assertion"); assertion != "" {
			p.Assertions = append(p.Assertions, assertion)
		}
	case !ok || id != SignOnClient || secret != url.QueryEscape(SignOnSecret):
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	if !known || r.FormValue("redirect_uri") != code.request.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != code.request.Get("code_challenge") {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	p.last = code
	now := p.clock()
	claims := jwt.MapClaims{
		"iss": p.URL, "aud": SignOnClient, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "nonce": code.request.Get("nonce"),
	}
	maps.Copy(claims, code.claims)
	signed := p.sign(claims)
	granted := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": signed}
	maps.Copy(granted, p.Context)
	answer(w, http.StatusOK, granted)
}

// IDToken returns a token that the provider issued now to a client.
func (p *IdentityProvider) IDToken(client string, claims map[string]any) string {
	now := p.clock()
	all := jwt.MapClaims{"iss": p.URL, "aud": client, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	return p.sign(all)
}

func (p *IdentityProvider) sign(claims jwt.MapClaims) string {
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = "one"
	if p.ModifyToken != nil {
		p.ModifyToken(token)
	}
	key := p.key
	if p.UnknownKey {
		var err error
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			p.t.Error(err)
		}
	}
	signed, err := token.SignedString(key)
	if err != nil {
		p.t.Error(err)
	}
	return signed
}
