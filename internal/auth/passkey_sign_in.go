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

// StepBody may hold the temporary token of a right password.
type StepBody struct {
	TemporaryToken validate.String `json:"temporary_token"`
}

// read returns the hash of the token; "" when none was sent.
func (b StepBody) read(checks *validate.Checks) string {
	if !b.TemporaryToken.Sent() || b.TemporaryToken.Null() {
		return ""
	}
	token := checks.Secret("temporary_token", b.TemporaryToken, 512)
	if len(checks.Fields["temporary_token"]) == 0 && !stepFormat.MatchString(token) {
		return "no token of ours looks like this"
	}
	return Hash(token)
}

// signingIn is the purpose of a challenge for a sign-in: alone, or as the second step of one password.
func signingIn(step string) string { return "sign in\x00" + step }

// PasskeyAssertion is what a browser needs to use a passkey: any passkey of this service that knows its owner, whom the device must check;
// or, after a right password, one of that person's.
func (e *Engine) PasskeyAssertion(app core.App, body StepBody, now time.Time) (*protocol.CredentialAssertion, error) {
	if e.passkeys == nil {
		return nil, passkeysUnavailable()
	}
	checks := validate.NewChecks()
	step := body.read(checks)
	if err := checks.Err(); err != nil {
		return nil, err
	}
	challenge, err := e.newChallenge(signingIn(step), now)
	if err != nil {
		return nil, err
	}
	options := []webauthn.LoginOption{webauthn.WithChallenge(challenge)}
	if step == "" {
		assertion, _, err := e.passkeys.BeginDiscoverableLogin(append(options, webauthn.WithUserVerification(protocol.VerificationRequired))...)
		return assertion, err
	}
	user, err := e.userOfStep(app, step, now)
	if err != nil {
		return nil, err
	}
	if user == nil {
		return nil, authenticationFailed()
	}
	person, err := e.ownerOf(app, user)
	if err != nil {
		return nil, err
	}
	if len(person.passkeys) == 0 || !mayHavePasskeys(user) {
		return nil, fault.State("invalid_state", "There is no passkey on this account.")
	}
	assertion, _, err := e.passkeys.BeginLogin(person, append(options, webauthn.WithUserVerification(protocol.VerificationPreferred))...)
	return assertion, err
}

// userOfStep is whose password was right; nil when the token is unknown, used, expired or ended with the user's token key.
func (e *Engine) userOfStep(app core.App, step string, now time.Time) (*collections.User, error) {
	found, err := collections.FindSignInStep(app, step, now)
	if collections.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	user, err := collections.FindUser(app, found.UserID)
	if err != nil || found.KeyHash != e.stepKey(user) {
		return nil, err
	}
	return user, nil
}

// AssertionBody is the use of a passkey.
type AssertionBody struct {
	StepBody
	Credential validate.Field[json.RawMessage] `json:"credential"`
	DeviceID   validate.String                 `json:"device_id"` // ties the sign-in to a push device
}

// passkeyAttempt is one try at signing in with a passkey.
type passkeyAttempt struct {
	attempt
	step       string // hash of the temporary token; "" for a passkey alone
	shown      *protocol.ParsedCredentialAssertionData
	credential string // the passkey's own id
}

// SignInWithPasskey signs a person in, with the second step of a right password or with a passkey alone. It refuses as [Engine.Login] does:
// what fails counts as a failed sign-in of the account the passkey belongs to, and a lock holds here too.
// Source: docs/decisions/authentication.md, "Passkeys".
func (e *Engine) SignInWithPasskey(ctx context.Context, app core.App, body AssertionBody, from audit.Origin, now time.Time) (Session, error) {
	if e.passkeys == nil {
		return Session{}, passkeysUnavailable()
	}
	p, err := e.readAssertion(app, body, from, now)
	if err != nil {
		return Session{}, err
	}
	ctx, done := waiting(ctx)
	defer done()
	return commitDecisionInTurn(ctx, e, app, func(tx core.App) (Session, error, error) { return e.decidePasskey(tx, p) })
}

