package auth

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// reasonEnded is the reason of a session that its user ended in the list of sessions. Unlike a
// logout, this ends the access tokens too.
const reasonEnded = collections.RefreshEnded

// Sessions returns the caller's open sessions, newest first.
func (e *Engine) Sessions(app core.App, caller Caller, now time.Time) (open []collections.RefreshToken, err error) {
	valid, err := collections.ValidRefreshTokens(app, caller.RecordID, now)
	for _, token := range valid {
		if !e.isIdle(token, now) {
			open = append(open, token)
		}
	}
	return open, err
}

// EndSession ends one of the caller's sessions at once: its refresh token, its access tokens and the push tokens registered in it. Another session
// than the caller's own requires reauthentication. Source: docs/decisions/authentication.md, "Sessions"; ASVS 5.0, 7.5.2.
func (e *Engine) EndSession(ctx context.Context, app core.App, caller Caller, family string, proof PasswordProof, from audit.Origin, now time.Time) error {
	if family != caller.Family {
		if err := e.requireReauthentication(ctx, app, caller, proof, from, now); err != nil {
			return err
		}
	}
	return e.changeUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		token, err := collections.ValidRefreshToken(tx, user.Id, family)
		if collections.IsNotFound(err) {
			return fault.Missing(), nil
		}
		if err != nil {
			return nil, err
		}
		ended, err := collections.RevokeRefreshFamily(tx, token.Family, reasonEnded)
		if err != nil {
			return nil, err
		}
		if err := collections.DeactivateSessionPushTokens(tx, user.Id, token.Family, token.DeviceID, reasonLogout, now); err != nil {
			return nil, err
		}
		return nil, recordLogout(tx, caller, ended, from, now)
	})
}

// userAgent returns the client's name from a request, cut to the column's length.
func userAgent(from audit.Origin) string { return truncate(from.Client, 200) }
