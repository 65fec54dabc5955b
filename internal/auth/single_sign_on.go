package auth

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// reasonProvider ends sessions after the identity provider removed the user's role.
const reasonProvider = "identity_provider"

// reasonUnlinked ends sessions after the user's identity was unlinked.
const reasonUnlinked = "identity_unlinked"

func signOnMissing() error {
	return fault.State("oidc_not_configured", "The practice has no identity provider set up (VIGIL_OIDC_ISSUER).")
}

func ssoRequired() error {
	return fault.New(fault.Forbidden, "sso_required", "Sign in with your practice's account.")
}

func noRole() error {
	return fault.New(fault.Forbidden, "no_role", "Your account at the identity provider has no role here. An administrator can add you to a group that has one.")
}

func notLinked() error {
	return fault.New(fault.Forbidden, "account_not_linked",
		"There is an account here that the identity provider does not confirm as yours: the provider must confirm your address, and the account must belong to staff and not be linked to another person there.")
}

// SignOn reports whether single sign-on is offered and whether staff must use it.
func (e *Engine) SignOn() (offered, required bool) {
	return e.options.SignOn != nil, e.options.SignOn != nil && e.options.RequireSignOn
}

// mustSignOn reports whether the user must use single sign-on. Administrators keep local sign-in for outages of the provider, and patients have
// no account there. Source: docs/decisions/authentication.md, "Single sign-on".
func (e *Engine) mustSignOn(user *collections.User) bool {
	_, required := e.SignOn()
	role := authz.Role(user.Role())
	return required && role != authz.Admin && role != authz.Patient
}

// BeginSignOn starts a sign-in at the identity provider.
func (e *Engine) BeginSignOn(ctx context.Context, now time.Time) (SignOnStart, error) {
	if e.options.SignOn == nil {
		return SignOnStart{}, signOnMissing()
	}
	return e.options.SignOn.Begin(ctx, now)
}

// FinishSignOn completes a sign-in at the identity provider. It checks, in order: the state and its cookie; that the state was not used before;
// the ID token; a role for one of the groups (no_role); the account, which it creates if there is none; that the account may be used; and the
// second factor, unless the provider required one (totp_required, with a temporary token). Source: docs/decisions/authentication.md, "Single
// sign-on".
func (e *Engine) FinishSignOn(ctx context.Context, app core.App, callback Callback, from audit.Origin, now time.Time) (Session, error) {
	if e.options.SignOn == nil {
		return Session{}, signOnMissing()
	}
	callback.recordUse = recordStateUse(app, now)
	identity, err := e.options.SignOn.Finish(ctx, callback, now)
	if err != nil {
		return Session{}, err
	}
	hash := ""
	user, err := userOfIdentity(app, identity)
	if err == nil && user == nil && identity.Role != "" { // outside the transaction: hashing takes about 50 ms
		wait, done := withQueueTimeout(ctx)
		defer done()
		hash, err = e.hash(wait, app, NewSecret())
	}
	if err != nil {
		return Session{}, err
	}
	s := signOn{identity: identity, passwordHash: hash, from: from, now: now, method: "oidc", key: e.sealer.LoginKey("identity\x00" + identity.Issuer + "\x00" + identity.Subject)}
	return commitQueuedDecision(ctx, e, app, func(tx core.App) (Session, error, error) { return e.decideSignOn(tx, s) })
}

// signOn holds the data of one callback from the identity provider.
type signOn struct {
	identity     Identity
	passwordHash string // hash of a random password, for a new account
	key          string // keyed hash of the identity
	method       string // of the audit entry
	existingOnly bool   // an account is neither created, nor are its sessions ended: the token is another client's
	patient      LaunchedPatient
	from         audit.Origin
	now          time.Time
}

// actor is the audit actor for changes made on behalf of the identity provider.
func (s signOn) actor() audit.Actor {
	actor := audit.System()
	actor.Origin = s.from
	return actor
}

// auditRejection audits a refusal of a user, or of an identity without an account.
func (s signOn) auditRejection(tx core.App, user *collections.User, refusal error, reason phi.Text) (Session, error, error) {
	return Session{}, refusal, attempt{user: user, emailKey: s.key, from: s.from, now: s.now}.record(tx, audit.LoginFailed, audit.MinorFailure, reason)
}

// userOfIdentity returns the user linked to the identity, or else the user with its e-mail address, or nil.
func userOfIdentity(app core.App, identity Identity) (*collections.User, error) {
	id, err := collections.UserOfIdentity(app, identity.Issuer, identity.Subject)
	switch {
	case err == nil:
		return collections.FindUser(app, id)
	case !collections.IsNotFound(err):
		return nil, err
	}
	return nilIfMissing(collections.FindUserByEmail(app, FoldEmail(identity.Email)))
}