func (e *Engine) readAssertion(app core.App, body AssertionBody, from audit.Origin, now time.Time) (p passkeyAttempt, err error) {
	checks := validate.NewChecks()
	p.step = body.read(checks)
	validate.NotNull(checks, "device_id", body.DeviceID)
	deviceID := checks.Text("device_id", body.DeviceID, validate.Optional(128))
	var unreadable error
	if p.shown, unreadable = protocol.ParseCredentialRequestResponseBytes(body.Credential.Value); unreadable != nil {
		checks.Reject("credential", "Must be a public-key credential as a browser makes it.")
	}
	if err := checks.Err(); err != nil {
		return p, err
	}
	p.credential = base64.RawURLEncoding.EncodeToString(p.shown.RawID)
	user, err := e.userOfAttempt(app, p, now)
	if err != nil {
		return p, err
	}
	if user == nil { // nobody's: recorded under a keyed hash, like an address without an account
		p.attempt = attempt{emailKey: e.sealer.LoginKey("passkey\x00" + p.credential), from: from, now: now}
		return p, nil
	}
	p.attempt = e.attemptOf(user, from, now)
	p.deviceID = deviceID
	return p, nil
}

// userOfAttempt is who tries to sign in: whose password was right, or whose passkey is shown; nil for nobody.
func (e *Engine) userOfAttempt(app core.App, p passkeyAttempt, now time.Time) (*collections.User, error) {
	if p.step != "" {
		return e.userOfStep(app, p.step, now)
	}
	passkey, err := ifThere(collections.FindPasskey(app, p.credential))
	if err != nil || passkey == nil {
		return nil, err
	}
	return collections.FindUser(app, passkey.UserID())
}

// verdict is what came of checking the use of a passkey.
type verdict struct {
	proven  bool
	late    bool // its time was over, which is nobody's guess
	user    *collections.User
	passkey *collections.Passkey
	count   uint32
	copied  bool // the device has copies of it
}

func (e *Engine) decidePasskey(tx core.App, p passkeyAttempt) (session Session, refused, err error) {
	if p.user == nil {
		return session, authenticationFailed(), p.record(tx, audit.LoginFailed, audit.MinorFailure, "No such passkey.")
	}
	failures, refused, err := p.refuseLocked(tx)
	if refused != nil || err != nil {
		return session, refused, err
	}
	v, err := e.judgeAssertion(tx, p)
	switch {
	case err != nil:
		return session, nil, err
	case v.late:
		return session, authenticationFailed(), p.record(tx, audit.LoginFailed, audit.MinorFailure, "The passkey was used too late.")
	case !v.proven:
		refused, err = p.fail(tx, failures)
		return session, refused, err
	}
	if p.step == "" && e.mustSignOn(v.user) {
		return session, ssoRequired(), p.record(tx, audit.LoginFailed, audit.MinorFailure, "Signing in takes the identity provider.")
	}
	if err := collections.MarkPasskeyUsed(tx, v.passkey.Id, v.count, v.copied, p.now); err != nil {
		return session, nil, err
	}
	if err := audit.Append(tx, aboutPasskey(v.user, v.passkey, audit.PasskeyUsed, callerOf(v.user).Actor(p.from)), p.now); err != nil {
		return session, nil, err
	}
	session, err = e.completeLogin(tx, p.attempt, v.user, secondFactor{proven: true})
	return session, nil, err
}

// judgeAssertion checks the use of a passkey and uses up its challenge and its temporary token, whatever comes of it.
func (e *Engine) judgeAssertion(tx core.App, p passkeyAttempt) (v verdict, err error) {
	if p.step != "" {
		if _, err := collections.UseSignInStep(tx, p.step, p.now); err != nil {
			if collections.IsNotFound(err) {
				return verdict{late: true}, nil
			}
			return v, err
		}
	}
	challenge := p.shown.Response.CollectedClientData.Challenge
	state, ends, err := e.checkChallenge(challenge, signingIn(p.step), p.now)
	if err != nil || state != challengeHolds {
		return verdict{late: state == challengeEnded}, err
	}
	if first, err := collections.UseChallenge(tx, Hash(challenge), p.now, ends); err != nil || !first {
		return v, err
	}
	if v.user, err = p.account(tx); err != nil || v.user == nil || !mayHavePasskeys(v.user) {
		return verdict{}, err
	}
	person, err := e.ownerOf(tx, v.user)
	if err != nil {
		return verdict{}, err
	}
	for _, passkey := range person.passkeys {
		if passkey.CredentialID() == p.credential {
			v.passkey = passkey
		}
	}
	if v.passkey == nil {
		return verdict{}, nil
	}
	credential, right := e.validateAssertion(p, person, challenge)
	if !right {
		return verdict{}, nil
	}
	if credential.Authenticator.CloneWarning {
		return verdict{}, tellOfClone(tx, v.user, v.passkey, p)
	}
	v.proven, v.count, v.copied = true, credential.Authenticator.SignCount, credential.Flags.BackupState
	return v, nil
}

