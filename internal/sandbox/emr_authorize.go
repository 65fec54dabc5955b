package sandbox

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// codeLifetime is short, as RFC 6749 section 4.1.2 requires.
const codeLifetime = 5 * time.Minute

// authorization is the content of an authorization code.
type authorization struct {
	redirectURI, challenge string
	scopes                 []string
	expiresAt              time.Time
}

// The formats of RFC 7636: section 4.1 for the verifier; a challenge is 32 bytes in base64url without padding.
var (
	verifierForm  = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)
	challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
)

// S256 returns the code challenge of a code verifier. Source: RFC 7636 section 4.2.
func S256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// authorize approves every well-formed request at once, as if a clinician had clicked "allow".
func (e *EMR) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	target, err := url.Parse(query.Get("redirect_uri"))
	switch {
	case query.Get("client_id") != e.options.ClientID:
		// RFC 6749 section 4.1.2.1: never redirect for an unknown client or redirect address.
		http.Error(w, "unknown client_id", http.StatusBadRequest)
		return
	case err != nil || !target.IsAbs() || target.Fragment != "",
		e.options.RedirectURI != "" && target.String() != e.options.RedirectURI:
		http.Error(w, "unknown redirect_uri", http.StatusBadRequest)
		return
	}
	back := target.Query()
	back.Set("state", query.Get("state"))
	code, problem := e.approve(query, e.fhirBase(r))
	if problem != nil {
		back.Set("error", problem.code)
		back.Set("error_description", problem.description)
	} else {
		back.Set("code", code)
	}
	target.RawQuery = back.Encode()
	http.Redirect(w, r, target.String(), http.StatusFound) //nolint:gosec // G710: an option fixes redirect_uri; without it a sandbox accepts any
}

// approve checks an authorization request and returns its code.
func (e *EMR) approve(query url.Values, fhirBase string) (string, *oauthError) {
	scopes := grantedScopes(query.Get("scope"), userScopes)
	switch {
	case query.Get("response_type") != "code":
		return "", badRequest("unsupported_response_type", "response_type must be code")
	case query.Get("state") == "":
		return "", badRequest("invalid_request", "state is required")
	case query.Get("aud") != fhirBase:
		return "", badRequest("invalid_request", "aud is not "+fhirBase)
	case query.Get("code_challenge_method") != "S256" || !challengeForm.MatchString(query.Get("code_challenge")):
		return "", badRequest("invalid_request", "an S256 code_challenge is required")
	case len(scopes) == 0:
		return "", badRequest("invalid_scope", "no scope this EMR grants to users")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	code, err := e.secret()
	if err != nil {
		return "", badRequest("server_error", err.Error())
	}
	e.codes[code] = authorization{
		redirectURI: query.Get("redirect_uri"),
		challenge:   query.Get("code_challenge"),
		scopes:      scopes,
		expiresAt:   e.options.Now().Add(codeLifetime),
	}
	return code, nil
}

// redeemCode exchanges an authorization code for tokens, once. A refresh token requires offline_access.
func (e *EMR) redeemCode(r *http.Request) (*tokenAnswer, *oauthError) {
	if problem := e.checkClient(r); problem != nil {
		return nil, problem
	}
	form := r.PostForm
	e.mu.Lock()
	asked, found := e.codes[form.Get("code")]
	delete(e.codes, form.Get("code")) // a code is valid for one attempt
	now := e.options.Now()
	e.mu.Unlock()
	verifier := form.Get("code_verifier")
	switch {
	case !found || !now.Before(asked.expiresAt):
		return nil, badRequest("invalid_grant", "the code is unknown, used or expired")
	case form.Get("redirect_uri") != asked.redirectURI:
		return nil, badRequest("invalid_grant", "redirect_uri differs from the one of the authorization request")
	case !verifierForm.MatchString(verifier),
		subtle.ConstantTimeCompare([]byte(S256(verifier)), []byte(asked.challenge)) != 1:
		return nil, badRequest("invalid_grant", "code_verifier does not match the challenge")
	}
	return e.issue(asked.scopes, slices.Contains(asked.scopes, "offline_access"))
}

// redeemRefreshToken rotates: the given refresh token is invalid afterwards.
func (e *EMR) redeemRefreshToken(r *http.Request) (*tokenAnswer, *oauthError) {
	if problem := e.checkClient(r); problem != nil {
		return nil, problem
	}
	form := r.PostForm
	e.mu.Lock()
	held, found := e.refresh[form.Get("refresh_token")]
	scopes := held.scopes
	if asked := form.Get("scope"); asked != "" {
		scopes = grantedScopes(asked, held.scopes)
	}
	alive := found && e.options.Now().Before(held.expiresAt)
	if alive && len(scopes) > 0 {
		delete(e.refresh, form.Get("refresh_token"))
	}
	e.mu.Unlock()
	switch {
	case !alive:
		return nil, badRequest("invalid_grant", "the refresh token is unknown, used or expired")
	case len(scopes) == 0:
		return nil, badRequest("invalid_scope", "no scope of the original grant")
	}
	return e.issue(scopes, true)
}

// checkClient authenticates the client of the interactive flow: by assertion if it sends one, else by its secret (header or form), else by
// name if no secret is configured.
func (e *EMR) checkClient(r *http.Request) *oauthError {
	form := r.PostForm
	if form.Has("client_assertion") {
		return e.checkAssertion(r)
	}
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		id, secret = unescape(user), unescape(password)
	}
	configured := e.options.ClientSecret
	if id != e.options.ClientID || configured != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(configured)) != 1 {
		return invalidClient("unknown client or wrong secret")
	}
	return nil
}

