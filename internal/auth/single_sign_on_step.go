package auth

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/validate"
)

// StepCodeBody is the second-factor code after a sign-in at an identity provider that required one factor only.
type StepCodeBody struct {
	StepBody
	TOTPCode   validate.String `json:"totp_code"`   // either field accepts either kind of code
	BackupCode validate.String `json:"backup_code"` //
}

// FinishStep completes a sign-in with a temporary token and a code. It refuses as [Engine.Login] does and consumes the temporary token even if
// the code is wrong. Source: docs/decisions/authentication.md, "Single sign-on".
func (e *Engine) FinishStep(ctx context.Context, app core.App, body StepCodeBody, from audit.Origin, now time.Time) (Session, error) {
	checks := validate.NewChecks()
	step := body.read(checks)
	if !body.TemporaryToken.Given() {
		checks.Reject("temporary_token", "This field is required.")
	}
	validate.NotNull(checks, "totp_code", body.TOTPCode)
	validate.NotNull(checks, "backup_code", body.BackupCode)
	code := checks.Text("totp_code", body.TOTPCode, validate.Optional(11).Identifier())
	if backup := checks.Text("backup_code", body.BackupCode, validate.Optional(11).Identifier()); code == "" {
		code = backup
	}
	if err := checks.Err(); err != nil {
		return Session{}, err
	}
	user, err := e.userOfTemporaryToken(app, step, now)
	if err != nil {
		return Session{}, err
	}
	ctx, done := withQueueTimeout(ctx)
	defer done()
	return commitQueuedDecision(ctx, e, app, func(tx core.App) (Session, error, error) {
		if user == nil {
			unknown := attempt{emailKey: e.sealer.LoginKey("step\x00" + step), from: from, now: now}
			return Session{}, authenticationFailed(), unknown.record(tx, audit.LoginFailed, audit.MinorFailure, "No such temporary token.")
		}
		return e.decideStep(tx, e.newAttempt(user, from, now), step, code)
	})
}

func (e *Engine) decideStep(tx core.App, a attempt, step, code string) (session Session, refused, err error) {
	failures, refused, err := a.refuseLocked(tx)
	if refused != nil || err != nil {
		return session, refused, err
	}
	if _, err := collections.UseSignInStep(tx, step, a.now); err != nil {
		if collections.IsNotFound(err) { // a concurrent request used it
			return session, authenticationFailed(), a.record(tx, audit.LoginFailed, audit.MinorFailure, "The temporary token was used.")
		}
		return session, nil, err
	}
	user, err := a.account(tx)
	if err != nil {
		return session, nil, err
	}
	if user == nil || !user.TwoFactorEnabled() {
		refused, err = a.fail(tx, failures)
		return session, refused, err
	}
	return e.decideSecondFactor(tx, a, user, failures, code)
}
