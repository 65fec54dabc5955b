package auth

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// PasswordProof tells again who is at the keyboard, where the sign-in is not fresh any more.
type PasswordProof struct {
	Password validate.String `json:"password"`
}

// missing reports whether no password came along.
func (p PasswordProof) missing() bool {
	return !p.Password.Sent() || p.Password.Null() || p.Password.Given() && p.Password.Value == ""
}

// proveFresh lets those go on who signed in a moment ago, or who give their password again: a stolen access token must not be enough to add
// a second factor or to take one away, for that would lock its owner out. A wrong password counts like a failed sign-in, and among the wrong
// proofs. Source: docs/decisions/authentication.md, "Fresh sign-in".
func (e *Engine) proveFresh(ctx context.Context, app core.App, caller Caller, proof PasswordProof, from audit.Origin, now time.Time) error {
	fresh, err := e.fresh(app, caller, now)
	if err != nil || fresh {
		return err
	}
	if proof.missing() {
		return fault.New(fault.Forbidden, "reauthentication_required", "Enter your password again to do this.")
	}
	checks := validate.NewChecks()
	password := checks.Secret("password", proof.Password, 0)
	if err := checks.Err(); err != nil {
		return err
	}
	user, err := collections.FindUser(app, caller.RecordID)
	if err != nil {
		return err
	}
	a := e.attemptOf(user, from, now)
	if _, err := commitDecision(app, a.refuseLocked); err != nil {
		return err
	}
	wait, done := waiting(ctx)
	defer done()
	right, err := e.matches(wait, user.PasswordHash(), password)
	if err != nil {
		return err
	}
	_, err = commitDecision(app, func(tx core.App) (struct{}, error, error) {
		refused, err := e.judgePassword(tx, a, right)
		return struct{}{}, refused, err
	})
	return err
}

// fresh reports whether the caller's session began a moment ago; one that was ended is not fresh.
func (e *Engine) fresh(app core.App, caller Caller, now time.Time) (bool, error) {
	if caller.Family == "" || e.options.FreshSignIn <= 0 {
		return false, nil
	}
	started, err := collections.RefreshFamilyStartedAt(app, caller.RecordID, caller.Family)
	if collections.IsNotFound(err) {
		return false, nil
	}
	return err == nil && now.Sub(started) <= e.options.FreshSignIn, err
}

// judgePassword decides about a password that was checked for somebody who is signed in.
func (e *Engine) judgePassword(tx core.App, a attempt, right bool) (refused, err error) {
	failures, refused, err := a.refuseLocked(tx)
	if refused != nil || err != nil {
		return refused, err
	}
	user, err := a.account(tx)
	if err != nil {
		return nil, err
	}
	if user == nil { // changed meanwhile: the proof was of the password before
		return tokenInvalid(), nil
	}
	wrong := authenticationFailed()
	refused, err = e.countProof(tx, user.Id, right, wrong, a.now)
	if refused != wrong || err != nil { //nolint:errorlint // the very value handed in, not its kind
		return refused, err
	}
	return a.fail(tx, failures)
}

// attemptOf is an attempt of somebody whose account is known.
func (e *Engine) attemptOf(user *collections.User, from audit.Origin, now time.Time) attempt {
	email := FoldEmail(user.Email())
	return attempt{email: email, emailKey: e.sealer.LoginKey(email), user: user, from: from, now: now}
}

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
	wrong, err := collections.LockLoginFailure(tx, e.proofKey(userID))
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
