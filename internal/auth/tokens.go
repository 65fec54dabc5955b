package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/tokens"
)

// refreshLife is how long a refresh token lasts. Source: docs/decisions/authentication.md, "Refresh-token family".
const refreshLife = 24 * time.Hour

// Session is what signing in or refreshing gives. It refuses to print.
type Session struct {
	Access           string
	AccessExpiresIn  time.Duration
	Refresh          string
	RefreshExpiresIn time.Duration
	User             *collections.User
}

// Format shows nothing of the tokens.
func (Session) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[session]") }

// LogValue shows nothing of the tokens.
func (Session) LogValue() slog.Value { return slog.StringValue("[session]") }

// accessLife is how long an access token lasts. Source: spec, "Bearer tokens".
const accessLife = 15 * time.Minute

// SignAccess makes an access token of a sign-in; it ends with the user's token key and with the encryption key, whichever comes first.
// Source: docs/decisions/authentication.md, "Access token".
func (e *Engine) SignAccess(user *collections.User, family string, now time.Time) (string, error) {
	users := user.Collection()
	token := tokens.Token{
		Kind: tokens.Access, Collection: users.Id, Holder: user.Id, Family: family, IssuedAt: now, ExpiresAt: now.Add(accessLife),
	}
	return e.signer.Sign(token, account(user.TokenKey(), users, accessLife))
}

// account is what tokens of a record are signed with.
func account(tokenKey string, collection *core.Collection, life time.Duration) tokens.Account {
	return tokens.Account{TokenKey: tokenKey, Secret: collection.AuthToken.Secret, Life: life}
}

// Refresh tokens are opaque: 256 random bits behind a prefix. Source: docs/decisions/authentication.md, "Refresh token format".
const refreshPrefix = "rt_"

var refreshFormat = regexp.MustCompile(`^` + refreshPrefix + `[A-Za-z0-9_-]{43}$`)

func newRefreshToken() string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	return refreshPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
}

// randomHash is what is stored of a token or challenge: it is random, so that a hash without salt or key is enough.
func randomHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// startFamily begins the tokens of a sign-in.
func (e *Engine) startFamily(tx core.App, user *collections.User, deviceID string, from audit.Origin, now time.Time) (Session, error) {
	return e.issue(tx, user, collections.RefreshToken{
		Family:          uuid.NewString(),
		DeviceID:        deviceID,
		FamilyStartedAt: now,
		SourceIP:        from.Address,
	}, now)
}

// continueFamily replaces a rotated token by the next.
func (e *Engine) continueFamily(tx core.App, user *collections.User, parent collections.RefreshToken, from audit.Origin, now time.Time) (Session, error) {
	return e.issue(tx, user, collections.RefreshToken{
		Family:          parent.Family,
		Parent:          parent.ID,
		DeviceID:        parent.DeviceID,
		FamilyStartedAt: parent.FamilyStartedAt,
		SourceIP:        from.Address,
	}, now)
}

// issue stores the next refresh token of a family, which never outlives it, and signs an access token beside it.
func (e *Engine) issue(tx core.App, user *collections.User, link collections.RefreshToken, now time.Time) (Session, error) {
	token := newRefreshToken()
	link.UserID, link.TokenHash, link.IssuedAt = user.Id, randomHash(token), now
	link.ExpiresAt = now.Add(refreshLife)
	if end := link.FamilyStartedAt.Add(e.options.RefreshFamilyLife); end.Before(link.ExpiresAt) {
		link.ExpiresAt = end
	}
	if err := collections.CreateRefreshToken(tx, link); err != nil {
		return Session{}, err
	}
	access, err := e.SignAccess(user, link.Family, now)
	if err != nil {
		return Session{}, err
	}
	return Session{Access: access, AccessExpiresIn: accessLife, Refresh: token, RefreshExpiresIn: link.ExpiresAt.Sub(now), User: user}, nil
}
