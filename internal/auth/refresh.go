package auth

import (
	"context"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/validate"
)

// RefreshBody holds the refresh token to rotate or revoke.
type RefreshBody struct {
	Refresh validate.String `json:"refresh"`
}

// Reasons for which a refresh token is revoked.
const (
	reasonLogout = "logout"
	reasonReuse  = collections.RefreshReuse
	reasonIdle   = "idle"
)

// read returns the hash of the token, or "" if its format is not that of a refresh token.
func (b RefreshBody) read() (hash string, err error) {
	checks := validate.NewChecks()
	token := checks.Secret("refresh", b.Refresh, 512)
	if !refreshFormat.MatchString(token) {
		return "", checks.Err()
	}
	return HashSecret(token), nil
}

// Refresh rotates a refresh token: it returns a new refresh token and a new access token. A second use shows that two clients hold the token, so
// the whole session ends, with its access tokens, unless the first response was probably lost. It refuses with token_invalid (unknown, malformed, expired, or
// account not usable), token_reused, token_revoked or token_expired (idle for too long).
// Source: docs/decisions/authentication.md, "Refresh-token family", "Lost refresh responses", "Refresh is public" and "Inactivity".
func (e *Engine) Refresh(app core.App, body RefreshBody, from audit.Origin, now time.Time) (Session, error) {
	hash, err := body.read()
	if err != nil {
		return Session{}, err
	}
	if hash == "" {
		return Session{}, tokenInvalid()
	}
	reusedOf := ""
	session, err := commitDecision(app, func(tx core.App) (session Session, refused, err error) {
		token, err := collections.LockRefreshToken(tx, hash)
		if collections.IsNotFound(err) {
			return session, tokenInvalid(), nil
		}
		if err != nil {
			return session, nil, err
		}
		user, err := nilIfMissing(collections.FindUser(tx, token.UserID))
		if err != nil || user == nil {
			return session, tokenInvalid(), err
		}
		lost, err := lostResponse(tx, token, now)
		if err != nil {
			return session, nil, err
		}
		if reason, refused := e.checkRefreshToken(token, now); refused != nil && lost == "" {
			if reason == reasonReuse {
				reusedOf = user.Id
			}
			return session, refused, endFamily(tx, token, reason, user, from, now)
		}
		if usable, err := isUsable(tx, user); err != nil || !usable {
			return session, tokenInvalid(), err
		}
		if lost != "" {
			session, err = e.reissue(tx, token, lost, user, from, now)
			return session, nil, err
		}
		session, err = e.rotate(tx, token, user, from, now)
		return session, nil, err
	})
	if reusedOf != "" {
		e.Evict(reusedOf) // the access tokens of the session end, too
	}
	return session, err
}

// checkRefreshToken returns the refusal of a refresh token that may not be rotated, and the reason to revoke its family, if any.
func (e *Engine) checkRefreshToken(token collections.RefreshToken, now time.Time) (reason string, refused error) {
	switch {
	case token.State == collections.RefreshRotated, token.State == collections.RefreshRevoked && token.RevokedBecause == collections.RefreshSuperseded:
		return reasonReuse, tokenReused()
	case token.State == collections.RefreshRevoked && token.RevokedBecause == reasonIdle:
		return "", tokenExpired()
	case token.State == collections.RefreshRevoked:
		return "", tokenRevoked()
	case !now.Before(token.ExpiresAt):
		return "", tokenInvalid()
	case e.isIdle(token, now):
		return reasonIdle, tokenExpired()
	}
	return "", nil
}

// isIdle reports whether the family has made no request for longer than allowed.
func (e *Engine) isIdle(token collections.RefreshToken, now time.Time) bool {
	lastUse := token.IssuedAt
	if token.LastUsedAt.After(lastUse) {
		lastUse = token.LastUsedAt
	}
	return e.options.IdleLogout > 0 && now.Sub(lastUse) > e.options.IdleLogout
}

// endFamily revokes the family of a refused token if there is a reason to.
func endFamily(tx core.App, token collections.RefreshToken, reason string, user *collections.User, from audit.Origin, now time.Time) error {
	if reason == "" {
		return nil
	}
	ended, err := collections.RevokeRefreshFamily(tx, token.Family, reason)
	if err != nil || reason != reasonReuse {
		return err
	}
	first, err := collections.MarkRefreshReuse(tx, token.ID)
	if err != nil {
		return err
	}
	return reportReuse(tx, user, ended > 0 || first, from, now)
}

