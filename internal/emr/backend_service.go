package emr

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"

	"github.com/vigilhealth/vigil/internal/phi"
)

const (
	assertionLifetime = 240 * time.Second
	assertionType     = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

// tokenSource provides the access token of a call: the service's own, or a connected person's.
type tokenSource interface {
	// token returns a valid token.
	token(ctx context.Context) (string, *Error)
	// reject reports that the EMR refused the token.
	reject(token string)
}

// unconfigured is the token source of a client without settings.
type unconfigured struct{}

func (unconfigured) token(context.Context) (string, *Error) { return "", notConfigured() }
func (unconfigured) reject(string)                          {}

// Grant is the result of a sign-in, without the token itself.
type Grant struct {
	TokenType string
	ExpiresIn time.Duration
	Scope     string // as granted; "" when the EMR omits it
	At        time.Time
}

// SignIn requests a new token, even if a valid one is cached, and uses it from then on.
func (c *Client) SignIn(ctx context.Context) (Grant, error) {
	if c.service == nil {
		return Grant{}, notConfigured()
	}
	got, e := c.service.fetch(ctx, true)
	if e != nil {
		return Grant{}, e
	}
	return got.Grant, nil
}

// LastSignIn returns the last successful sign-in of the service; its time is zero if there was none.
func (c *Client) LastSignIn() Grant {
	if c.service == nil {
		return Grant{}
	}
	if g := c.service.lastGrant(); g != nil {
		return g.Grant
	}
	return Grant{}
}

// backendService signs in as the service itself.
// Source: SMART App Launch, Backend Services and Client Authentication: Asymmetric; RFC 7523; RFC 6749, section 2.3.1.
type backendService struct {
	transport *transport
	tokenURL  string
	clientID  string
	key       *rsa.PrivateKey
	secret    phi.Text // "" signs in by an assertion
	scopes    []string
	vault     Vault
	audience  string

	once   sync.Once
	valid  atomic.Pointer[grant]
	last   atomic.Pointer[grant] // kept after the EMR refuses it
	flight singleflight.Group
}

type grant struct {
	Grant
	secret   string
	useUntil time.Time
}

func grantOf(t Tokens) *grant {
	return &grant{
		Grant:  Grant{TokenType: "bearer", ExpiresIn: t.ExpiresAt.Sub(t.ObtainedAt), Scope: t.Scope, At: t.ObtainedAt},
		secret: t.Access.Reveal(), useUntil: t.renewAt(),
	}
}

// lastGrant returns the last grant; before the first sign-in of this process, that of an earlier one.
func (b *backendService) lastGrant() *grant {
	b.once.Do(func() {
		t, err := loadTokens(b.vault, BackendServicesFlow, b.audience)
		if err != nil || t.Access == "" {
			return // a new sign-in replaces it
		}
		g := grantOf(t)
		if b.last.CompareAndSwap(nil, g) {
			b.valid.CompareAndSwap(nil, g)
		}
	})
	return b.last.Load()
}

func (b *backendService) current() *grant {
	b.lastGrant()
	if g := b.valid.Load(); g != nil && b.transport.now().Before(g.useUntil) {
		return g
	}
	return nil
}

func (b *backendService) token(ctx context.Context) (string, *Error) {
	if g := b.current(); g != nil {
		return g.secret, nil
	}
	g, e := b.fetch(ctx, false)
	if e != nil {
		return "", e
	}
	return g.secret, nil
}

// reject discards the token unless it has been replaced: many refusals of one token cause one sign-in.
func (b *backendService) reject(token string) {
	if g := b.valid.Load(); g != nil && g.secret == token {
		b.valid.CompareAndSwap(g, nil)
	}
}

// fetch signs in; concurrent callers share the result.
func (b *backendService) fetch(ctx context.Context, always bool) (*grant, *Error) {
	return shareCall(ctx, &b.flight, b.transport, func(ctx context.Context) (*grant, *Error) {
		if g := b.current(); g != nil && !always {
			return g, nil // another caller fetched it
		}
		t, e := b.transport.requestToken(ctx, b.request)
		if e != nil {
			return nil, e
		}
		t.Audience = b.audience
		g := grantOf(t)
		b.last.Store(g)
		b.valid.Store(g)
		if b.vault != nil {
			_ = b.vault.Store(BackendServicesFlow, t) // if storing fails, a token is requested again after a restart
		}
		return g, nil
	})
}

// shareCall runs work once for all concurrent callers. A caller that cancels does not end it for the others.
func shareCall[T any](ctx context.Context, flight *singleflight.Group, l *transport, work func(context.Context) (T, *Error)) (result T, e *Error) {
	done := flight.DoChan("", func() (any, error) {
		got, e := work(context.WithoutCancel(ctx))
		if e != nil {
			return nil, e
		}
		return got, nil
	})
	select {
	case outcome := <-done:
		if e, failed := errors.AsType[*Error](outcome.Err); failed {
			own := *e // each caller sets its own attempts
			return result, &own
		}
		return outcome.Val.(T), nil
	case <-ctx.Done():
		return result, noAnswer(ctx, context.Cause(ctx), false, l.timeout)
	}
}

// request builds a token request for the service itself, with the client secret or a fresh assertion.
func (b *backendService) request() (tokenRequest, error) {
	if secret := b.secret.Reveal(); secret != "" {
		return tokenRequest{
			Config: clientcredentials.Config{
				TokenURL: b.tokenURL, ClientID: b.clientID, ClientSecret: secret, Scopes: b.scopes, AuthStyle: oauth2.AuthStyleInHeader,
			},
			secrets: []string{secret},
		}, nil
	}
	signed, err := Assertion(b.clientID, b.tokenURL, b.key, b.transport.now())
	return tokenRequest{
		Config: clientcredentials.Config{
			TokenURL: b.tokenURL, Scopes: b.scopes, AuthStyle: oauth2.AuthStyleInParams, // the assertion names the client
			EndpointParams: url.Values{"client_assertion_type": {assertionType}, "client_assertion": {signed}},
		},
		secrets: []string{signed},
	}, err
}

// Assertion returns a client's signed proof of identity. Source: docs/decisions/emr.md, "Backend flow scopes and keys".
func Assertion(clientID, tokenURL string, key *rsa.PrivateKey, now time.Time) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodRS384, jwt.MapClaims{
		"iss": clientID,
		"sub": clientID,
		"aud": tokenURL,
		"iat": now.Unix(),
		"exp": now.Add(assertionLifetime).Unix(),
		"jti": uuid.NewString(),
	})
	token.Header["kid"] = KeyID(&key.PublicKey)
	signed, err := token.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign client assertion: %w", err)
	}
	return signed, nil
}

