package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Errors of a token. ErrExpired is returned only for a token that was valid.
var (
	ErrInvalid = errors.New("auth: invalid token")
	ErrExpired = errors.New("auth: the token has expired")
)

// Kinds of tokens.
const (
	AccessToken       = "auth"   // grants access to the API; PocketBase's name
	SecondFactorToken = "signin" // stands for a right password while the second factor is missing
	ClientToken       = "client" // grants a machine client its scopes
)

// keyLabel is the label under which the ring derives the signing secret.
const keyLabel = "access token"

// clockSkew is how far in the future a token may have been issued, in case the clock was set back since.
const clockSkew = time.Minute

// Ring is the part of the key ring that derives signing secrets.
type Ring interface {
	PrimaryKeyID() string
	Derive(keyID, label string) (secret []byte, ok bool)
}

// TokenClaims are the contents of a token. Times are whole seconds.
type TokenClaims struct {
	Kind       string
	Collection string // id of the account's collection
	Holder     string // record id of the account
	Family     string // refresh-token family, for users
	Link       string // id of the refresh token issued with it in a rotation
	Scope      string // of a client, separated by spaces
	// SecondFactor reports that the identity provider required a second factor.
	SecondFactor bool
	SignedInAt   time.Time
	IssuedAt     time.Time
	ExpiresAt    time.Time
}

// Account holds the signing parameters of an account. It refuses to print.
type Account struct {
	TokenKey string // changes with the password
	Secret   string // of the collection
	Life     time.Duration
}

// Format and LogValue hide the secrets.
func (Account) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[account]") }
func (Account) LogValue() slog.Value       { return slog.StringValue("[account]") }

// Signer signs and verifies access tokens: JSON Web Tokens (RFC 7519) under HS256. The key combines a secret derived from an encryption key,
// which the database does not hold, with two secrets of the account, which it does. So a copy of the database cannot sign tokens, changing the
// account's secrets revokes its tokens, and removing an encryption key from the ring revokes the tokens signed under it. The claims are those of
// PocketBase's own tokens, because its SDK and dashboard read them. Signer is safe for concurrent use.
type Signer struct {
	ring     Ring
	verified verifiedTokens
}

// NewSigner returns a Signer that signs under the primary key of the ring and verifies tokens of all its keys.
func NewSigner(ring Ring) *Signer { return &Signer{ring: ring} }

// claims are the claims of PocketBase's tokens and additional ones, which PocketBase ignores. Time claims have the names of RFC 7519 and OpenID
// Connect.
type claims struct {
	UserID       string           `json:"id"`
	Type         string           `json:"type"`
	CollectionID string           `json:"collectionId"`
	Refreshable  bool             `json:"refreshable"`
	Family       string           `json:"sid,omitempty"`
	Link         string           `json:"jti,omitempty"`
	Scope        string           `json:"scope,omitempty"`
	SecondFactor bool             `json:"mfa,omitempty"`
	SignedIn     *jwt.NumericDate `json:"auth_time,omitempty"`
	Issued       *jwt.NumericDate `json:"iat"`
	Expires      *jwt.NumericDate `json:"exp"`
}

// The other methods of jwt.Claims.
func (c claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.Expires, nil }
func (c claims) GetIssuedAt() (*jwt.NumericDate, error)       { return c.Issued, nil }
func (claims) GetNotBefore() (*jwt.NumericDate, error)        { return nil, nil }
func (claims) GetIssuer() (string, error)                     { return "", nil }
func (claims) GetSubject() (string, error)                    { return "", nil }
func (claims) GetAudience() (jwt.ClaimStrings, error)         { return nil, nil }

// Sign returns a token issued at t.IssuedAt.
func (s *Signer) Sign(t TokenClaims, account Account) (string, error) {
	c := claims{
		UserID: t.Holder, Type: t.Kind, CollectionID: t.Collection, Refreshable: t.Kind == AccessToken, Family: t.Family, Link: t.Link, Scope: t.Scope, SecondFactor: t.SecondFactor,
		Issued: jwt.NewNumericDate(t.IssuedAt), Expires: jwt.NewNumericDate(t.ExpiresAt),
	}
	if !t.SignedInAt.IsZero() {
		c.SignedIn = jwt.NewNumericDate(t.SignedInAt)
	}
	unsigned := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
	keyID := s.ring.PrimaryKeyID()
	unsigned.Header["kid"] = keyID
	secret, ok := s.ring.Derive(keyID, keyLabel)
	if !ok || account.TokenKey == "" {
		return "", errors.New("auth: no secret to sign the token")
	}
	signed, err := unsigned.SignedString(accountKey(secret, t, account))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return signed, nil
}