// unescape reverses the form encoding of RFC 6749 section 2.3.1 inside the Basic header.
func unescape(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	// assertionLifetime bounds exp - iat. Source: docs/decisions/emr.md, "Backend flow scopes and keys".
	assertionLifetime = 300 * time.Second
	// clockSkew is how far the client's clock may be ahead.
	clockSkew = 30 * time.Second
	// keysLifetime is how long a fetched JWKS is cached.
	keysLifetime = 5 * time.Minute
	minKeyBits   = 2048
)

// checkAssertion verifies the client assertion of a token request. Source: RFC 7523 sections 2.2 and 3; SMART App Launch,
// client-confidential-asymmetric.
func (e *EMR) checkAssertion(r *http.Request) *oauthError {
	form := r.PostForm
	if form.Get("client_assertion_type") != assertionType {
		return badRequest("invalid_request", "client_assertion_type is not "+assertionType)
	}
	assertion, err := jwt.ParseSigned(form.Get("client_assertion"), []jose.SignatureAlgorithm{jose.RS384})
	if err != nil {
		return invalidClient("the assertion is not a JWT signed with RS384")
	}
	header := assertion.Headers[0]
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); typ != "JWT" {
		return invalidClient("the assertion's typ is not JWT")
	}
	key, err := e.keys.find(r.Context(), header.KeyID)
	if err != nil {
		return invalidClient(err.Error())
	}
	var claims jwt.Claims
	if err := assertion.Claims(key, &claims); err != nil {
		return invalidClient("the assertion's signature does not verify")
	}
	if id := form.Get("client_id"); id != "" && id != claims.Subject {
		return invalidClient("client_id is not the assertion's subject")
	}
	return e.checkClaims(claims, e.base(r)+"/oauth/token")
}

func (e *EMR) checkClaims(claims jwt.Claims, audience string) *oauthError {
	now := e.options.Now()
	expires, issued := claims.Expiry.Time(), claims.IssuedAt.Time()
	switch {
	case claims.Issuer != e.options.ClientID || claims.Subject != e.options.ClientID:
		return invalidClient("iss and sub must both be the client id")
	case !slices.Equal(claims.Audience, jwt.Audience{audience}):
		return invalidClient("aud is not " + audience)
	case claims.Expiry == nil || claims.IssuedAt == nil || claims.ID == "":
		return invalidClient("exp, iat and jti are required")
	case expires.After(issued.Add(assertionLifetime)):
		return invalidClient("exp is more than 300 seconds after iat")
	case issued.After(now.Add(clockSkew)):
		return invalidClient("iat lies in the future")
	case claims.NotBefore != nil && claims.NotBefore.Time().After(now.Add(clockSkew)):
		return invalidClient("nbf lies in the future")
	case !expires.After(now):
		return invalidClient("the assertion has expired")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seenJTI[claims.ID] {
		return invalidClient("jti was used before")
	}
	e.seenJTI[claims.ID] = true
	return nil
}

// keyCache caches the client's public keys for keysLifetime, and fetches them again for an unknown key id.
type keyCache struct {
	url    string
	client *http.Client
	now    func() time.Time

	mu        sync.Mutex
	keys      jose.JSONWebKeySet
	fetchedAt time.Time
}

// find returns the RSA key with that id. It holds its lock while fetching, so that one fetch serves all waiting callers.
func (c *keyCache) find(ctx context.Context, kid string) (*rsa.PublicKey, error) {
	if kid == "" {
		return nil, fmt.Errorf("the assertion names no kid")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := c.now().Sub(c.fetchedAt) < keysLifetime
	if !fresh || len(c.keys.Key(kid)) == 0 {
		if err := c.fetch(ctx); err != nil {
			return nil, err
		}
	}
	for _, candidate := range c.keys.Key(kid) {
		key, isRSA := candidate.Key.(*rsa.PublicKey)
		usable := (candidate.Use == "" || candidate.Use == "sig") &&
			(candidate.Algorithm == "" || candidate.Algorithm == string(jose.RS384))
		if isRSA && usable && key.N.BitLen() >= minKeyBits {
			return key, nil
		}
	}
	return nil, fmt.Errorf("the JWKS has no RSA signing key of 2048 bits or more with that kid")
}

func (c *keyCache) fetch(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return fmt.Errorf("the JWKS address is no address")
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return fmt.Errorf("the JWKS cannot be reached")
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the JWKS address answered %d", answer.StatusCode)
	}
	var keys jose.JSONWebKeySet
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxBody)).Decode(&keys); err != nil {
		return fmt.Errorf("the JWKS is not a JWK Set")
	}
	c.keys, c.fetchedAt = keys, c.now()
	return nil
}
