package auth

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
)

// PasswordProof tells again who is at the keyboard, where the sign-in is not fresh any more.
type PasswordProof struct {
	Password input.String `json:"password"`
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
	checks := input.NewChecks()
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
	if collections.Missing(err) {
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
