package auth

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

// refreshLife is how long a refresh token lasts. Source: docs/decisions/authentication.md, "Refresh-token family".
const refreshLife = 24 * time.Hour

// Session is the result of a sign-in or refresh. It refuses to print.
type Session struct {
	Access           string
	AccessExpiresIn  time.Duration
	Refresh          string
	RefreshExpiresIn time.Duration
	User             *collections.User
	// TwoFactorDue is when the user must have set up a second factor; zero if the user has one or needs none.
	TwoFactorDue time.Time
}

// Format and LogValue hide the tokens.
func (Session) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[session]") }
func (Session) LogValue() slog.Value       { return slog.StringValue("[session]") }

// accessLife is how long an access token lasts. Source: spec, "Bearer tokens".
const accessLife = 15 * time.Minute

// SignAccess returns an access token of a sign-in. It becomes invalid when the user's token key changes or its encryption key leaves the ring.
// Source: docs/decisions/authentication.md, "Access token".
func (e *Engine) SignAccess(user *collections.User, family string, now time.Time) (string, error) {
	return e.signAccess(user, collections.RefreshToken{Family: family}, "", now)
}

// signAccess is SignAccess with link, the refresh token that a rotation issued together with this
// access token.
func (e *Engine) signAccess(user *collections.User, of collections.RefreshToken, link string, now time.Time) (string, error) {
	users := user.Collection()
	token := TokenClaims{
		Kind: AccessToken, Collection: users.Id, Holder: user.Id, Family: of.Family, Link: link, SecondFactor: of.SecondFactor,
		IssuedAt: now, ExpiresAt: now.Add(accessLife),
	}
	return e.signer.Sign(token, account(user.TokenKey(), users, accessLife))
}

// account returns the signing parameters of a record's tokens.
func account(tokenKey string, collection *core.Collection, life time.Duration) Account {
	return Account{TokenKey: tokenKey, Secret: collection.AuthToken.Secret, Life: life}
}

// Refresh tokens are opaque: 256 random bits behind a prefix. Source: docs/decisions/authentication.md, "Refresh token format".
const refreshPrefix = "rt_"

var refreshFormat = regexp.MustCompile(`^` + refreshPrefix + `[A-Za-z0-9_-]{43}$`)

// issue stores the next refresh token of a family, which expires no later than the family, and signs an access token.
func (e *Engine) issue(tx core.App, user *collections.User, link collections.RefreshToken, now time.Time) (Session, error) {
	token := refreshPrefix + NewSecret()
	link.UserID, link.TokenHash, link.IssuedAt = user.Id, HashSecret(token), now
	link.ExpiresAt = now.Add(refreshLife)
	if end := link.FamilyStartedAt.Add(e.options.RefreshFamilyLife); end.Before(link.ExpiresAt) {
		link.ExpiresAt = end
	}
	id, err := collections.CreateRefreshToken(tx, link)
	if err != nil {
		return Session{}, err
	}
	if link.Parent == "" {
		id = "" // a first token is not from a rotation
	}
	access, err := e.signAccess(user, link, id, now)
	if err != nil {
		return Session{}, err
	}
	session := Session{Access: access, AccessExpiresIn: accessLife, Refresh: token, RefreshExpiresIn: link.ExpiresAt.Sub(now), User: user}
	if has, err := hasSecondFactor(tx, user); err != nil || has || link.SecondFactor {
		return session, err
	}
	session.TwoFactorDue = e.twoFactorDue(authz.Role(user.Role()), user.CreatedAt())
	return session, nil
}

// twoFactorDue returns when an account without a second factor must have set one up; zero if its role needs none.
// Source: docs/decisions/authentication.md, "Second factor of the staff".
func (e *Engine) twoFactorDue(role authz.Role, created time.Time) time.Time {
	required := e.options.RequireTwoFactor
	if !slices.Contains(required.Roles, role) {
		return time.Time{}
	}
	if required.Since.After(created) {
		created = required.Since
	}
	return created.Add(required.Grace)
}

// TwoFactorRequiredFrom returns when existing accounts are rejected without the second factor that
// their role requires; zero if no role requires one.
func (e *Engine) TwoFactorRequiredFrom() time.Time {
	if len(e.options.RequireTwoFactor.Roles) == 0 {
		return time.Time{}
	}
	return e.options.RequireTwoFactor.Since.Add(e.options.RequireTwoFactor.Grace)
}

// errOtherCollection reports a token of an account in a collection other than the expected one
// (users or superusers).
var errOtherCollection = errors.New("auth: token of another collection")

