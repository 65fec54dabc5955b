package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// TemporaryTokenBody may hold the temporary token of a right password.
type TemporaryTokenBody struct {
	TemporaryToken validate.String `json:"temporary_token"`
}

// unknownTokenHash is the hash of no token.
const unknownTokenHash = "unknown"

// read returns the hash of the token, or "" if none was sent.
func (b TemporaryTokenBody) read(checks *validate.Checks) string {
	if !b.TemporaryToken.Sent() || b.TemporaryToken.Null() {
		return ""
	}
	token := checks.Secret("temporary_token", b.TemporaryToken, 512)
	if len(checks.Fields["temporary_token"]) == 0 && !temporaryTokenFormat.MatchString(token) {
		return unknownTokenHash
	}
	return HashSecret(token)
}

// signInPurpose is the purpose of a sign-in challenge: with a passkey alone, or as the second step after a password.
func signInPurpose(step string) string { return "sign in\x00" + step }

// PasskeyAssertion returns the options for using a passkey: any discoverable passkey of this service with user verification, or, after a right
// password, one of that user's passkeys.
func (e *Engine) PasskeyAssertion(app core.App, body TemporaryTokenBody, now time.Time) (*protocol.CredentialAssertion, error) {
	if e.passkeys == nil {
		return nil, passkeysUnavailable()
	}
	checks := validate.NewChecks()
	step := body.read(checks)
	if err := checks.Err(); err != nil {
		return nil, err
	}
	challenge, err := e.newChallenge(signInPurpose(step), now)
	if err != nil {
		return nil, err
	}
	options := []webauthn.LoginOption{webauthn.WithChallenge(challenge)}
	if step == "" {
		assertion, _, err := e.passkeys.BeginDiscoverableLogin(append(options, webauthn.WithUserVerification(protocol.VerificationRequired))...)
		return assertion, err
	}
	user, err := e.userOfTemporaryToken(app, step, now)
	if err != nil {
		return nil, err
	}
	if user == nil {
		return nil, authenticationFailed()
	}
	person, err := e.webauthnUserOf(app, user)
	if err != nil {
		return nil, err
	}
	if len(person.passkeys) == 0 || !mayHavePasskeys(user) {
		return nil, fault.State("invalid_state", "There is no passkey on this account.")
	}
	assertion, _, err := e.passkeys.BeginLogin(person, append(options, webauthn.WithUserVerification(protocol.VerificationPreferred))...)
	return assertion, err
}

// userOfTemporaryToken returns the user who sent the right password, or nil if the token is unknown, used, expired, or invalidated by a change
// of the user's token key.
func (e *Engine) userOfTemporaryToken(app core.App, step string, now time.Time) (*collections.User, error) {
	found, err := collections.FindSignInStep(app, step, now)
	if collections.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	user, err := collections.FindUser(app, found.UserID)
	if err != nil || found.KeyHash != e.temporaryTokenKey(user) {
		return nil, err
	}
	return user, nil
}

// AssertionBody is the use of a passkey.
type AssertionBody struct {
	TemporaryTokenBody
	Credential validate.Field[json.RawMessage] `json:"credential"`
	DeviceID   validate.String                 `json:"device_id"` // links the session to a push device
}

// passkeyAttempt is one attempt to sign in with a passkey.
type passkeyAttempt struct {
	attempt
	temporaryTokenHash string // hash of the temporary token; "" without a password step
	assertion          *protocol.ParsedCredentialAssertionData
	credential         string // credential id of the passkey
}

// SignInWithPasskey signs a user in with a passkey, alone or as the second step after a password. It refuses as [Engine.Login] does: a failure
// counts as a failed sign-in of the passkey's account, and a lockout applies. Source: docs/decisions/authentication.md, "Passkeys".
func (e *Engine) SignInWithPasskey(ctx context.Context, app core.App, body AssertionBody, from audit.Origin, now time.Time) (Session, error) {
	if e.passkeys == nil {
		return Session{}, passkeysUnavailable()
	}
	p, err := e.readPasskeyAttempt(app, body, from, now)
	if err != nil {
		return Session{}, err
	}
	ctx, done := withQueueTimeout(ctx)
	defer done()
	return commitQueuedDecision(ctx, e, app, func(tx core.App) (Session, error, error) { return e.decidePasskey(tx, p) })
}

