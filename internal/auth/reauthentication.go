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

// PasswordProof is the caller's password, sent again when the sign-in is no longer fresh.
type PasswordProof struct {
	Password validate.String `json:"password"`
}

// isMissing reports whether the request has no password.
func (p PasswordProof) isMissing() bool {
	return !p.Password.Sent() || p.Password.Null() || p.Password.Given() && p.Password.Value == ""
}

// requireReauthentication passes if the caller signed in recently or sends the right password. A stolen access token alone must not add or
// remove a second factor, because that would lock the owner out. A wrong password counts both as a failed sign-in and as a wrong proof.
// Source: docs/decisions/authentication.md, "Fresh sign-in".
func (e *Engine) requireReauthentication(ctx context.Context, app core.App, caller Caller, proof PasswordProof, from audit.Origin, now time.Time) error {
	fresh, err := e.isFresh(app, caller, now)
	if err != nil || fresh {
		return err
	}
	if proof.isMissing() {
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
	a := e.newAttempt(user, from, now)
	if _, err := commitDecision(app, a.refuseLocked); err != nil {
		return err
	}
	wait, done := withQueueTimeout(ctx)
	defer done()
	right, err := e.matches(wait, user.PasswordHash(), password)
	if err != nil {
		return err
	}
	_, err = commitDecision(app, func(tx core.App) (struct{}, error, error) {
		refused, err := e.decideReauthentication(tx, a, right)
		return struct{}{}, refused, err
	})
	return err
}

// isFresh reports whether the caller's session began within the configured time; a revoked session is not fresh.
func (e *Engine) isFresh(app core.App, caller Caller, now time.Time) (bool, error) {
	if caller.Family == "" || e.options.FreshSignIn <= 0 {
		return false, nil
	}
	started, err := collections.RefreshFamilyStartedAt(app, caller.RecordID, caller.Family)
	if collections.IsNotFound(err) {
		return false, nil
	}
	return err == nil && now.Sub(started) <= e.options.FreshSignIn, err
}

// decideReauthentication records the outcome of a password check for a signed-in caller and returns the refusal, if any.
func (e *Engine) decideReauthentication(tx core.App, a attempt, right bool) (refused, err error) {
	failures, refused, err := a.refuseLocked(tx)
	if refused != nil || err != nil {
		return refused, err
	}
	user, err := a.account(tx)
	if err != nil {
		return nil, err
	}
	if user == nil { // the password changed after the check
		return tokenInvalid(), nil
	}
	wrong := authenticationFailed()
	refused, err = e.countProof(tx, user.Id, right, wrong, a.now)
	if refused != wrong || err != nil { //nolint:errorlint // identity, not kind: the value passed in
		return refused, err
	}
	return a.fail(tx, failures)
}

// newAttempt returns a sign-in attempt for a known account.
func (e *Engine) newAttempt(user *collections.User, from audit.Origin, now time.Time) attempt {
	email := FoldEmail(user.Email())
	return attempt{email: email, emailKey: e.sealer.LoginKey(email), user: user, from: from, now: now}
}

// A caller proves the password or second factor again before either changes. After five wrong proofs within 15 minutes the caller is refused
// until those 15 minutes have passed, so a stolen access token cannot be used for guessing. Source: docs/decisions/authentication.md, "Password
// policy errors".
const (
	maxWrongProofs = 5
	proofWindow    = 15 * time.Minute
)

// proofKey returns the counter key of a user. The NUL byte keeps it apart from every e-mail address.
func (e *Engine) proofKey(userID string) string { return e.sealer.LoginKey("proof\x00" + userID) }

// failedProofs returns the count of the current window. LockedUntil holds the end of the window.
func (e *Engine) failedProofs(tx core.App, userID string, now time.Time) (collections.LoginFailure, error) {
	wrong, err := collections.LockLoginFailure(tx, e.proofKey(userID))
	if err != nil || !now.Before(wrong.LockedUntil) {
		return collections.LoginFailure{LockedUntil: now.Add(proofWindow)}, err
	}
	return wrong, nil
}

// countProof records the result of one proof inside the transaction that decides about it, so concurrent requests cannot exceed five wrong
// proofs. A caller at the limit is refused even with a right proof.
func (e *Engine) countProof(tx core.App, userID string, right bool, wrongProof error, now time.Time) (refused, err error) {
	wrong, err := e.failedProofs(tx, userID, now)
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

// verifyPassword checks the caller's password again and returns the user record it was checked against. A wrong password is a validation fault
// of the named field.
func (e *Engine) verifyPassword(ctx context.Context, app core.App, caller Caller, field, password string, now time.Time) (*collections.User, error) {
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
