// Package tokens knows how an access token is signed and when it is good: a JSON Web Token (RFC 7519) under HS256, whose key is made of
// a secret of the encryption keys, which the database does not hold, and of two secrets of the account, which it does. So a copy of the
// database signs nothing; whoever changes the account's secrets ends its tokens; and an encryption key that leaves the ring takes the
// tokens that it signed with it. Claims are those of PocketBase's own tokens, for its SDK and its dashboard read them.
//
// The age is checked by the token's iat and by how long the account's kind may hold one, whatever exp says. The package refuses to know
// accounts and where they are kept.
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

// What can be wrong with a token. Expired is said only of one that was good.
var (
	ErrInvalid = errors.New("tokens: not a token of ours")
	ErrExpired = errors.New("tokens: the token has expired")
)

// Kinds of token.
const (
	AccessToken       = "auth"   // opens the API; the word is PocketBase's
	SecondFactorToken = "signin" // says that the password was right, and a second factor is to come
	ClientToken       = "client" // opens to a machine what its scope names
)

// label names the derived secrets among those of the ring.
const label = "access token"

// clockSkew is how far in the future a token may have been issued: the clock may have been set back since.
const clockSkew = time.Minute

// Ring is the part of the key ring that signs.
type Ring interface {
	PrimaryKeyID() string
	Derive(keyID, label string) (secret []byte, ok bool)
}

// TokenClaims is what a token says, to the second.
type TokenClaims struct {
	Kind       string
	Collection string // id of the account's collection
	Holder     string // record id of the account
	Family     string // of the sign-in, for users
	Link       string // the refresh token that was handed out with it, where both came of a swap
	Scope      string // of a client's, separated by spaces
	// SecondFactor says that the sign-in took one at the identity provider.
	SecondFactor bool
	SignedInAt   time.Time
	IssuedAt     time.Time
	ExpiresAt    time.Time
}

// Account is what signing needs of an account. It refuses to print.
type Account struct {
	TokenKey string // changes with the password
	Secret   string // of the collection
	Life     time.Duration
}

// Format shows nothing of the secrets.
func (Account) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[account]") }

// LogValue shows nothing of the secrets.
func (Account) LogValue() slog.Value { return slog.StringValue("[account]") }

// Signer signs and checks. It is safe for concurrent use.
type Signer struct {
	ring  Ring
	known memory
}

// NewSigner signs under the first key of the ring, and knows tokens of all its keys.
func NewSigner(ring Ring) *Signer { return &Signer{ring: ring} }

// claims are those of PocketBase's tokens, and ours, which it ignores. The names of the times are those of RFC 7519 and of OpenID Connect.
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

// The rest of jwt.Claims.
func (c claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.Expires, nil }
func (c claims) GetIssuedAt() (*jwt.NumericDate, error)       { return c.Issued, nil }
func (claims) GetNotBefore() (*jwt.NumericDate, error)        { return nil, nil }
func (claims) GetIssuer() (string, error)                     { return "", nil }
func (claims) GetSubject() (string, error)                    { return "", nil }
func (claims) GetAudience() (jwt.ClaimStrings, error)         { return nil, nil }

// Sign writes a token that is issued now, at t.IssuedAt.
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
	secret, ok := s.ring.Derive(keyID, label)
	if !ok || account.TokenKey == "" {
		return "", errors.New("tokens: no secret to sign with")
	}
	signed, err := unsigned.SignedString(accountKey(secret, t, account))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return signed, nil
}

// Expiry is checked by us, against the time we are handed. Strict decoding leaves each token one spelling.
var parser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())

// Check reads a token of a kind, and asks for the account that it names. What find says is wrong is returned as it is; everything else that is
// wrong is [ErrInvalid], or [ErrExpired] for a good token that is too old.
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

// read is a token that was signed for the account as it is now.
func (s *Signer) read(token, kind string, find func(TokenClaims) (Account, error)) (t TokenClaims, account Account, err error) {
	if t, signedFor, seen := s.known.find(token); seen && t.Kind == kind {
		account, err := find(t)
		if err != nil || account.TokenKey == signedFor.TokenKey && account.Secret == signedFor.Secret {
			return t, account, err
		}
		return t, account, ErrInvalid
	}
	var c claims
	var unknown error
	_, err = parser.ParseWithClaims(token, &c, func(parsed *jwt.Token) (any, error) {
		if c.Type != kind || c.UserID == "" || c.Issued == nil || c.Expires == nil {
			return nil, ErrInvalid
		}
		keyID, _ := parsed.Header["kid"].(string)
		secret, ours := s.ring.Derive(keyID, label)
		if !ours {
			return nil, ErrInvalid // before anything is looked up
		}
		t = c.token()
		if account, unknown = find(t); unknown != nil {
			return nil, unknown
		}
		if account.TokenKey == "" {
			return nil, ErrInvalid
		}
		return accountKey(secret, t, account), nil
	})
	switch {
	case unknown != nil:
		return t, account, unknown
	case err != nil:
		return t, account, ErrInvalid
	}
	s.known.remember(token, t, account)
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

// accountKey is what a token of an account is signed with.
func accountKey(secret []byte, t TokenClaims, account Account) []byte {
	text := make([]byte, 0, 256)
	for _, part := range [...]string{t.Kind, t.Collection, t.Holder, account.TokenKey, account.Secret} {
		text = append(strconv.AppendInt(text, int64(len(part)), 10), ':') // with their lengths, no two lists of parts read the same
		text = append(text, part...)
	}
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(text) // never fails
	return mac.Sum(nil)
}

// mostKnown bounds the memory; when it is full it starts anew.
const mostKnown = 20_000

// memory remembers which tokens were found good, and for which secrets of their accounts, so that a signature is checked once and not with every
// request. When a token ends, and whether the account has changed, is asked each time. The zero value is ready.
type memory struct {
	lock  sync.RWMutex
	known map[string]goodToken
}

type goodToken struct {
	token     TokenClaims
	signedFor Account
}

func (m *memory) find(token string) (t TokenClaims, signedFor Account, seen bool) {
	m.lock.RLock()
	defer m.lock.RUnlock()
	good, seen := m.known[token]
	return good.token, good.signedFor, seen
}

func (m *memory) remember(token string, t TokenClaims, signedFor Account) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.known == nil || len(m.known) >= mostKnown {
		m.known = map[string]goodToken{}
	}
	m.known[token] = goodToken{t, signedFor}
}