func (e *Engine) readPasskeyAttempt(app core.App, body AssertionBody, from audit.Origin, now time.Time) (p passkeyAttempt, err error) {
	checks := validate.NewChecks()
	p.temporaryTokenHash = body.read(checks)
	validate.NotNull(checks, "device_id", body.DeviceID)
	deviceID := checks.Text("device_id", body.DeviceID, validate.Optional(128))
	var unreadable error
	if p.assertion, unreadable = protocol.ParseCredentialRequestResponseBytes(body.Credential.Value); unreadable != nil {
		checks.Reject("credential", "Must be a public-key credential as a browser makes it.")
	}
	if err := checks.Err(); err != nil {
		return p, err
	}
	p.credential = base64.RawURLEncoding.EncodeToString(p.assertion.RawID)
	user, err := e.userOfAttempt(app, p, now)
	if err != nil {
		return p, err
	}
	if user == nil { // unknown: audited under a keyed hash, like an address without an account
		p.attempt = attempt{emailKey: e.sealer.LoginKey("passkey\x00" + p.credential), from: from, now: now}
		return p, nil
	}
	p.attempt = e.newAttempt(user, from, now)
	p.deviceID = deviceID
	return p, nil
}

// userOfAttempt returns the user who sent the right password or owns the passkey, or nil.
func (e *Engine) userOfAttempt(app core.App, p passkeyAttempt, now time.Time) (*collections.User, error) {
	if p.temporaryTokenHash != "" {
		return e.userOfTemporaryToken(app, p.temporaryTokenHash, now)
	}
	passkey, err := nilIfMissing(collections.FindPasskey(app, p.credential))
	if err != nil || passkey == nil {
		return nil, err
	}
	return collections.FindUser(app, passkey.UserID())
}

// assertionResult is the result of verifying the use of a passkey.
type assertionResult struct {
	proven    bool
	isExpired bool // the challenge or token had expired; not a guess, so no failure is counted
	user      *collections.User
	passkey   *collections.Passkey
	count     uint32
	backedUp  bool // the passkey is synced to other devices
}

func (e *Engine) decidePasskey(tx core.App, p passkeyAttempt) (session Session, refused, err error) {
	if p.user == nil {
		return session, authenticationFailed(), p.record(tx, audit.LoginFailed, audit.MinorFailure, "No such passkey.")
	}
	failures, refused, err := p.rejectPasskeyIfLocked(tx)
	if refused != nil || err != nil {
		return session, refused, err
	}
	v, err := e.verifyAssertion(tx, p)
	switch {
	case err != nil:
		return session, nil, err
	case v.isExpired:
		return session, authenticationFailed(), p.record(tx, audit.LoginFailed, audit.MinorFailure, "The passkey was used too late.")
	case !v.proven && isLocked(failures, p.now):
		return session, authenticationFailed(), p.record(tx, audit.LoginFailed, audit.MinorFailure, "")
	case !v.proven:
		refused, err = p.fail(tx, failures)
		return session, refused, err
	}
	if p.temporaryTokenHash == "" && e.mustSignOn(v.user) {
		return session, ssoRequired(), p.record(tx, audit.LoginFailed, audit.MinorFailure, "Signing in takes the identity provider.")
	}
	if err := collections.MarkPasskeyUsed(tx, v.passkey.Id, v.count, v.backedUp, p.now); err != nil {
		return session, nil, err
	}
	if err := audit.Append(tx, passkeyEntry(v.user, v.passkey, audit.PasskeyUsed, callerOf(v.user).Actor(p.from)), p.now); err != nil {
		return session, nil, err
	}
	session, err = e.completeLogin(tx, p.attempt, v.user, secondFactor{proven: true})
	return session, nil, err
}

// rejectPasskeyIfLocked refuses a passkey after a password while the account is locked. A passkey alone cannot be guessed, so a stranger's wrong passwords do
// not keep its owner out. Source: docs/decisions/authentication.md, "Passkeys"; ASVS 5.0, 6.1.1.
func (p passkeyAttempt) rejectPasskeyIfLocked(tx core.App) (failures collections.LoginFailure, refused, err error) {
	if p.temporaryTokenHash != "" {
		return p.rejectIfLocked(tx)
	}
	failures, err = collections.LockLoginFailure(tx, p.emailKey)
	return failures, nil, err
}

