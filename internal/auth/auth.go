// Package auth knows who somebody is: signing in with password and second factor, the lock after repeated failures,
// access tokens and the families of refresh tokens. What a known person may do is access's matter.
//
// It refuses to tell: an address without an account fails, counts and locks exactly like one with an account, and
// takes as long. Tokens and second factors are stored as hashes or sealed. Every decision is taken in one transaction
// that holds the write lock from its first statement, so that of two who try at once one is first. Passwords are
// hashed outside of it, since that takes a twentieth of a second.
package auth

import (
	"cmp"
	"runtime"
	"strconv"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"

	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Options are the settings of signing in.
type Options struct {
	// RefreshFamilyLife bounds all tokens that come from one sign-in.
	RefreshFamilyLife time.Duration
	// IdleLogout refuses to refresh after this time without a request; 0 is off.
	IdleLogout time.Duration
	// TOTPIssuer is the name shown in authenticator apps; "" is RPM.
	TOTPIssuer string
	// ResetURL is the page that sets a password; the token is appended. SignInURL is where people sign in: passkeys belong to its host.
	ResetURL, SignInURL string
	// FreshSignIn is for how long after a sign-in second factors may be added without the password; 0 always asks for it.
	FreshSignIn time.Duration
	// RequireTwoFactor lists the roles that reach nothing but their sign-in until they have a second factor.
	RequireTwoFactor []authz.Role
	// SuperuserTwoFactor lets no superuser into the dashboard without one.
	SuperuserTwoFactor bool
	// SignOn is the practice's identity provider; nil without one. RequireSignOn leaves the local sign-in to administrators and patients.
	SignOn        *OIDCProvider
	RequireSignOn bool
}

// Engine signs people in and recognises them. It is safe for concurrent use.
type Engine struct {
	sealer  *phi.Sealer
	signer  *Signer
	options Options
	places  *places // for passwords being hashed
	turns   *places // for attempts being decided
	users   *async.Cache[knownUser]
	noted   activity
	arrived arrived
	// passkeys is nil where the service has no host name.
	passkeys *webauthn.WebAuthn
}

// New returns an engine. It hashes passwords on half of the processors at most, so that many people who sign in at once do not hold up
// readings.
func New(sealer *phi.Sealer, options Options) *Engine {
	options.TOTPIssuer = cmp.Or(options.TOTPIssuer, "RPM")
	return &Engine{
		sealer: sealer, signer: NewSigner(sealer), options: options, places: newPlaces(max(1, runtime.GOMAXPROCS(0)/2)),
		passkeys: newRelyingParty(options.SignInURL, options.TOTPIssuer), turns: newTurns(),
		users: async.NewCache[knownUser](rememberedUsers),
	}
}

// Actor is the caller as the audit log names them.
func (c Caller) Actor(from audit.Origin) audit.Actor {
	if c.Client != nil {
		return audit.Client(c.Client.ID, c.Client.Name, from)
	}
	return audit.User(c.ID, c.Email, string(c.Role), from)
}

func callerOf(user *collections.User) Caller {
	return Caller{
		RecordID: user.Id, ID: user.Number(), Email: user.Email(), Role: authz.Role(user.Role()), PatientID: user.PatientID(),
		TwoFactor: user.TwoFactorEnabled(),
	}
}

// about is an entry about a user; outcome and changes are the caller's to add.
func about(user *collections.User, event audit.Event, actor audit.Actor) audit.Entry {
	return audit.Entry{Event: event, Actor: actor, ResourceType: audit.ResourceUser, ResourceID: strconv.FormatInt(user.Number(), 10)}
}

// mayUse reports whether an account may be used: active, and not the portal account of a deleted patient.
// Source: docs/decisions/authentication.md, "Login when TOTP is missing".
func mayUse(app core.App, user *collections.User) (bool, error) {
	if !user.Active() {
		return false, nil
	}
	if authz.Role(user.Role()) != authz.Patient || user.PatientID() == "" {
		return true, nil
	}
	_, err := collections.FindPatient(app, user.PatientID())
	if collections.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// TOTPRequired is the code of the refusal of a right password whose second factor is missing.
const TOTPRequired = "totp_required"

// totpRequired says that the password was right and the second factor is missing.
func totpRequired() *fault.Error {
	return fault.New(fault.Unauthenticated, TOTPRequired, "Two-factor code required.")
}

func refusal(code, detail string) error { return fault.New(fault.Unauthenticated, code, detail) }

// The refusals of an access or refresh token. Source: docs/decisions/authentication.md, "Access token" and "Refresh-token family".
func notAuthenticated() error {
	return refusal("not_authenticated", "Authentication credentials were not provided.")
}

func tokenInvalid() error { return refusal("token_invalid", "The token is invalid.") }

func tokenExpired() error { return refusal("token_expired", "The token has expired.") }

func tokenReused() error {
	return refusal("token_reused", "The token was used before. Sign in again.")
}

func tokenRevoked() error { return refusal("token_revoked", "The token was revoked. Sign in again.") }

// Caller is who makes a request, as the database knew them when the request came in.
type Caller struct {
	RecordID  string     // native record id
	ID        int64      // public id
	Email     string     // sign-in address
	Role      authz.Role // never taken from the token
	PatientID string     // linked patient of a portal user, else ""
	Family    string     // the sign-in the access token came from; "" when it names none
	// TwoFactor reports whether signing in takes a second factor; NeedsTwoFactor, that the role must have one and the caller has not.
	TwoFactor, NeedsTwoFactor bool
	// Client is the machine that makes the request; nil for a person.
	Client *Client
}
