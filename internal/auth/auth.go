// Package auth authenticates users, superusers and machine clients. It covers passwords, second factors, passkeys, single sign-on, lockout,
// access tokens and refresh-token families. Package authz decides what a caller may do.
//
// An address without an account fails, counts, locks and takes time exactly like one with an account, so responses do not reveal which addresses
// exist. Tokens are stored as hashes, and second factors as hashes or sealed. Every decision runs in one transaction that holds the write lock
// from its first statement, so concurrent attempts are decided one after the other. Passwords are hashed outside the transaction, since a hash
// takes about 50 ms.
package auth

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"runtime"
	"strconv"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Options configure an [Engine].
type Options struct {
	// RefreshFamilyLife bounds the lifetime of all tokens from one sign-in.
	RefreshFamilyLife time.Duration
	// IdleLogout refuses to refresh after this time without a request; 0 disables it.
	IdleLogout time.Duration
	// TOTPIssuer is the name shown in authenticator apps; "" is RPM.
	TOTPIssuer string
	// ResetURL is the page that sets a password; the token is appended. SignInURL is the sign-in page; passkeys are bound to its host.
	ResetURL, SignInURL string
	// FreshSignIn is how long after a sign-in second factors may be added without the password; 0 always requires it.
	FreshSignIn      time.Duration
	RequireTwoFactor TwoFactorPolicy
	// SuperuserTwoFactor refuses dashboard access to superusers without a second factor.
	SuperuserTwoFactor bool
	// SignOn is the practice's identity provider, or nil. RequireSignOn restricts local sign-in to administrators and patients.
	SignOn        *OIDCProvider
	RequireSignOn bool
	// Launcher signs in users whom an EMR sends, or is nil.
	Launcher *Launcher
}

// TwoFactorPolicy lists the roles that must set up a second factor before they can use the API. An account without one can use it for the
// grace period after the later of its creation and Since.
type TwoFactorPolicy struct {
	Roles []authz.Role
	Grace time.Duration
	Since time.Time
}

// Engine signs users and superusers in and authenticates their access tokens. It is safe for concurrent use.
type Engine struct {
	sealer          *phi.Sealer
	signer          *Signer
	options         Options
	hashLimiter     *workLimiter // concurrent password hashes
	decisionLimiter *workLimiter // concurrent sign-in decisions
	users           *async.Cache[cachedUser]
	activity        activity
	confirmed       confirmedRotations
	// passkeys is nil if the service has no host name.
	passkeys *webauthn.WebAuthn
}

// New returns an engine. It hashes passwords on at most half of the CPUs, so that a sign-in rush does not delay readings.
func New(sealer *phi.Sealer, options Options) *Engine {
	options.TOTPIssuer = cmp.Or(options.TOTPIssuer, "RPM")
	return &Engine{
		sealer: sealer, signer: NewSigner(sealer), options: options, hashLimiter: newHashLimiter(max(1, runtime.GOMAXPROCS(0)/2)),
		passkeys: newRelyingParty(options.SignInURL, options.TOTPIssuer), decisionLimiter: newDecisionLimiter(),
		users: async.NewCache[cachedUser](maxCachedUsers),
	}
}

// Actor returns the caller as an audit actor.
func (c Caller) Actor(from audit.Origin) audit.Actor {
	if c.Client != nil {
		return audit.Client(c.Client.ID, c.Client.Name, from)
	}
	role := string(c.Role)
	if c.PatientID != "" && c.Scope != "" && c.Scope != authz.PortalSelf {
		role = CaregiverRole
	}
	return audit.User(c.ID, c.Email, role, from)
}

func callerOf(user *collections.User) Caller {
	return Caller{
		RecordID: user.Id, ID: user.Number(), Email: user.Email(), Role: authz.Role(user.Role()), PatientID: user.PatientID(),
		TwoFactor: user.TwoFactorEnabled(),
	}
}

// userEntry returns an audit entry about a user. The caller adds outcome and changes.
func userEntry(user *collections.User, event audit.Event, actor audit.Actor) audit.Entry {
	return audit.Entry{Event: event, Actor: actor, ResourceType: audit.ResourceUser, ResourceID: strconv.FormatInt(user.Number(), 10)}
}

// isUsable reports whether an account may be used: it is active, and not the portal account of a
// deleted patient, unless it is also the caregiver of another patient. Source:
// docs/decisions/authentication.md, "Login when TOTP is missing".
func isUsable(app core.App, user *collections.User) (bool, error) {
	if !user.Active() {
		return false, nil
	}
	if authz.Role(user.Role()) != authz.Patient || user.PatientID() == "" {
		return true, nil
	}
	_, err := collections.FindPatient(app, user.PatientID())
	if !collections.IsNotFound(err) {
		return err == nil, err
	}
	others, err := collections.CaregiverAccesses(app, user.Id)
	return len(others) > 0, err
}

// TOTPRequired is the code of the refusal after a right password without a second factor.
const TOTPRequired = "totp_required"

func totpRequired() *fault.Error {
	return fault.New(fault.Unauthenticated, TOTPRequired, "Two-factor code required.")
}

func unauthenticated(code, detail string) error {
	return fault.New(fault.Unauthenticated, code, detail)
}

// The refusals of an access or refresh token. Source: docs/decisions/authentication.md, "Access token" and "Refresh-token family".
func notAuthenticated() error {
	return unauthenticated("not_authenticated", "Authentication credentials were not provided.")
}

func tokenInvalid() error { return unauthenticated("token_invalid", "The token is invalid.") }

func tokenExpired() error { return unauthenticated("token_expired", "The token has expired.") }

func tokenReused() error {
	return unauthenticated("token_reused", "The token was used before. Sign in again.")
}

func tokenRevoked() error {
	return unauthenticated("token_revoked", "The token was revoked. Sign in again.")
}

// Caller is the user or client that makes a request, as loaded from the database.
type Caller struct {
	RecordID  string     // native record id
	ID        int64      // public id
	Email     string     // sign-in address
	Role      authz.Role // never taken from the token
	PatientID string     // the patient that a portal user's request is about, else ""
	// Patients are the patients that a portal user may access. PatientID is the only one, or "" until the request names one of several.
	Patients []PortalAccess
	// Scope is the portal user's for PatientID.
	Scope  authz.PortalScope
	Family string // refresh-token family of the access token; "" if none
	// TwoFactor reports whether sign-in requires a second factor. NeedsTwoFactor reports that the role requires one, that the caller has none,
	// and that TwoFactorDue has passed; TwoFactorDue is zero if the caller needs none.
	TwoFactor, NeedsTwoFactor bool
	TwoFactorDue              time.Time
	// Client is the machine client that makes the request; nil for a user.
	Client *Client
}

// NewSecret returns an opaque token or secret: 256 random bits in base64url.
func NewSecret() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(bits[:])
}

// HashSecret returns the SHA-256 of a random value, for storage. 256 random bits cannot be guessed, so the hash needs no salt or key.
func HashSecret(random string) string {
	sum := sha256.Sum256([]byte(random))
	return hex.EncodeToString(sum[:])
}
