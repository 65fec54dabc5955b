package sandbox

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	// assertionLifetime bounds exp - iat. Source: docs/decisions/emr.md, "Backend flow scopes and keys".
	assertionLifetime = 300 * time.Second
	// clockSkew is how far ahead of ours the client's clock may run.
	clockSkew = 30 * time.Second
	// keysLifetime is how long a fetched JWKS is believed.
	keysLifetime = 5 * time.Minute
	minKeyBits   = 2048
)

// checkAssertion verifies the client assertion of a token request. Source: RFC 7523 sections 2.2 and 3; SMART App
// Launch, client-confidential-asymmetric.
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

// keyCache holds the client's public keys for keysLifetime, and asks again at once for a key it does not know.
type keyCache struct {
	url    string
	client *http.Client
	now    func() time.Time

	mu        sync.Mutex
	keys      jose.JSONWebKeySet
	fetchedAt time.Time
}

// find returns the RSA key of that id. It holds its lock while fetching, so that one fetch serves all who wait.
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
