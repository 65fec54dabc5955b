package auth

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// LoginBody holds the sign-in credentials of a user.
type LoginBody struct {
	Email      validate.String `json:"email"`
	Password   validate.String `json:"password"`
	TOTPCode   validate.String `json:"totp_code"`   // either field accepts either kind of code
	BackupCode validate.String `json:"backup_code"` //
	DeviceID   validate.String `json:"device_id"`   // links the session to a push device
}

// Account returns the normalized address, or "" if it is not a possible one.
func (b LoginBody) Account() string {
	return FoldEmail(validate.NewChecks().Text("email", b.Email, validate.Required(254).LookupOnly()))
}

// attempt is one attempt to sign in.
type attempt struct {
	email, emailKey string
	password        string
	code            string // second factor, "" if none was sent
	deviceID        string
	user            *collections.User // nil for an address without an account
	dashboard       bool              // a superuser signs in to the dashboard
	superuserID     string            // "" for an address without one
	from            audit.Origin
	now             time.Time
}

// Login signs a user in. It checks, in order: the fields; the lockout, which ignores everything else; the password; the account; the second
// factor. It refuses with authentication_failed for any wrong credential, account_locked (with locked_until) while locked, and totp_required if
// only the second factor is missing, which is not a failure. It refuses with overloaded if too many users sign in at once, which counts as
// nothing.
// Source: docs/decisions/authentication.md, "Login when TOTP is missing", "Which response on the fifth failure" and docs/decisions/limits.md,
// "Sign-in queue".
func (e *Engine) Login(ctx context.Context, app core.App, body LoginBody, from audit.Origin, now time.Time) (Session, error) {
	ctx, done := withQueueTimeout(ctx)
	defer done()
	a, err := e.readLogin(app, body, from, now)
	if err != nil {
		return Session{}, err
	}
	if _, err := commitQueuedDecision(ctx, e, app, a.rejectIfLocked); err != nil {
		return Session{}, err
	}
	proven, err := e.checkPassword(ctx, app, a)
	if err != nil {
		return Session{}, err
	}
	return commitQueuedDecision(ctx, e, app, func(tx core.App) (Session, error, error) { return e.decideLogin(tx, a, proven) })
}