func (e *Engine) decideSignOn(tx core.App, s signOn) (session Session, refused, err error) {
	linked, err := collections.UserOfIdentity(tx, s.identity.Issuer, s.identity.Subject)
	if err != nil && !collections.IsNotFound(err) {
		return session, nil, err
	}
	user, err := userOfIdentity(tx, s.identity)
	isNew := user == nil
	switch {
	case err != nil:
		return session, nil, err
	case s.identity.Role == "":
		if linked != "" && !s.existingOnly { // the provider has removed the role
			if err := s.endSessions(tx, user); err != nil {
				return session, nil, err
			}
		}
		return s.auditRejection(tx, user, noRole(), "The identity provider's groups have no role here.")
	case user == nil && s.existingOnly:
		return s.auditRejection(tx, nil, notLinked(), "There is no account.")
	case user == nil:
		if user, refused, err = s.newAccount(tx); err != nil || refused != nil {
			return session, refused, err
		}
	default:
		if owns, err := s.ownsAccount(tx, user, linked); err != nil {
			return session, nil, err
		} else if !owns {
			return s.auditRejection(tx, user, notLinked(), "The identity provider's address is another account's.")
		}
	}
	if usable, err := isUsable(tx, user); err != nil || !usable {
		if err != nil {
			return session, nil, err
		}
		return s.auditRejection(tx, user, authenticationFailed(), "The account is inactive.")
	}
	if err := collections.Readable(user.ProxyRecord()); err != nil {
		return session, nil, err
	}
	if refused, err := s.applyRole(tx, user); err != nil || refused != nil {
		return session, refused, err
	}
	if err := s.linkIdentity(tx, user, linked, isNew); err != nil {
		return session, nil, err
	}
	if s.identity.EmailVerified && !user.Verified() && FoldEmail(s.identity.Email) == FoldEmail(user.Email()) {
		user.SetVerified(true)
		if err := saveUser(tx, user, s.now); err != nil {
			return session, nil, err
		}
	}
	return e.completeSignOn(tx, s, user)
}

// isUnconfirmed reports whether the identity provider made the account and never confirmed its address. The owner of that mailbox may be
// another person, so no password is set through it.
func isUnconfirmed(app core.App, user *collections.User) (bool, error) {
	if user.Verified() {
		return false, nil
	}
	return collections.HasIdentity(app, user.Id, "")
}

// ownsAccount reports whether the existing account belongs to the identity. An account linked to another identity of the provider does not, even
// if the address matches, because addresses are reassigned. Source: OpenID Connect Core 1.0, section 5.7.
func (s signOn) ownsAccount(tx core.App, user *collections.User, linked string) (bool, error) {
	switch {
	case authz.Role(user.Role()) == authz.Patient:
		return false, nil
	case linked != "":
		return true, nil
	case !s.identity.EmailVerified:
		return false, nil
	}
	others, err := collections.HasIdentity(tx, user.Id, s.identity.Issuer)
	return !others, err
}

// newAccount creates an account at the first sign-in, with a random password.
func (s signOn) newAccount(tx core.App) (created *collections.User, refused, err error) {
	if s.passwordHash == "" { // the account existed before the transaction
		return nil, UnknownState(), nil
	}
	account := NewAccount{
		Email: FoldEmail(s.identity.Email), FirstName: truncateName(s.identity.FirstName), LastName: truncateName(s.identity.LastName), Role: s.identity.Role,
		IsUnconfirmed: !s.identity.EmailVerified,
	}
	if !validEmail(account.Email) {
		_, refused, err := s.auditRejection(tx, nil, fault.New(fault.Forbidden, "email_required", "The identity provider gives no mail address for you, which an account needs."),
			"The identity provider gives no address.")
		return nil, refused, err
	}
	created, err = account.store(tx, s.passwordHash, s.actor(), s.now)
	return created, nil, err
}

// truncateName returns a name that fits an account.
func truncateName(name string) string { return truncate(validate.CleanLine(name), 100) }

// truncate returns the first characters of a text.
func truncate(text string, most int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), most)])
}

// endSessions ends all sessions of a user, including access tokens.
func (s signOn) endSessions(tx core.App, user *collections.User) error {
	user.RefreshTokenKey()
	if err := saveUser(tx, user, s.now); err != nil {
		return err
	}
	_, err := RevokeAll(tx, user.Id, reasonProvider, s.now)
	return err
}

