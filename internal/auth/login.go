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

// LoginBody is what a person signs in with.
type LoginBody struct {
	Email      validate.String `json:"email"`
	Password   validate.String `json:"password"`
	TOTPCode   validate.String `json:"totp_code"`   // either field takes either kind of second factor
	BackupCode validate.String `json:"backup_code"` //
	DeviceID   validate.String `json:"device_id"`   // ties the sign-in to a push device
}

// Account is whose sign-in it would be; "" when no account can be called that.
func (b LoginBody) Account() string {
	return FoldEmail(validate.NewChecks().Text("email", b.Email, validate.Required(254).LookedUp()))
}

// attempt is one try at signing in.
type attempt struct {
	email, emailKey string
	password        string
	code            string // second factor, "" when none was given
	deviceID        string
	user            *collections.User // nil for an address without an account
	dashboard       bool              // a superuser's, who is no user
	superuserID     string            // "" for an address without one
	from            audit.Origin
	now             time.Time
}

// Login signs a person in. The checks, in order: the fields; the lock, which looks at nothing else; the password;
// the account; the second factor. It refuses with authentication_failed whatever was wrong, with account_locked
// (holding locked_until) while locked, and with totp_required when only the second factor is missing, which counts as no failure.
// With overloaded it refuses when too many sign in at once; that counts as nothing.
// Source: docs/decisions/authentication.md, "Login when TOTP is missing", "Which response on the fifth failure" and docs/decisions/limits.md, "Sign-in queue".
func (e *Engine) Login(ctx context.Context, app core.App, body LoginBody, from audit.Origin, now time.Time) (Session, error) {
	ctx, done := waiting(ctx)
	defer done()
	a, err := e.readLogin(app, body, from, now)
	if err != nil {
		return Session{}, err
	}
	if _, err := commitDecisionInTurn(ctx, e, app, a.refuseLocked); err != nil {
		return Session{}, err
	}
	proven, err := e.checkPassword(ctx, app, a)
	if err != nil {
		return Session{}, err
	}
	return commitDecisionInTurn(ctx, e, app, func(tx core.App) (Session, error, error) { return e.decideLogin(tx, a, proven) })
}

// commitDecisionInTurn is commitDecision for what strangers may do as often as they like.
func commitDecisionInTurn[T any](ctx context.Context, e *Engine, app core.App, decide func(tx core.App) (result T, refused, err error)) (T, error) {
	done, err := e.turns.take(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer done()
	return commitDecision(app, decide)
}

// commitDecision runs a decision in a transaction that is kept when the decision is a refusal: what a refusal counts and
// records must stay.
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
		email:    FoldEmail(checks.Text("email", body.Email, validate.Required(254).LookedUp())),
		password: checks.Secret("password", body.Password, 0),
		code:     checks.Text("totp_code", body.TOTPCode, validate.Optional(11).Identifier()),
		deviceID: checks.Text("device_id", body.DeviceID, validate.Optional(128).Identifier()),
		from:     from,
		now:      now,
	}
	validate.NotNull(checks, "totp_code", body.TOTPCode)
	validate.NotNull(checks, "backup_code", body.BackupCode)
	validate.NotNull(checks, "device_id", body.DeviceID)
	if backup := checks.Text("backup_code", body.BackupCode, validate.Optional(11).Identifier()); a.code == "" {
		a.code = backup
	}
	if err := checks.Err(); err != nil {
		return a, err
	}
	a.emailKey = e.sealer.LoginKey(a.email)
	var err error
	a.user, err = ifThere(collections.FindUserByEmail(app, a.email))
	return a, err
}

// ifThere is nil, and no error, for what does not exist.
func ifThere[T any](found *T, err error) (*T, error) {
	if collections.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// FoldEmail is the one form of an address: trimmed, in lower case. A letter outside ASCII never becomes one inside:
// "İ" is no "i", or a look-alike address would pass for the real one.
func FoldEmail(address string) string {
	return strings.Map(func(r rune) rune {
		if lower := unicode.ToLower(r); lower >= utf8.RuneSelf || r < utf8.RuneSelf {
			return lower
		}
		return r
	}, strings.TrimSpace(address))
}

// checkPassword reports whether the password is the user's. It takes its time for an unknown address too.
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

// decideLogin takes the decision about an attempt whose password was checked.
func (e *Engine) decideLogin(tx core.App, a attempt, proven bool) (session Session, refused, err error) {
	failures, refused, err := a.refuseLocked(tx)
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
	shown, err := factorsOf(tx, user)
	if err != nil {
		return session, nil, err
	}
	if !shown.any() {
		session, err = e.completeLogin(tx, a, user, secondFactor{})
		return session, nil, err
	}
	if a.code == "" || !shown.totp { // a code proves nothing to whom passkeys are the only second factor
		if err := a.record(tx, audit.PasswordAccepted, audit.Success, ""); err != nil { // a thief may be trying it
			return session, nil, err
		}
		refused, err = e.askSecondFactor(tx, user, shown, a.now)
		return session, refused, err
	}
	return e.decideSecondFactor(tx, a, user, failures, a.code)
}

// decideSecondFactor ends an attempt whose first factor was right: with a session, or with one failure more when the code is wrong.
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

// account reads the user again, now that nobody else writes: nil when the account may not be used or when its
// password has changed since it was checked.
func (a attempt) account(tx core.App) (*collections.User, error) {
	user, err := ifThere(collections.FindUser(tx, a.user.Id))
	if err != nil || user == nil || user.TokenKey() != a.user.TokenKey() {
		return nil, err
	}
	if usable, err := mayUse(tx, user); err != nil || !usable {
		return nil, err
	}
	return user, nil
}

func (e *Engine) completeLogin(tx core.App, a attempt, user *collections.User, factor secondFactor) (Session, error) {
	if err := a.forgive(tx); err != nil {
		return Session{}, err
	}
	if err := collections.SetSignedIn(tx, user.Id, factor.step, a.now); err != nil {
		return Session{}, err
	}
	actor := callerOf(user).Actor(a.from)
	if factor.backupCode {
		if err := noteBackupCode(tx, user, factor, actor, a.now); err != nil {
			return Session{}, err
		}
	}
	if err := audit.Append(tx, about(user, audit.Login, actor), a.now); err != nil {
		return Session{}, err
	}
	return e.issue(tx, user, collections.RefreshToken{
		Family: uuid.NewString(), DeviceID: a.deviceID, FamilyStartedAt: a.now, SourceIP: a.from.Address,
	}, a.now)
}

// record appends what happened to an attempt that did not succeed.
func (a attempt) record(tx core.App, event audit.Event, outcome audit.Outcome, reason phi.Text) error {
	entry := a.entry(event)
	entry.Outcome, entry.Reason = outcome, reason
	return audit.Append(tx, entry, a.now)
}

// entry names whom an attempt was about: an address without an account by its keyed hash only.
// Source: docs/decisions/security.md, "Audit record".
func (a attempt) entry(event audit.Event) audit.Entry {
	switch {
	case a.user != nil:
		return about(a.user, event, audit.Anonymous(a.from))
	case a.superuserID != "":
		return audit.Entry{Event: event, Actor: audit.Anonymous(a.from), ResourceType: audit.ResourceSuperuser, ResourceID: a.superuserID}
	}
	return audit.Entry{Event: event, Actor: audit.Anonymous(a.from), ResourceType: audit.ResourceLoginKey, ResourceID: a.emailKey}
}