// jwk is a public key as SMART requires it. Source: RFC 7517; docs/decisions/emr.md, "Backend flow scopes and keys".
type jwk struct {
	Kty    string   `json:"kty"`
	Use    string   `json:"use"`
	Alg    string   `json:"alg"`
	Kid    string   `json:"kid"`
	N      string   `json:"n"`
	E      string   `json:"e"`
	KeyOps []string `json:"key_ops"`
}

// JWKS returns the key set that the EMR verifies assertions with: the public halves of the keys, current first. Nil keys are left out.
func JWKS(keys ...*rsa.PrivateKey) []byte {
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: []jwk{}}
	for _, key := range keys {
		if key == nil {
			continue
		}
		n, e := members(&key.PublicKey)
		set.Keys = append(set.Keys, jwk{
			Kty: "RSA", Use: "sig", Alg: "RS384", Kid: KeyID(&key.PublicKey), N: n, E: e, KeyOps: []string{"verify"},
		})
	}
	out, _ := json.Marshal(set) // strings cannot fail to encode
	return out
}

// KeyID returns the SHA-256 thumbprint of a public key. Source: RFC 7638.
func KeyID(key *rsa.PublicKey) string {
	n, e := members(key)
	// The members in lexical order without white space; base64url needs no escaping.
	sum := sha256.Sum256([]byte(`{"e":"` + e + `","kty":"RSA","n":"` + n + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func members(key *rsa.PublicKey) (n, e string) {
	encode := base64.RawURLEncoding.EncodeToString
	return encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes())
}
