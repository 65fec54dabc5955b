package auth

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/validate"
)

// StepCodeBody is the code that follows a sign-in at the identity provider, which asked for one factor only.
type StepCodeBody struct {
	StepBody
	TOTPCode   validate.String `json:"totp_code"`   // either field takes either kind
	BackupCode validate.String `json:"backup_code"` //
}

// FinishStep ends a sign-in whose first step was right with a code. It refuses as [Engine.Login] does; the temporary token is used up, right or
// wrong. Source: docs/decisions/authentication.md, "Single sign-on".
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
	user, err := e.userOfStep(app, step, now)
	if err != nil {
		return Session{}, err
	}
	ctx, done := waiting(ctx)
	defer done()
	return commitDecisionInTurn(ctx, e, app, func(tx core.App) (Session, error, error) {
		if user == nil {
			nobody := attempt{emailKey: e.sealer.LoginKey("step\x00" + step), from: from, now: now}
			return Session{}, authenticationFailed(), nobody.record(tx, audit.LoginFailed, audit.MinorFailure, "No such temporary token.")
		}
		return e.decideStep(tx, e.attemptOf(user, from, now), step, code)
	})
}

func (e *Engine) decideStep(tx core.App, a attempt, step, code string) (session Session, refused, err error) {
	failures, refused, err := a.refuseLocked(tx)
	if refused != nil || err != nil {
		return session, refused, err
	}
	if _, err := collections.UseSignInStep(tx, step, a.now); err != nil {
		if collections.IsNotFound(err) { // of two at once
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