// verifyAssertion verifies the use of a passkey. It consumes the challenge and the temporary token even if verification fails.
func (e *Engine) verifyAssertion(tx core.App, p passkeyAttempt) (v assertionResult, err error) {
	if p.temporaryTokenHash != "" {
		if _, err := collections.UseSignInStep(tx, p.temporaryTokenHash, p.now); err != nil {
			if collections.IsNotFound(err) {
				return assertionResult{isExpired: true}, nil
			}
			return v, err
		}
	}
	challenge := p.assertion.Response.CollectedClientData.Challenge
	state, ends, err := e.checkChallenge(challenge, signInPurpose(p.temporaryTokenHash), p.now)
	if err != nil || state != challengeValid {
		return assertionResult{isExpired: state == challengeExpired}, err
	}
	if first, err := collections.UseChallenge(tx, HashSecret(challenge), p.now, ends); err != nil || !first {
		return v, err
	}
	if v.user, err = p.account(tx); err != nil || v.user == nil || !mayHavePasskeys(v.user) {
		return assertionResult{}, err
	}
	person, err := e.webauthnUserOf(tx, v.user)
	if err != nil {
		return assertionResult{}, err
	}
	for _, passkey := range person.passkeys {
		if passkey.CredentialID() == p.credential {
			v.passkey = passkey
		}
	}
	if v.passkey == nil {
		return assertionResult{}, nil
	}
	credential, right := e.validateAssertion(p, person, challenge)
	if !right {
		return assertionResult{}, nil
	}
	if credential.Authenticator.CloneWarning {
		return assertionResult{}, reportClonedPasskey(tx, v.user, v.passkey, p)
	}
	v.proven, v.count, v.backedUp = true, credential.Authenticator.SignCount, credential.Flags.BackupState
	return v, nil
}

// validateAssertion verifies signature, origin, relying party and flags. A passkey alone replaces both factors, so it requires user verification
// and a user handle.
func (e *Engine) validateAssertion(p passkeyAttempt, person *webauthnUser, challenge string) (credential *webauthn.Credential, right bool) {
	var wrong error
	session := webauthn.SessionData{Challenge: challenge, UserVerification: protocol.VerificationRequired}
	if p.temporaryTokenHash != "" {
		session.UserID, session.UserVerification = person.handle, protocol.VerificationPreferred
		credential, wrong = e.passkeys.ValidateLogin(person, session, p.assertion)
	} else {
		_, credential, wrong = e.passkeys.ValidatePasskeyLogin(func([]byte, []byte) (webauthn.User, error) { return person, nil }, session, p.assertion)
	}
	return credential, wrong == nil
}

// reportClonedPasskey audits that a signature counter went backwards, which means that two devices may hold the key, and notifies the owner.
// Source: WebAuthn Level 3, section 6.1.1.
func reportClonedPasskey(tx core.App, user *collections.User, passkey *collections.Passkey, p passkeyAttempt) error {
	entry := passkeyEntry(user, passkey, audit.PasskeyRefused, audit.Anonymous(p.from))
	entry.Outcome, entry.Reason = audit.SeriousFailure, "Its count of uses went backwards."
	if err := audit.Append(tx, entry, p.now); err != nil {
		return err
	}
	return notifyPasskeyCloned(tx, user, p.now)
}

// A challenge contains its expiry and a keyed hash of its purpose, so issuing one stores nothing: the endpoints that issue them are public. Only
// a used challenge is stored, until it expires, so that it works once.
const (
	challengeLife   = 5 * time.Minute
	challengeRandom = 16
	challengeEnd    = challengeRandom + 8
	challengeBytes  = challengeEnd + sha256.Size
)

// challengeState is the result of checking a challenge.
type challengeState int

const (
	challengeInvalid challengeState = iota // forged, or issued for another purpose
	challengeExpired                       // past its expiry
	challengeValid
)

// newChallenge issues a challenge for a purpose, which names the action and the user.
func (e *Engine) newChallenge(purpose string, now time.Time) ([]byte, error) {
	challenge := make([]byte, challengeEnd, challengeBytes)
	_, _ = rand.Read(challenge[:challengeRandom]) // never fails
	binary.BigEndian.PutUint64(challenge[challengeRandom:], uint64(now.Add(challengeLife).UnixMicro()))
	mac, err := e.challengeMAC(purpose, challenge)
	return append(challenge, mac...), err
}

// checkChallenge reports whether the browser's encoded challenge was issued for the purpose, and when it expires.
func (e *Engine) checkChallenge(text, purpose string, now time.Time) (state challengeState, ends time.Time, err error) {
	challenge, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(challenge) != challengeBytes {
		return challengeInvalid, ends, nil //nolint:nilerr // a foreign challenge is not an error
	}
	mac, err := e.challengeMAC(purpose, challenge[:challengeEnd])
	if err != nil || !hmac.Equal(mac, challenge[challengeEnd:]) {
		return challengeInvalid, ends, err
	}
	ends = time.UnixMicro(int64(binary.BigEndian.Uint64(challenge[challengeRandom:challengeEnd]))).UTC() //nolint:gosec // ours, checked above
	if !now.Before(ends) {
		return challengeExpired, ends, nil
	}
	return challengeValid, ends, nil
}

func (e *Engine) challengeMAC(purpose string, head []byte) ([]byte, error) {
	key, err := e.sealer.DeriveKey("passkey challenge")
	if err != nil {
		return nil, err
	}
	return phi.MAC(key, string(head)+purpose), nil // the fixed-length head keeps the encoding unambiguous
}