// Authenticate returns the holder of an access token. It refuses with not_authenticated if there is none; token_expired; token_invalid if it is
// malformed, forged, of another kind or collection, or of an account that is inactive or deleted; and token_revoked if it was superseded. Role
// and state come from the database, not from the token. Source: docs/decisions/authentication.md, "Access token".
func (e *Engine) Authenticate(app core.App, token string, now time.Time) (Caller, error) {
	caller, err := e.AuthenticatePassively(app, token, now)
	if err != nil {
		return Caller{}, err
	}
	return caller, e.markUsed(app, caller.Family, now)
}

// AuthenticatePassively is [Engine.Authenticate] without marking the session as used: an open stream does not count as activity.
func (e *Engine) AuthenticatePassively(app core.App, token string, now time.Time) (caller Caller, err error) {
	if token == "" {
		return caller, notAuthenticated()
	}
	users, err := app.FindCachedCollectionByNameOrId(collections.Users)
	if err != nil {
		return caller, fmt.Errorf("find users: %w", err)
	}
	var user cachedUser
	read, err := e.signer.Check(token, AccessToken, now, func(t TokenClaims) (Account, error) {
		if t.Collection != users.Id {
			return Account{}, errOtherCollection
		}
		if user, err = e.cachedUser(app, t.Holder, now); collections.IsNotFound(err) {
			return Account{}, errOtherCollection
		}
		return account(user.tokenKey, users, accessLife), err
	})
	forged, expired := errors.Is(err, ErrInvalid) || errors.Is(err, errOtherCollection), errors.Is(err, ErrExpired)
	switch {
	case err != nil && !forged && !expired: // a server error, not a bad token
		return caller, err
	case forged || !user.active:
		return caller, tokenInvalid()
	case expired:
		return caller, tokenExpired()
	case slices.Contains(user.endedSessions, read.Family):
		return caller, tokenRevoked()
	}
	caller = user.caller
	caller.Family = read.Family
	caller.setPatients(user.cares, now)
	if err := e.confirmRotation(app, read, now); err != nil {
		return Caller{}, err
	}
	if !caller.TwoFactor && !read.SecondFactor {
		caller.TwoFactorDue = e.twoFactorDue(caller.Role, user.created)
		caller.NeedsTwoFactor = !caller.TwoFactorDue.IsZero() && !now.Before(caller.TwoFactorDue)
	}
	return caller, nil
}

// Evict removes a user from the cache. Call it after the commit of every save or deletion: before it, a reader could cache the old state again.
func (e *Engine) Evict(userRecordID string) { e.users.Evict(userRecordID) }

// cachedUser holds the user fields that a request needs.
type cachedUser struct {
	caller        Caller
	tokenKey      string
	active        bool
	created       time.Time
	endedSessions []string
	cares         []collections.CaregiverAccess // of a portal account
}

// maxCachedUsers bounds the cache; portal accounts may be many.
const maxCachedUsers = 20_000

// cachedUser returns the user from the cache or the database.
func (e *Engine) cachedUser(app core.App, id string, now time.Time) (cachedUser, error) {
	return e.users.Get(id, now, func() (known cachedUser, err error) {
		user, err := collections.FindUser(app, id)
		if err != nil {
			return known, err
		}
		known = cachedUser{caller: callerOf(user), tokenKey: user.TokenKey(), active: user.Active(), created: user.CreatedAt()}
		if known.endedSessions, err = collections.EndedSessions(app, id); err != nil {
			return known, err
		}
		if known.caller.Role == authz.Patient {
			if known.cares, err = collections.CaregiverAccesses(app, id); err != nil {
				return known, err
			}
		}
		known.caller.TwoFactor, err = hasSecondFactor(app, user)
		return known, err
	})
}

// activity holds the time of each family's last stored request.
type activity struct {
	lock  sync.Mutex
	noted map[string]time.Time
}

// markUsed stores the time of a family's request for the idle limit, at most once per tenth of the limit to save writes.
func (e *Engine) markUsed(app core.App, family string, now time.Time) error {
	if e.options.IdleLogout <= 0 || family == "" || !e.activity.isDue(family, now, e.options.IdleLogout/10) {
		return nil
	}
	return collections.MarkRefreshFamilyUsed(app, family, now)
}

// isDue reports whether a family's last stored request is older than within, and if so counts the current one as stored.
func (a *activity) isDue(family string, now time.Time, within time.Duration) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	if last, ok := a.noted[family]; ok && now.Sub(last) < within {
		return false
	}
	if a.noted == nil || len(a.noted) >= maxCachedUsers {
		a.noted = map[string]time.Time{}
	}
	a.noted[family] = now
	return true
}
