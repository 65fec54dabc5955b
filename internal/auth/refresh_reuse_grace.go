package auth

import (
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// reuseGracePeriod is how soon after its rotation a refresh token may be sent again because the response was lost.
// Source: docs/decisions/authentication.md, "Lost refresh responses".
const reuseGracePeriod = 30 * time.Second

// lostResponse returns the id of the token issued for an already rotated one if that response was probably lost: the rotation is recent, neither
// of the new tokens was used, and no grace was given before. It returns "" for a reuse.
func lostResponse(tx core.App, token collections.RefreshToken, now time.Time) (child string, err error) {
	since := now.Sub(token.LastUsedAt).Abs() // concurrent requests may commit out of time order
	if token.State != collections.RefreshRotated || token.RevokedBecause != "" || since > reuseGracePeriod {
		return "", nil
	}
	children, err := collections.RefreshChildren(tx, token.Family, token.ID)
	if err != nil || len(children) != 1 || !children[0].IsUnused() {
		return "", err
	}
	return children[0].ID, nil
}

// reissue answers a rotation a second time with new tokens and supersedes the refresh token issued first.
func (e *Engine) reissue(tx core.App, token collections.RefreshToken, lost string, user *collections.User, from audit.Origin, now time.Time) (Session, error) {
	if err := collections.SupersedeRefreshToken(tx, lost); err != nil {
		return Session{}, err
	}
	entry := userEntry(user, audit.Refresh, callerOf(user).Actor(from))
	entry.Changes = audit.Changes{"repeated": {Old: false, New: true}}
	if err := audit.Append(tx, entry, now); err != nil {
		return Session{}, err
	}
	return e.issue(tx, user, nextInFamily(token, from), now)
}

// nextInFamily returns the next refresh token of the same family, without its secret.
func nextInFamily(token collections.RefreshToken, from audit.Origin) collections.RefreshToken {
	return collections.RefreshToken{
		Family: token.Family, Parent: token.ID, DeviceID: token.DeviceID, FamilyStartedAt: token.FamilyStartedAt, SourceIP: from.Address,
		SecondFactor: token.SecondFactor,
	}
}

// confirmedRotations caches the rotations that were confirmed by a use of their access token, so that each is stored once.
type confirmedRotations struct {
	lock   sync.Mutex
	byLink map[string]bool // key: refresh token id
}

func (a *confirmedRotations) has(link string) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.byLink[link]
}

func (a *confirmedRotations) add(link string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.byLink == nil || len(a.byLink) >= maxCachedUsers {
		a.byLink = map[string]bool{}
	}
	a.byLink[link] = true
}

// confirmRotation records the first use of an access token from a rotation, which shows that the response arrived. If the rotation was
// superseded, two clients hold tokens of one session and the session ends. The use is stored only within the grace period; after it, a read is
// enough.
func (e *Engine) confirmRotation(app core.App, read TokenClaims, now time.Time) error {
	if read.Link == "" || e.confirmed.has(read.Link) {
		return nil
	}
	check := collections.SupersededRefreshToken
	if now.Sub(read.IssuedAt) <= reuseGracePeriod+time.Second { // token times are whole seconds
		check = func(app core.App, link string) (bool, error) { return collections.MarkAccessTokenUsed(app, link, now) }
	}
	superseded, err := check(app, read.Link)
	if err != nil {
		return err
	}
	if !superseded {
		e.confirmed.add(read.Link)
		return nil
	}
	_, err = commitDecision(app, func(tx core.App) (struct{}, error, error) {
		return struct{}{}, tokenRevoked(), endForkedSession(tx, read, now)
	})
	return err
}

// endForkedSession revokes the session of a superseded access token that was used, and reports it once.
func endForkedSession(tx core.App, read TokenClaims, now time.Time) error {
	ended, err := collections.RevokeRefreshFamily(tx, read.Family, reasonReuse)
	if err != nil || ended == 0 {
		return err
	}
	user, err := nilIfMissing(collections.FindUser(tx, read.Holder))
	if err != nil || user == nil {
		return err
	}
	return reportReuse(tx, user, true, audit.Origin{}, now)
}

// reportReuse audits that two clients hold tokens of one session, and notifies the owner if notify is set.
func reportReuse(tx core.App, user *collections.User, notify bool, from audit.Origin, now time.Time) error {
	entry := userEntry(user, audit.RefreshReuse, audit.Anonymous(from)) // the owner or a thief: unknown
	entry.Outcome = audit.SeriousFailure
	if notify {
		if err := notifyTokenReuse(tx, user, now); err != nil {
			return err
		}
	}
	return audit.Append(tx, entry, now)
}
