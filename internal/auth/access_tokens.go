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
	return e.signAccess(user, collections.RefreshToken{Family: family}, "", now)
}

// signAccess is SignAccess for a token that came of swapping a refresh token: link is the one that was handed out with it.
func (e *Engine) signAccess(user *collections.User, of collections.RefreshToken, link string, now time.Time) (string, error) {
	users := user.Collection()
	token := TokenClaims{
		Kind: AccessToken, Collection: users.Id, Holder: user.Id, Family: of.Family, Link: link, SecondFactor: of.SecondFactor,
		IssuedAt: now, ExpiresAt: now.Add(accessLife),
	}
	return e.signer.Sign(token, account(user.TokenKey(), users, accessLife))
}

// account is what tokens of a record are signed with.
func account(tokenKey string, collection *core.Collection, life time.Duration) Account {
	return Account{TokenKey: tokenKey, Secret: collection.AuthToken.Secret, Life: life}
}

// Refresh tokens are opaque: 256 random bits behind a prefix. Source: docs/decisions/authentication.md, "Refresh token format".
const refreshPrefix = "rt_"

var refreshFormat = regexp.MustCompile(`^` + refreshPrefix + `[A-Za-z0-9_-]{43}$`)

// issue stores the next refresh token of a family, which never outlives it, and signs an access token beside it.
func (e *Engine) issue(tx core.App, user *collections.User, link collections.RefreshToken, now time.Time) (Session, error) {
	token := refreshPrefix + Random()
	link.UserID, link.TokenHash, link.IssuedAt = user.Id, Hash(token), now
	link.ExpiresAt = now.Add(refreshLife)
	if end := link.FamilyStartedAt.Add(e.options.RefreshFamilyLife); end.Before(link.ExpiresAt) {
		link.ExpiresAt = end
	}
	id, err := collections.CreateRefreshToken(tx, link)
	if err != nil {
		return Session{}, err
	}
	if link.Parent == "" {
		id = "" // a sign-in is not swapped for anything
	}
	access, err := e.signAccess(user, link, id, now)
	if err != nil {
		return Session{}, err
	}
	return Session{Access: access, AccessExpiresIn: accessLife, Refresh: token, RefreshExpiresIn: link.ExpiresAt.Sub(now), User: user}, nil
}

// errNotOurs is said of tokens that are not of an account of the collection asked for, users or superusers.
var errNotOurs = errors.New("not a token of such an account")

// Authenticate returns the holder of an access token. It refuses with not_authenticated when there is none, with
// token_expired, or with token_invalid: malformed, forged, of another kind or collection, of an account that is
// inactive or gone; or with token_revoked, when another was given in its place. Role and state are the database's, not the token's. Source: docs/decisions/authentication.md, "Access token".
func (e *Engine) Authenticate(app core.App, token string, now time.Time) (Caller, error) {
	caller, err := e.Check(app, token, now)
	if err != nil {
		return Caller{}, err
	}
	return caller, e.noteUse(app, caller.Family, now)
}

// Check is [Engine.Authenticate] for one who only listens: an open stream does not keep a sign-in in use.
func (e *Engine) Check(app core.App, token string, now time.Time) (caller Caller, err error) {
	if token == "" {
		return caller, notAuthenticated()
	}
	users, err := app.FindCachedCollectionByNameOrId(collections.Users)
	if err != nil {
		return caller, fmt.Errorf("find users: %w", err)
	}
	var user knownUser
	read, err := e.signer.Check(token, AccessToken, now, func(t TokenClaims) (Account, error) {
		if t.Collection != users.Id {
			return Account{}, errNotOurs
		}
		if user, err = e.knownUser(app, t.Holder, now); collections.IsNotFound(err) {
			return Account{}, errNotOurs
		}
		return account(user.tokenKey, users, accessLife), err
	})
	forged, expired := errors.Is(err, ErrInvalid) || errors.Is(err, errNotOurs), errors.Is(err, ErrExpired)
	switch {
	case err != nil && !forged && !expired: // ours, not the token's
		return caller, err
	case forged || !user.active:
		return caller, tokenInvalid()
	case expired:
		return caller, tokenExpired()
	}
	caller = user.caller
	caller.Family = read.Family
	if err := e.noteArrival(app, read, now); err != nil {
		return Caller{}, err
	}
	caller.NeedsTwoFactor = !caller.TwoFactor && !read.SecondFactor && slices.Contains(e.options.RequireTwoFactor, caller.Role)
	return caller, nil
}

// Forget drops what is remembered of a user. It is called after every save or deletion of a user has been committed:
// before the commit, the old state could be read and remembered again.
func (e *Engine) Forget(userRecordID string) { e.users.Forget(userRecordID) }

// knownUser is what a request needs to know of a user.
type knownUser struct {
	caller   Caller
	tokenKey string
	active   bool
}

// rememberedUsers bounds the memory: portal accounts may be many.
const rememberedUsers = 20_000

// knownUser returns what a request needs to know of a user.
func (e *Engine) knownUser(app core.App, id string, now time.Time) (knownUser, error) {
	return e.users.Find(id, now, func() (known knownUser, err error) {
		user, err := collections.FindUser(app, id)
		if err != nil {
			return known, err
		}
		known = knownUser{caller: callerOf(user), tokenKey: user.TokenKey(), active: user.Active()}
		known.caller.TwoFactor, err = hasSecondFactor(app, user)
		return known, err
	})
}

// activity remembers when the last request of a family was noted in the database.
type activity struct {
	lock  sync.Mutex
	noted map[string]time.Time
}

// noteUse notes a request of a family for the idle limit. A tenth of the limit is exact enough, and spares the writes.
func (e *Engine) noteUse(app core.App, family string, now time.Time) error {
	if e.options.IdleLogout <= 0 || family == "" || !e.noted.due(family, now, e.options.IdleLogout/10) {
		return nil
	}
	return collections.MarkRefreshFamilyUsed(app, family, now)
}

// due reports whether a family was not noted within the given time, and counts it as noted now.
func (a *activity) due(family string, now time.Time, within time.Duration) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	if last, ok := a.noted[family]; ok && now.Sub(last) < within {
		return false
	}
	if a.noted == nil || len(a.noted) >= rememberedUsers {
		a.noted = map[string]time.Time{}
	}
	a.noted[family] = now
	return true
}