// validateAssertion holds signature, origin, relying party and flags against what was asked for. A passkey alone stands for both factors, so
// its device must have checked who holds it, and it must name its owner itself.
func (e *Engine) validateAssertion(p passkeyAttempt, person *owner, challenge string) (credential *webauthn.Credential, right bool) {
	var wrong error
	session := webauthn.SessionData{Challenge: challenge, UserVerification: protocol.VerificationRequired}
	if p.step != "" {
		session.UserID, session.UserVerification = person.handle, protocol.VerificationPreferred
		credential, wrong = e.passkeys.ValidateLogin(person, session, p.shown)
	} else {
		_, credential, wrong = e.passkeys.ValidatePasskeyLogin(func([]byte, []byte) (webauthn.User, error) { return person, nil }, session, p.shown)
	}
	return credential, wrong == nil
}

// tellOfClone records that a count went backwards: two devices may hold the same key. Source: WebAuthn Level 3, section 6.1.1.
func tellOfClone(tx core.App, user *collections.User, passkey *collections.Passkey, p passkeyAttempt) error {
	entry := aboutPasskey(user, passkey, audit.PasskeyRefused, audit.Anonymous(p.from))
	entry.Outcome, entry.Reason = audit.SeriousFailure, "Its count of uses went backwards."
	if err := audit.Append(tx, entry, p.now); err != nil {
		return err
	}
	return tellOfRefusedPasskey(tx, user, p.now)
}

// A challenge carries its end and a keyed hash of what it was made for, so that asking for one stores nothing: the doors that give them out
// are open to everybody. Only one that was answered is stored, until its time is over, so that it works once.
const (
	challengeLife   = 5 * time.Minute
	challengeRandom = 16
	challengeEnd    = challengeRandom + 8
	challengeBytes  = challengeEnd + sha256.Size
)

// challengeState is what became of a challenge.
type challengeState int

const (
	challengeForeign challengeState = iota // not ours, or made for somebody or something else
	challengeEnded                         // its time is over
	challengeHolds
)

// newChallenge makes a challenge for a purpose that names what and whom it is for.
func (e *Engine) newChallenge(purpose string, now time.Time) ([]byte, error) {
	challenge := make([]byte, challengeEnd, challengeBytes)
	_, _ = rand.Read(challenge[:challengeRandom]) // never fails
	binary.BigEndian.PutUint64(challenge[challengeRandom:], uint64(now.Add(challengeLife).UnixMicro()))
	mac, err := e.challengeMAC(purpose, challenge)
	return append(challenge, mac...), err
}

// checkChallenge says whether an answered challenge, as the browser wrote it, was made for the purpose, and when it ends.
func (e *Engine) checkChallenge(text, purpose string, now time.Time) (state challengeState, ends time.Time, err error) {
	challenge, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(challenge) != challengeBytes {
		return challengeForeign, ends, nil //nolint:nilerr // what nobody here wrote is no failure
	}
	mac, err := e.challengeMAC(purpose, challenge[:challengeEnd])
	if err != nil || !hmac.Equal(mac, challenge[challengeEnd:]) {
		return challengeForeign, ends, err
	}
	ends = time.UnixMicro(int64(binary.BigEndian.Uint64(challenge[challengeRandom:challengeEnd]))).UTC() //nolint:gosec // ours, checked above
	if !now.Before(ends) {
		return challengeEnded, ends, nil
	}
	return challengeHolds, ends, nil
}

func (e *Engine) challengeMAC(purpose string, head []byte) ([]byte, error) {
	key, err := e.sealer.DeriveKey("passkey challenge")
	if err != nil {
		return nil, err
	}
	return phi.MAC(key, string(head)+purpose), nil // the head is of fixed length, so that nothing of the purpose can pass for it
}
