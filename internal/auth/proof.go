package auth

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// A signed-in person proves again who they are before password or second factor change. A stolen access token must not be good for guessing:
// five wrong proofs in a quarter of an hour end it until that has passed. Source: docs/decisions/authentication.md, "Password policy errors".
const (
	maxWrongProofs = 5
	proofWindow    = 15 * time.Minute
)

// proofKey names the counter of a user; it cannot be an address.
func (e *Engine) proofKey(userID string) string { return e.sealer.LoginKey("proof\x00" + userID) }

// wrongProofs reads the count of the window under way; its end is kept where logins keep the end of a lock.
func (e *Engine) wrongProofs(tx core.App, userID string, now time.Time) (collections.LoginFailure, error) {
	wrong, err := collections.HoldLoginFailure(tx, e.proofKey(userID))
	if err != nil || !now.Before(wrong.LockedUntil) {
		return collections.LoginFailure{LockedUntil: now.Add(proofWindow)}, err
	}
	return wrong, nil
}

// countProof decides about one proof that was checked, in its transaction: of many at once no more than five wrong ones are looked at, and
// whoever has been wrong too often is refused whatever the proof is.
func (e *Engine) countProof(tx core.App, userID string, right bool, wrongProof error, now time.Time) (refused, err error) {
	wrong, err := e.wrongProofs(tx, userID, now)
	switch {
	case err != nil:
		return nil, err
	case wrong.Failures >= maxWrongProofs:
		return throttled(wrong.LockedUntil.Sub(now)), nil
	case right:
		return nil, nil
	}
	wrong.Failures++
	return wrongProof, collections.PutLoginFailure(tx, e.proofKey(userID), wrong, now)
}

func throttled(wait time.Duration) error {
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	return fault.New(fault.Throttled, "throttled", fmt.Sprintf("Request was throttled. Expected available in %d seconds.", seconds)).After(wait)
}

// provePassword checks the caller's password again and returns the user as they were when it was right. A wrong one is a validation fault of
// the named field.
func (e *Engine) provePassword(ctx context.Context, app core.App, caller Caller, field, password string, now time.Time) (*collections.User, error) {
	user, err := collections.FindUser(app, caller.RecordID)
	if err != nil {
		return nil, err
	}
	right, err := e.matches(ctx, user.PasswordHash(), password)
	if err != nil {
		return nil, err
	}
	return commitDecision(app, func(tx core.App) (*collections.User, error, error) {
		refused, err := e.countProof(tx, caller.RecordID, right, fault.Field(field, "The password is wrong."), now)
		return user, refused, err
	})
}