// commitQueuedDecision is commitDecision behind the decision limiter, for public endpoints.
func commitQueuedDecision[T any](ctx context.Context, e *Engine, app core.App, decide func(tx core.App) (result T, refused, err error)) (T, error) {
	done, err := e.decisionLimiter.acquire(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer done()
	return commitDecision(app, decide)
}

// commitDecision runs a decision in a transaction that is committed even if the decision is a refusal, because its counts and audit entries must
// persist.
func commitDecision[T any](app core.App, decide func(tx core.App) (result T, refused, err error)) (T, error) {
	var result T
	var refused error
	err := app.RunInTransaction(func(tx core.App) (err error) {
		result, refused, err = decide(tx)
		return err
	})
	if err == nil {
		err = refused
	}
	return result, err
}

func (e *Engine) readLogin(app core.App, body LoginBody, from audit.Origin, now time.Time) (attempt, error) {
	checks := validate.NewChecks()
	a := attempt{
		email:    FoldEmail(checks.Text("email", body.Email, validate.Required(254).LookupOnly())),
		password: checks.Secret("password", body.Password, 0),
		code:     readCode(checks, body.TOTPCode, body.BackupCode),
		deviceID: checks.Text("device_id", body.DeviceID, validate.Optional(128).Identifier()),
		from:     from,
		now:      now,
	}
	validate.NotNull(checks, "device_id", body.DeviceID)
	if err := checks.Err(); err != nil {
		return a, err
	}
	a.emailKey = e.sealer.LoginKey(a.email)
	var err error
	a.user, err = nilIfMissing(collections.FindUserByEmail(app, a.email))
	return a, err
}

// nilIfMissing returns nil without an error for a record that does not exist.
func nilIfMissing[T any](found *T, err error) (*T, error) {
	if collections.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// FoldEmail returns the canonical form of an address: trimmed and in lower case. A letter outside ASCII never folds to one inside: "İ" is not
// "i", so a look-alike address cannot match.
func FoldEmail(address string) string {
	return strings.Map(func(r rune) rune {
		if lower := unicode.ToLower(r); lower >= utf8.RuneSelf || r < utf8.RuneSelf {
			return lower
		}
		return r
	}, strings.TrimSpace(address))
}

// checkPassword reports whether the password is the user's. For an unknown address it takes the same time.
func (e *Engine) checkPassword(ctx context.Context, app core.App, a attempt) (bool, error) {
	hash, err := decoyHash(app)
	if err != nil {
		return false, err
	}
	if a.user != nil {
		hash = a.user.PasswordHash()
	}
	right, err := e.matches(ctx, hash, a.password)
	return right && a.user != nil, err
}

// decideLogin decides about an attempt after the password check.
func (e *Engine) decideLogin(tx core.App, a attempt, proven bool) (session Session, refused, err error) {
	failures, refused, err := a.rejectIfLocked(tx)
	if refused != nil || err != nil {
		return session, refused, err
	}
	if !proven {
		refused, err = a.fail(tx, failures)
		return session, refused, err
	}
	if err := collections.Readable(a.user.ProxyRecord()); err != nil {
		return session, nil, err
	}
	user, err := a.account(tx)
	if err != nil {
		return session, nil, err
	}
	if user == nil {
		refused, err = a.fail(tx, failures)
		return session, refused, err
	}
	if e.mustSignOn(user) {
		return session, ssoRequired(), a.record(tx, audit.LoginFailed, audit.MinorFailure, "Signing in takes the identity provider.")
	}
	userFactors, err := factorsOf(tx, user)
	if err != nil {
		return session, nil, err
	}
	if !userFactors.any() {
		session, err = e.completeLogin(tx, a, user, secondFactor{})
		return session, nil, err
	}
	if a.code == "" || !userFactors.totp { // a code is no second factor for a user with passkeys only
		if err := a.record(tx, audit.PasswordAccepted, audit.Success, ""); err != nil { // the password may be stolen
			return session, nil, err
		}
		refused, err = e.requestSecondFactor(tx, user, userFactors, a.now)
		return session, refused, err
	}
	return e.decideSecondFactor(tx, a, user, failures, a.code)
}

// decideSecondFactor completes an attempt after the first factor: it returns a session, or counts a failure if the code is wrong.
func (e *Engine) decideSecondFactor(tx core.App, a attempt, user *collections.User, failures collections.LoginFailure, code string) (session Session, refused, err error) {
	factor, err := e.checkSecondFactor(tx, user, code, a.now)
	if err != nil {
		return session, nil, err
	}
	if !factor.proven {
		refused, err = a.fail(tx, failures)
		return session, refused, err
	}
	session, err = e.completeLogin(tx, a, user, factor)
	return session, nil, err
}

// account reads the user again under the write lock. It returns nil if the account may not be used or its password changed since the check.
func (a attempt) account(tx core.App) (*collections.User, error) {
	user, err := nilIfMissing(collections.FindUser(tx, a.user.Id))
	if err != nil || user == nil || user.TokenKey() != a.user.TokenKey() {
		return nil, err
	}
	if usable, err := isUsable(tx, user); err != nil || !usable {
		return nil, err
	}
	return user, nil
}

func (e *Engine) completeLogin(tx core.App, a attempt, user *collections.User, factor secondFactor) (Session, error) {
	if err := a.clearFailures(tx); err != nil {
		return Session{}, err
	}
	if err := collections.SetSignedIn(tx, user.Id, factor.timeStep, a.now); err != nil {
		return Session{}, err
	}
	actor := callerOf(user).Actor(a.from)
	if factor.backupCode {
		if err := recordBackupCodeUse(tx, user, factor, actor, a.now); err != nil {
			return Session{}, err
		}
	}
	if err := audit.Append(tx, userEntry(user, audit.Login, actor), a.now); err != nil {
		return Session{}, err
	}
	return e.issue(tx, user, collections.RefreshToken{
		Family: uuid.NewString(), DeviceID: a.deviceID, FamilyStartedAt: a.now, SourceIP: a.from.Address, UserAgent: userAgent(a.from),
	}, a.now)
}

// record audits an attempt that did not succeed.
func (a attempt) record(tx core.App, event audit.Event, outcome audit.Outcome, reason phi.Text) error {
	entry := a.entry(event)
	entry.Outcome, entry.Reason = outcome, reason
	return audit.Append(tx, entry, a.now)
}

// entry returns an audit entry about the attempted account. An address without an account is named by its keyed hash only.
// Source: docs/decisions/security.md, "Audit record".
func (a attempt) entry(event audit.Event) audit.Entry {
	switch {
	case a.user != nil:
		return userEntry(a.user, event, audit.Anonymous(a.from))
	case a.superuserID != "":
		return audit.Entry{Event: event, Actor: audit.Anonymous(a.from), ResourceType: audit.ResourceSuperuser, ResourceID: a.superuserID}
	}
	return audit.Entry{Event: event, Actor: audit.Anonymous(a.from), ResourceType: audit.ResourceLoginKey, ResourceID: a.emailKey}
}
