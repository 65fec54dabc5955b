package auth

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/tokens"
)

// errNotOurs is said of tokens that are not of an account of the collection asked for, users or superusers.
var errNotOurs = errors.New("not a token of such an account")

// Authenticate returns the holder of an access token. It refuses with not_authenticated when there is none, with
// token_expired, or with token_invalid: malformed, forged, of another kind or collection, of an account that is
// inactive or gone. Role and state are the database's, not the token's. Source: docs/decisions/authentication.md, "Access token".
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
	read, err := e.signer.Check(token, tokens.Access, now, func(t tokens.Token) (tokens.Account, error) {
		if t.Collection != users.Id {
			return tokens.Account{}, errNotOurs
		}
		if user, err = e.users.find(app, t.Holder, now); collections.Missing(err) {
			return tokens.Account{}, errNotOurs
		}
		return account(user.tokenKey, users, accessLife), err
	})
	forged, expired := errors.Is(err, tokens.ErrInvalid) || errors.Is(err, errNotOurs), errors.Is(err, tokens.ErrExpired)
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
	caller.NeedsTwoFactor = !caller.TwoFactor && slices.Contains(e.options.RequireTwoFactor, caller.Role)
	return caller, nil
}

// Forget drops what is remembered of a user. It is called after every save or deletion of a user has been committed:
// before the commit, the old state could be read and remembered again.
func (e *Engine) Forget(userRecordID string) { e.users.forget(userRecordID) }

// knownUser is what a request needs to know of a user.
type knownUser struct {
	caller   Caller
	tokenKey string
	active   bool
	readAt   time.Time
}

// Bounds of the memory: another process may change a user without telling us, and portal accounts may be many.
const (
	rememberedFor   = 30 * time.Second
	rememberedUsers = 20_000
)

// userCache remembers users by record id.
type userCache struct {
	lock  sync.RWMutex
	known map[string]knownUser
	// forgotten counts calls of forget: what was read before such a call must not be remembered after it.
	forgotten uint64
}

func (c *userCache) find(app core.App, id string, now time.Time) (knownUser, error) {
	c.lock.RLock()
	known, ok := c.known[id]
	forgotten := c.forgotten
	c.lock.RUnlock()
	if ok && now.Sub(known.readAt) < rememberedFor {
		return known, nil
	}
	user, err := collections.FindUser(app, id)
	if err != nil {
		return knownUser{}, err
	}
	known = knownUser{caller: callerOf(user), tokenKey: user.TokenKey(), active: user.Active(), readAt: now}
	if known.caller.TwoFactor, err = hasSecondFactor(app, user); err != nil {
		return knownUser{}, err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.forgotten == forgotten {
		if c.known == nil || len(c.known) >= rememberedUsers {
			c.known = map[string]knownUser{}
		}
		c.known[id] = known
	}
	return known, nil
}

func (c *userCache) forget(id string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.known, id)
	c.forgotten++
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
	return collections.NoteRefreshFamilyUsed(app, family, now)
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