func (e *Engine) rotate(tx core.App, token collections.RefreshToken, user *collections.User, from audit.Origin, now time.Time) (Session, error) {
	if err := collections.RotateRefreshToken(tx, token.ID, now); err != nil {
		return Session{}, err
	}
	if err := audit.Append(tx, userEntry(user, audit.Refresh, callerOf(user).Actor(from)), now); err != nil {
		return Session{}, err
	}
	return e.issue(tx, user, nextInFamily(token, from), now)
}

// LogoutBody holds the refresh token of the sign-in to end, and optionally a device to deactivate the push tokens of.
type LogoutBody struct {
	Refresh  validate.String `json:"refresh"`
	DeviceID validate.String `json:"device_id"`
}

// Logout revokes the family of one of the caller's own refresh tokens and deactivates its push tokens. Any other token is ignored without an
// error. Source: docs/decisions/authentication.md, "Logout".
func (e *Engine) Logout(app core.App, caller Caller, body LogoutBody, from audit.Origin, now time.Time) error {
	checks := validate.NewChecks()
	validate.NotNull(checks, "device_id", body.DeviceID)
	deviceID := checks.Text("device_id", body.DeviceID, validate.Optional(128).Identifier())
	token := checks.Secret("refresh", body.Refresh, 512)
	if err := checks.Err(); err != nil {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		ended, err := endOwnFamily(tx, caller, token, now)
		if err != nil {
			return err
		}
		if deviceID != "" {
			if _, err := collections.DeactivatePushTokens(tx, caller.RecordID, deviceID, reasonLogout, now); err != nil {
				return err
			}
		}
		if ended == 0 {
			return nil
		}
		return recordLogout(tx, caller, ended, from, now)
	})
}

// endOwnFamily revokes the family of the caller's token, even an expired one, and deactivates the push tokens registered in that session.
func endOwnFamily(tx core.App, caller Caller, token string, now time.Time) (ended int64, err error) {
	if !refreshFormat.MatchString(token) {
		return 0, nil
	}
	held, err := collections.LockRefreshToken(tx, HashSecret(token))
	if collections.IsNotFound(err) || err == nil && held.UserID != caller.RecordID {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := collections.DeactivateSessionPushTokens(tx, caller.RecordID, held.Family, held.DeviceID, reasonLogout, now); err != nil {
		return 0, err
	}
	return collections.RevokeRefreshFamily(tx, held.Family, reasonLogout)
}

// LogoutAll ends every session of the caller, with its access tokens, and deactivates all push tokens, after reauthentication.
func (e *Engine) LogoutAll(ctx context.Context, app core.App, caller Caller, proof PasswordProof, from audit.Origin, now time.Time) error {
	if err := e.requireReauthentication(ctx, app, caller, proof, from, now); err != nil {
		return err
	}
	return e.changeUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		user.RefreshTokenKey() // ends the access tokens
		if err := saveUser(tx, user, now); err != nil {
			return nil, err
		}
		ended, err := RevokeAll(tx, user.Id, reasonLogout, now)
		if err != nil {
			return nil, err
		}
		return nil, recordLogout(tx, caller, ended, from, now)
	})
}

func recordLogout(tx core.App, caller Caller, ended int64, from audit.Origin, now time.Time) error {
	actor := caller.Actor(from)
	return audit.Append(tx, audit.Entry{
		Event: audit.Logout, Actor: actor, ResourceType: audit.ResourceUser, ResourceID: actor.ID,
		Changes: audit.Changes{"sign_ins": {Old: ended, New: 0}},
	}, now)
}

// RevokeAll revokes every session of a user for a reason of at most 50 characters, deactivates the push tokens, and returns the number of
// sessions. Source: docs/decisions/notifications.md, "Push tokens and sessions".
func RevokeAll(app core.App, userRecordID, reason string, now time.Time) (int64, error) {
	ended, err := collections.RevokeRefreshTokens(app, userRecordID, reason)
	if err != nil {
		return 0, err
	}
	_, err = collections.DeactivatePushTokens(app, userRecordID, "", reason, now)
	return ended, err
}

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
		UserAgent: userAgent(from), SecondFactor: token.SecondFactor,
	}
}

// confirmedRotations caches the rotations that were confirmed by a use of their access token, so that each is stored once.
type confirmedRotations struct {
	lock   sync.Mutex
	byLink map[string]bool // key: refresh token id
}

func (r *confirmedRotations) has(link string) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.byLink[link]
}

func (r *confirmedRotations) add(link string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.byLink == nil || len(r.byLink) >= maxCachedUsers {
		r.byLink = map[string]bool{}
	}
	r.byLink[link] = true
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
	e.Evict(read.Holder)
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
