package auth

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"

	"github.com/vigilhealth/vigil/internal/phi"
)

// becauseProvider is why sessions of somebody end whom the identity provider gives no role any more.
const becauseProvider = "identity_provider"

// becauseUnlinked is why sessions of somebody end whose identity was taken away.
const becauseUnlinked = "identity_unlinked"

func signOnMissing() error {
	return fault.State("oidc_not_configured", "The practice has no identity provider set up (VIGIL_OIDC_ISSUER).")
}

func ssoRequired() error {
	return fault.New(fault.Forbidden, "sso_required", "Sign in with your practice's account.")
}

func noRole() error {
	return fault.New(fault.Forbidden, "no_role", "Your account at the identity provider has no role here. Ask an administrator to put you into a group that has one.")
}

func notLinked() error {
	return fault.New(fault.Forbidden, "account_not_linked",
		"There is an account here that cannot be yours by what the identity provider says: it must confirm your address, and the account must be one of the staff and nobody else's there.")
}

// SignOn says whether people may sign in with the practice's identity provider, and whether staff must.
func (e *Engine) SignOn() (offered, required bool) {
	return e.options.SignOn != nil, e.options.SignOn != nil && e.options.RequireSignOn
}

// mustSignOn reports whether the local sign-in is closed to a user. Administrators keep it for the day on which the provider is away, and patients
// are not the provider's. Source: docs/decisions/authentication.md, "Single sign-on".
func (e *Engine) mustSignOn(user *collections.User) bool {
	_, required := e.SignOn()
	role := authz.Role(user.Role())
	return required && role != authz.Admin && role != authz.Patient
}

// BeginSignOn starts a sign-in at the identity provider.
func (e *Engine) BeginSignOn(ctx context.Context, now time.Time) (Started, error) {
	if e.options.SignOn == nil {
		return Started{}, signOnMissing()
	}
	return e.options.SignOn.Begin(ctx, now)
}

// FinishSignOn signs in who comes back from the identity provider. The checks, in order: the state and the cookie that it is bound to; what the
// provider signed; that the sign-in has not come back before; a role for one of the groups (no_role); the account, which arises now if there is
// none; that it may be used; the second factor, unless the provider asked for one (totp_required, with a temporary token).
// Source: docs/decisions/authentication.md, "Single sign-on".
func (e *Engine) FinishSignOn(ctx context.Context, app core.App, back Callback, from audit.Origin, now time.Time) (Session, error) {
	if e.options.SignOn == nil {
		return Session{}, signOnMissing()
	}
	identity, err := e.options.SignOn.Finish(ctx, back, now)
	if err != nil {
		return Session{}, err
	}
	hash := ""
	user, err := userOfIdentity(app, identity)
	if err == nil && user == nil && identity.Role != "" { // outside of the transaction, since it takes a twentieth of a second
		wait, done := waiting(ctx)
		defer done()
		hash, err = e.hash(wait, app, Random())
	}
	if err != nil {
		return Session{}, err
	}
	s := signOn{identity: identity, passwordHash: hash, from: from, now: now, key: e.sealer.LoginKey("identity\x00" + identity.Issuer + "\x00" + identity.Subject)}
	return commitDecisionInTurn(ctx, e, app, func(tx core.App) (Session, error, error) { return e.decideSignOn(tx, s) })
}

// signOn is one return from the identity provider.
type signOn struct {
	identity     Identity
	passwordHash string // of a password that nobody knows, for an account that arises
	key          string // keyed hash of the identity
	from         audit.Origin
	now          time.Time
}

// by is who changes an account in the name of the identity provider.
func (s signOn) by() audit.Actor {
	actor := audit.System()
	actor.From = s.from
	return actor
}

// refuse records a refusal, of a user or of an identity that is nobody's.
func (s signOn) refuse(tx core.App, user *collections.User, refusal error, reason phi.Text) (Session, error, error) {
	return Session{}, refusal, attempt{user: user, emailKey: s.key, from: s.from, now: s.now}.record(tx, audit.LoginFailed, audit.MinorFailure, reason)
}

// userOfIdentity is whom the identity is known to be, or who has its address; nil for nobody.
func userOfIdentity(app core.App, identity Identity) (*collections.User, error) {
	id, err := collections.UserOfIdentity(app, identity.Issuer, identity.Subject)
	switch {
	case err == nil:
		return collections.FindUser(app, id)
	case !collections.IsNotFound(err):
		return nil, err
	}
	return ifThere(collections.FindUserByEmail(app, FoldEmail(identity.Email)))
}

func (e *Engine) decideSignOn(tx core.App, s signOn) (session Session, refused, err error) {
	if first, err := collections.UseChallenge(tx, Hash(s.identity.State), s.now, s.identity.Ends); err != nil || !first {
		return session, UnknownState(), err
	}
	linked, err := collections.UserOfIdentity(tx, s.identity.Issuer, s.identity.Subject)
	if err != nil && !collections.IsNotFound(err) {
		return session, nil, err
	}
	user, err := userOfIdentity(tx, s.identity)
	switch {
	case err != nil:
		return session, nil, err
	case s.identity.Role == "":
		if linked != "" { // what the provider gave it takes away again
			if err := s.endSessions(tx, user); err != nil {
				return session, nil, err
			}
		}
		return s.refuse(tx, user, noRole(), "The identity provider's groups have no role here.")
	case user == nil:
		if user, refused, err = s.newAccount(tx); err != nil || refused != nil {
			return session, refused, err
		}
	default:
		if theirs, err := s.isTheirs(tx, user, linked); err != nil {
			return session, nil, err
		} else if !theirs {
			return s.refuse(tx, user, notLinked(), "The identity provider's address is another account's.")
		}
	}
	if usable, err := mayUse(tx, user); err != nil || !usable {
		if err != nil {
			return session, nil, err
		}
		return s.refuse(tx, user, authenticationFailed(), "The account is inactive.")
	}
	if err := collections.Readable(user.ProxyRecord()); err != nil {
		return session, nil, err
	}
	if refused, err := s.giveRole(tx, user); err != nil || refused != nil {
		return session, refused, err
	}
	if err := s.link(tx, user, linked); err != nil {
		return session, nil, err
	}
	return e.completeSignOn(tx, s, user)
}