// linkIdentity links the identity to the user, or marks an existing link as used. The owner of an account that is not new is notified.
func (s signOn) linkIdentity(tx core.App, user *collections.User, linked string, isNew bool) error {
	if linked != "" {
		return collections.MarkIdentityUsed(tx, s.identity.Issuer, s.identity.Subject, s.now)
	}
	if err := collections.AddIdentity(tx, user.Id, s.identity.Issuer, s.identity.Subject, s.now); err != nil {
		return err
	}
	if !isNew {
		if err := notifications.QueueMail(tx, notifications.IdentityLinked, user, nil, s.now); err != nil {
			return err
		}
	}
	return audit.Append(tx, userEntry(user, audit.IdentityLinked, s.actor()), s.now)
}

// Unlink removes a user's identities of the provider. All sessions end, because a session does not store how it began. The next sign-in finds
// the account by its e-mail address again.
func (e *Engine) Unlink(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) error {
	_, err := e.changeExistingUser(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		removed, err := collections.RemoveIdentities(tx, user.Id)
		if err != nil {
			return nil, err
		}
		if removed == 0 {
			return fault.Missing(), nil
		}
		user.RefreshTokenKey()
		if err := saveUser(tx, user, now); err != nil {
			return nil, err
		}
		ended, err := RevokeAll(tx, user.Id, reasonUnlinked, now)
		if err != nil {
			return nil, err
		}
		entry := userEntry(user, audit.IdentityUnlinked, caller.Actor(from))
		entry.Changes = audit.Changes{"sign_ins": {Old: ended, New: 0}}
		return nil, audit.Append(tx, entry, now)
	})
	return err
}

// applyRole assigns the role of the provider's groups to the account.
func (s signOn) applyRole(tx core.App, user *collections.User) (refused, err error) {
	before, after := authz.Role(user.Role()), s.identity.Role
	if before == after {
		return nil, nil
	}
	if before == authz.Admin {
		if refused, err := requireOtherAdministrator(tx, Caller{}, user); refused != nil || err != nil {
			return refused, err
		}
	}
	if _, err := RevokeAll(tx, user.Id, reasonRoleChange, s.now); err != nil {
		return nil, err
	}
	if err := applyColumns(tx, user, map[string]string{collections.UserRole: string(after)}, s.actor(), s.now); err != nil {
		return nil, err
	}
	entry := userEntry(user, audit.UserRoleChange, s.actor())
	entry.Changes = audit.Changes{"role": {Old: string(before), New: string(after)}}
	return nil, audit.Append(tx, entry, s.now)
}

func (e *Engine) completeSignOn(tx core.App, s signOn, user *collections.User) (session Session, refused, err error) {
	userFactors, err := factorsOf(tx, user)
	if err != nil {
		return session, nil, err
	}
	if userFactors.any() && !s.identity.SecondFactor {
		refused, err = e.requestSecondFactor(tx, user, userFactors, s.now)
		return session, refused, err
	}
	if err := collections.SetSignedIn(tx, user.Id, 0, s.now); err != nil {
		return session, nil, err
	}
	entry := userEntry(user, audit.Login, callerOf(user).Actor(s.from))
	entry.Changes = audit.Changes{"method": {New: s.method}}
	if s.patient != (LaunchedPatient{}) {
		entry.Changes["patient"] = audit.Change{New: cmp.Or(s.patient.ID, s.patient.Problem)}
	}
	if err := audit.Append(tx, entry, s.now); err != nil {
		return session, nil, err
	}
	session, err = e.issue(tx, user, collections.RefreshToken{
		Family: uuid.NewString(), FamilyStartedAt: s.now, SourceIP: s.from.Address, UserAgent: userAgent(s.from),
		SecondFactor: s.identity.SecondFactor,
	}, s.now)
	return session, nil, err
}

// StepCodeBody is the second-factor code after a sign-in at an identity provider that required one factor only.
type StepCodeBody struct {
	TemporaryTokenBody
	TOTPCode   validate.String `json:"totp_code"`   // either field accepts either kind of code
	BackupCode validate.String `json:"backup_code"` //
}

// FinishSecondFactor completes a sign-in with a temporary token and a code. It refuses as [Engine.Login] does and consumes the temporary token even if
// the code is wrong. Source: docs/decisions/authentication.md, "Single sign-on".
func (e *Engine) FinishSecondFactor(ctx context.Context, app core.App, body StepCodeBody, from audit.Origin, now time.Time) (Session, error) {
	checks := validate.NewChecks()
	step := body.read(checks)
	if !body.TemporaryToken.Given() {
		checks.Reject("temporary_token", "This field is required.")
	}
	code := readCode(checks, body.TOTPCode, body.BackupCode)
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
		return e.decideTemporaryToken(tx, e.newAttempt(user, from, now), step, code)
	})
}

func (e *Engine) decideTemporaryToken(tx core.App, a attempt, step, code string) (session Session, refused, err error) {
	failures, refused, err := a.rejectIfLocked(tx)
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