// Check verifies the expiry against the caller's clock. Strict decoding allows one encoding per token.
var tokenParser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())

// Check verifies a token of the given kind; find returns the account that it names. An error of find is returned unchanged; every other failure
// is [ErrInvalid], or [ErrExpired] for a valid token that is too old. The age is limited by iat and the account's Life, regardless of exp.
func (s *Signer) Check(token, kind string, now time.Time, find func(TokenClaims) (Account, error)) (TokenClaims, error) {
	t, account, err := s.read(token, kind, find)
	switch {
	case err != nil:
		return t, err
	case t.IssuedAt.After(now.Add(clockSkew)), t.ExpiresAt.Sub(t.IssuedAt) > account.Life:
		return t, ErrInvalid
	case !now.Before(t.ExpiresAt):
		return t, ErrExpired
	}
	return t, nil
}

// read verifies the signature with the account's current secrets.
func (s *Signer) read(token, kind string, find func(TokenClaims) (Account, error)) (t TokenClaims, account Account, err error) {
	if t, signedFor, seen := s.verified.find(token); seen && t.Kind == kind {
		account, err := find(t)
		if err != nil || account.TokenKey == signedFor.TokenKey && account.Secret == signedFor.Secret {
			return t, account, err
		}
		return t, account, ErrInvalid
	}
	var c claims
	var findErr error
	_, err = tokenParser.ParseWithClaims(token, &c, func(parsed *jwt.Token) (any, error) {
		if c.Type != kind || c.UserID == "" || c.Issued == nil || c.Expires == nil {
			return nil, ErrInvalid
		}
		keyID, _ := parsed.Header["kid"].(string)
		secret, ok := s.ring.Derive(keyID, keyLabel)
		if !ok {
			return nil, ErrInvalid // before any lookup
		}
		t = c.token()
		if account, findErr = find(t); findErr != nil {
			return nil, findErr
		}
		if account.TokenKey == "" {
			return nil, ErrInvalid
		}
		return accountKey(secret, t, account), nil
	})
	switch {
	case findErr != nil:
		return t, account, findErr
	case err != nil:
		return t, account, ErrInvalid
	}
	s.verified.add(token, t, account)
	return t, account, nil
}

func (c claims) token() TokenClaims {
	t := TokenClaims{
		Kind: c.Type, Collection: c.CollectionID, Holder: c.UserID, Family: c.Family, Link: c.Link, Scope: c.Scope, SecondFactor: c.SecondFactor,
		IssuedAt: c.Issued.UTC(), ExpiresAt: c.Expires.UTC(),
	}
	if c.SignedIn != nil {
		t.SignedInAt = c.SignedIn.UTC()
	}
	return t
}

// accountKey returns the signing key of an account's tokens.
func accountKey(secret []byte, t TokenClaims, account Account) []byte {
	text := make([]byte, 0, 256)
	for _, part := range [...]string{t.Kind, t.Collection, t.Holder, account.TokenKey, account.Secret} {
		text = append(strconv.AppendInt(text, int64(len(part)), 10), ':') // length prefixes make the encoding unambiguous
		text = append(text, part...)
	}
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(text) // never fails
	return mac.Sum(nil)
}

// maxVerifiedTokens bounds the cache. When it is full, it is cleared.
const maxVerifiedTokens = 20_000

// verifiedTokens caches verified tokens with the account secrets they were verified under, so that the signature is checked once per token.
// Expiry and changes of the account are checked on every request. The zero value is ready to use.
type verifiedTokens struct {
	lock    sync.RWMutex
	byToken map[string]verifiedToken
}

type verifiedToken struct {
	token     TokenClaims
	signedFor Account
}

func (vt *verifiedTokens) find(token string) (t TokenClaims, signedFor Account, seen bool) {
	vt.lock.RLock()
	defer vt.lock.RUnlock()
	good, seen := vt.byToken[token]
	return good.token, good.signedFor, seen
}

func (vt *verifiedTokens) add(token string, t TokenClaims, signedFor Account) {
	vt.lock.Lock()
	defer vt.lock.Unlock()
	if vt.byToken == nil || len(vt.byToken) >= maxVerifiedTokens {
		vt.byToken = map[string]verifiedToken{}
	}
	vt.byToken[token] = verifiedToken{t, signedFor}
}