// isTheirs reports whether the account that is there is that of who signs in. One that somebody else of the provider's has is not, whoever has its
// address now: addresses are handed on. Source: OpenID Connect Core 1.0, 5.7.
func (s signOn) isTheirs(tx core.App, user *collections.User, linked string) (bool, error) {
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

// newAccount makes the account of somebody who signs in for the first time. Its password is known to nobody.
func (s signOn) newAccount(tx core.App) (created *collections.User, refused, err error) {
	if s.passwordHash == "" { // there was one a moment ago
		return nil, UnknownState(), nil
	}
	account := NewAccount{
		Email: FoldEmail(s.identity.Email), FirstName: shortened(s.identity.FirstName), LastName: shortened(s.identity.LastName), Role: s.identity.Role,
	}
	if !validEmail(account.Email) {
		_, refused, err := s.refuse(tx, nil, fault.New(fault.Forbidden, "email_required", "The identity provider tells no mail address of yours, which an account needs."),
			"The identity provider tells no address.")
		return nil, refused, err
	}
	created, err = account.store(tx, s.passwordHash, s.by(), s.now)
	return created, nil, err
}

// shortened is a name as accounts take it.
func shortened(name string) string {
	runes := []rune(validate.CleanLine(name))
	return string(runes[:min(len(runes), 100)])
}

// endSessions signs a user out everywhere, access tokens included.
func (s signOn) endSessions(tx core.App, user *collections.User) error {
	user.RefreshTokenKey()
	if err := save(tx, user, s.now); err != nil {
		return err
	}
	_, err := RevokeAll(tx, user.Id, becauseProvider, s.now)
	return err
}

// link keeps whose identity it is.
func (s signOn) link(tx core.App, user *collections.User, linked string) error {
	if linked != "" {
		return collections.MarkIdentityUsed(tx, s.identity.Issuer, s.identity.Subject, s.now)
	}
	if err := collections.AddIdentity(tx, user.Id, s.identity.Issuer, s.identity.Subject, s.now); err != nil {
		return err
	}
	return audit.Append(tx, about(user, audit.IdentityLinked, s.by()), s.now)
}

// Unlink takes from an account that it is known by an identity of the provider's. What is signed in ends: nobody notes of a session by which door it
// came. The account is found by its address again, by whoever the provider says has it.
func (e *Engine) Unlink(app core.App, caller Caller, userID string, from audit.Origin, now time.Time) error {
	_, err := e.manage(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		removed, err := collections.RemoveIdentities(tx, user.Id)
		if err != nil {
			return nil, err
		}
		if removed == 0 {
			return fault.Missing(), nil
		}
		user.RefreshTokenKey()
		if err := save(tx, user, now); err != nil {
			return nil, err
		}
		ended, err := RevokeAll(tx, user.Id, becauseUnlinked, now)
		if err != nil {
			return nil, err
		}
		entry := about(user, audit.IdentityUnlinked, caller.Actor(from))
		entry.Changes = audit.Changes{"sign_ins": {Old: ended, New: 0}}
		return nil, audit.Append(tx, entry, now)
	})
	return err
}

// giveRole gives the account the role of the provider's groups.
func (s signOn) giveRole(tx core.App, user *collections.User) (refused, err error) {
	before, after := authz.Role(user.Role()), s.identity.Role
	if before == after {
		return nil, nil
	}
	if before == authz.Admin {
		if refused, err := leavesAnAdministrator(tx, Caller{}, user); refused != nil || err != nil {
			return refused, err
		}
	}
	if _, err := RevokeAll(tx, user.Id, becauseRole, s.now); err != nil {
		return nil, err
	}
	if err := applyColumns(tx, user, map[string]string{collections.UserRole: string(after)}, s.by(), s.now); err != nil {
		return nil, err
	}
	entry := about(user, audit.UserRoleChange, s.by())
	entry.Changes = audit.Changes{"role": {Old: string(before), New: string(after)}}
	return nil, audit.Append(tx, entry, s.now)
}

func (e *Engine) completeSignOn(tx core.App, s signOn, user *collections.User) (session Session, refused, err error) {
	shown, err := factorsOf(tx, user)
	if err != nil {
		return session, nil, err
	}
	if shown.any() && !s.identity.SecondFactor {
		refused, err = e.askSecondFactor(tx, user, shown, s.now)
		return session, refused, err
	}
	if err := collections.SetSignedIn(tx, user.Id, 0, s.now); err != nil {
		return session, nil, err
	}
	entry := about(user, audit.Login, callerOf(user).Actor(s.from))
	entry.Changes = audit.Changes{"method": {New: "oidc"}}
	if err := audit.Append(tx, entry, s.now); err != nil {
		return session, nil, err
	}
	session, err = e.issue(tx, user, collections.RefreshToken{
		Family: uuid.NewString(), FamilyStartedAt: s.now, SourceIP: s.from.Address, SecondFactor: s.identity.SecondFactor,
	}, s.now)
	return session, nil, err
}
