package auth

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Expiry is checked by us, against the time we are handed. Strict decoding leaves each token one spelling.
var bearerParser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())

var errNotOurs = errors.New("not an access token of a user")

// Authenticate returns the holder of an access token. It refuses with not_authenticated when there is none, with
// token_expired, or with token_invalid: malformed, forged, of another kind or collection, of an account that is
// inactive or gone. Role and state are the database's, not the token's. Source: docs/decisions.md, "Access token".
func (e *Engine) Authenticate(app core.App, token string, now time.Time) (Caller, error) {
	caller, family, err := e.holder(app, token, now)
	if err != nil {
		return Caller{}, err
	}
	return caller, e.noteUse(app, family, now)
}

// Check is [Engine.Authenticate] for one who only listens: an open stream does not keep a sign-in in use.
func (e *Engine) Check(app core.App, token string, now time.Time) (Caller, error) {
	caller, _, err := e.holder(app, token, now)
	return caller, err
}

// holder finds who holds a token, and the family of the sign-in.
func (e *Engine) holder(app core.App, token string, now time.Time) (caller Caller, family string, err error) {
	if token == "" {
		return caller, "", notAuthenticated()
	}
	users, err := app.FindCachedCollectionByNameOrId(collections.Users)
	if err != nil {
		return caller, "", fmt.Errorf("find users: %w", err)
	}
	var c claims
	var user knownUser
	var broken error // ours, not the token's
	_, err = bearerParser.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) {
		if c.Type != core.TokenTypeAuth || c.CollectionID != users.Id || c.Expires == nil {
			return nil, errNotOurs
		}
		var err error
		if user, err = e.users.find(app, c.UserID, now); err != nil && !collections.Missing(err) {
			broken = err
		}
		return accessKey(user.tokenKey, users), err
	})
	switch {
	case broken != nil:
		return caller, "", broken
	case err != nil || !user.active:
		return caller, "", tokenInvalid()
	case !now.Before(c.Expires.Time):
		return caller, "", tokenExpired()
	}
	caller = user.caller
	caller.Family = c.Family
	caller.NeedsTwoFactor = !caller.TwoFactor && slices.Contains(e.options.RequireTwoFactor, caller.Role)
	return caller, c.Family, nil
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
