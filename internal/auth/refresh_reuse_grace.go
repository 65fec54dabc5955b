package auth

import (
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// forgiveWithin is how soon a swapped refresh token must come again for its answer to count as lost.
// Source: docs/decisions/authentication.md, "Lost refresh responses".
const forgiveWithin = 30 * time.Second

// lostAnswer is the token that was handed out for a swapped one and never arrived, as far as anybody can tell: the swap was a moment ago,
// nobody has used either of the tokens that it gave, and it was not forgiven before. "" is no such token, and so a reuse.
func lostAnswer(tx core.App, token collections.RefreshToken, now time.Time) (child string, err error) {
	since := now.Sub(token.LastUsedAt).Abs() // a request may have been stamped before the one that overtook it
	if token.State != collections.RefreshRotated || token.RevokedBecause != "" || since > forgiveWithin {
		return "", nil
	}
	children, err := collections.RefreshChildren(tx, token.Family, token.ID)
	if err != nil || len(children) != 1 || !children[0].IsUnused() {
		return "", err
	}
	return children[0].ID, nil
}

// repeat answers a swap a second time: with other tokens, and what was handed out first is good no longer.
func (e *Engine) repeat(tx core.App, token collections.RefreshToken, lost string, user *collections.User, from audit.Origin, now time.Time) (Session, error) {
	if err := collections.SupersedeRefreshToken(tx, lost); err != nil {
		return Session{}, err
	}
	entry := about(user, audit.Refresh, callerOf(user).Actor(from))
	entry.Changes = audit.Changes{"repeated": {Old: false, New: true}}
	if err := audit.Append(tx, entry, now); err != nil {
		return Session{}, err
	}
	return e.issue(tx, user, nextOf(token, from), now)
}

// nextOf is the link that follows a token in its family.
func nextOf(token collections.RefreshToken, from audit.Origin) collections.RefreshToken {
	return collections.RefreshToken{
		Family: token.Family, Parent: token.ID, DeviceID: token.DeviceID, FamilyStartedAt: token.FamilyStartedAt, SourceIP: from.Address,
		SecondFactor: token.SecondFactor,
	}
}

// arrived remembers the swaps whose access token was used, so that each is noted in the database once.
type arrived struct {
	lock  sync.Mutex
	known map[string]bool // by refresh token
}

func (a *arrived) has(link string) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.known[link]
}

func (a *arrived) add(link string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.known == nil || len(a.known) >= rememberedUsers {
		a.known = map[string]bool{}
	}
	a.known[link] = true
}

// noteArrival notes the use of an access token that came of a swap: its answer was not lost. Where another was given in its place meanwhile, two
// hold tokens of one session, which ends. Only in the first moments is the use of consequence; later it is enough to look.
func (e *Engine) noteArrival(app core.App, read TokenClaims, now time.Time) error {
	if read.Link == "" || e.arrived.has(read.Link) {
		return nil
	}
	look := collections.SupersededRefreshToken
	if now.Sub(read.IssuedAt) <= forgiveWithin+time.Second { // a token's times are whole seconds
		look = func(app core.App, link string) (bool, error) { return collections.MarkAccessTokenUsed(app, link, now) }
	}
	superseded, err := look(app, read.Link)
	if err != nil {
		return err
	}
	if !superseded {
		e.arrived.add(read.Link)
		return nil
	}
	_, err = commitDecision(app, func(tx core.App) (struct{}, error, error) {
		return struct{}{}, tokenRevoked(), endForked(tx, read, now)
	})
	return err
}

// endForked ends the session of a superseded access token that was used all the same, and says so once.
func endForked(tx core.App, read TokenClaims, now time.Time) error {
	ended, err := collections.RevokeRefreshFamily(tx, read.Family, becauseReuse)
	if err != nil || ended == 0 {
		return err
	}
	user, err := ifThere(collections.FindUser(tx, read.Holder))
	if err != nil || user == nil {
		return err
	}
	return reportReuse(tx, user, true, audit.Origin{}, now)
}

// reportReuse tells the trail that two hold tokens of one session, and the owner unless they know already.
func reportReuse(tx core.App, user *collections.User, news bool, from audit.Origin, now time.Time) error {
	entry := about(user, audit.RefreshReuse, audit.Anonymous(from)) // the owner or a thief, nobody knows
	entry.Outcome = audit.SeriousFailure
	if news {
		if err := tellOfReuse(tx, user, now); err != nil {
			return err
		}
	}
	return audit.Append(tx, entry, now)
}
