package auth

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"net/url"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// maxPasskeys bounds the passkeys of one user. Source: docs/decisions/authentication.md, "Passkeys".
const maxPasskeys = 10

// newRelyingParty returns the WebAuthn relying party of the sign-in host. It returns nil for a bare IP address, which browsers do not accept.
func newRelyingParty(signInURL, name string) *webauthn.WebAuthn {
	address, err := url.Parse(signInURL)
	if err != nil || address.Hostname() == "" {
		return nil
	}
	if _, err := netip.ParseAddr(address.Hostname()); err == nil {
		return nil
	}
	lasts := webauthn.TimeoutConfig{Timeout: challengeLife, TimeoutUVD: challengeLife}
	party, err := webauthn.New(&webauthn.Config{
		RPID: address.Hostname(), RPDisplayName: name, RPOrigins: []string{address.Scheme + "://" + address.Host},
		AttestationPreference: protocol.PreferNoAttestation,
		Timeouts:              webauthn.TimeoutsConfig{Login: lasts, Registration: lasts},
		// No extension output is used, and password managers send some unsolicited.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if err != nil {
		return nil
	}
	return party
}

func passkeysUnavailable() error {
	return fault.State("passkeys_unavailable", "Passkeys need the service to have a host name (VIGIL_PUBLIC_URL), not an address.")
}

// webauthnUser is a user as seen by browsers and the WebAuthn library. The handle is a MAC and reveals nothing about the person.
type webauthnUser struct {
	handle      []byte
	email, name string
	passkeys    []*collections.Passkey
}

func (u *webauthnUser) WebAuthnID() []byte          { return u.handle }
func (u *webauthnUser) WebAuthnName() string        { return u.email }
func (u *webauthnUser) WebAuthnDisplayName() string { return u.name }

// WebAuthnCredentials returns the passkeys, without damaged ones.
func (u *webauthnUser) WebAuthnCredentials() (list []webauthn.Credential) {
	for _, p := range u.passkeys {
		id, badID := base64.RawURLEncoding.DecodeString(p.CredentialID())
		key, badKey := base64.RawURLEncoding.DecodeString(p.PublicKey())
		if badID != nil || badKey != nil {
			continue
		}
		credential := webauthn.Credential{
			ID: id, PublicKey: key,
			Flags:         webauthn.CredentialFlags{UserVerified: p.UserVerified(), BackupEligible: p.BackupEligible(), BackupState: p.BackedUp()},
			Authenticator: webauthn.Authenticator{SignCount: p.SignCount()},
		}
		for _, transport := range p.Transports() {
			credential.Transport = append(credential.Transport, protocol.AuthenticatorTransport(transport))
		}
		list = append(list, credential)
	}
	return list
}

// descriptors identify the passkeys to a browser.
func (u *webauthnUser) descriptors() (list []protocol.CredentialDescriptor) {
	for _, credential := range u.WebAuthnCredentials() {
		list = append(list, credential.Descriptor())
	}
	return list
}

func (e *Engine) webauthnUserOf(app core.App, user *collections.User) (*webauthnUser, error) {
	key, err := e.sealer.DeriveKey("passkey user handle")
	if err != nil {
		return nil, err
	}
	list, err := collections.PasskeysOf(app, user.Id)
	if err != nil {
		return nil, err
	}
	return &webauthnUser{handle: phi.MAC(key, user.Id), email: user.Email(), name: user.FirstName() + " " + user.LastName(), passkeys: list}, nil
}

// registrationPurpose is the purpose of a registration challenge. A challenge is issued only after reauthentication.
func registrationPurpose(user *collections.User, caller Caller) string {
	return "register\x00" + user.Id + "\x00" + user.TokenKey() + "\x00" + caller.Family
}

// PasskeyRegistration returns the options for creating a passkey, after reauthentication.
func (e *Engine) PasskeyRegistration(ctx context.Context, app core.App, caller Caller, proof PasswordProof, from audit.Origin, now time.Time) (*protocol.CredentialCreation, error) {
	if e.passkeys == nil {
		return nil, passkeysUnavailable()
	}
	if err := e.requireReauthentication(ctx, app, caller, proof, from, now); err != nil {
		return nil, err
	}
	user, err := collections.FindUser(app, caller.RecordID)
	if err != nil {
		return nil, err
	}
	person, err := e.webauthnUserOf(app, user)
	if err != nil {
		return nil, err
	}
	if len(person.passkeys) >= maxPasskeys {
		return nil, tooManyPasskeys()
	}
	challenge, err := e.newChallenge(registrationPurpose(user, caller), now)
	if err != nil {
		return nil, err
	}
	creation, _, err := e.passkeys.BeginRegistration(person,
		webauthn.WithExclusions(person.descriptors()),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementPreferred, UserVerification: protocol.VerificationPreferred,
		}),
		func(options *protocol.PublicKeyCredentialCreationOptions) error {
			options.Challenge = challenge
			return nil
		})
	return creation, err
}

func tooManyPasskeys() error {
	return fault.State("too_many_passkeys", "There are ten passkeys on this account already. Remove one first.")
}

// PasskeyBody is a new passkey: the browser's credential and a name.
type PasskeyBody struct {
	PasswordProof
	Name       validate.String                 `json:"name"`
	Credential validate.Field[json.RawMessage] `json:"credential"`
}

func invalidPasskey(cause error) error {
	return fault.New(fault.Invalid, "invalid_passkey", "The passkey could not be registered. Begin again.").Because(cause)
}

// RegisterPasskey stores a passkey. A valid challenge of [Engine.PasskeyRegistration] proves a past reauthentication; without one the caller
// reauthenticates now.
func (e *Engine) RegisterPasskey(ctx context.Context, app core.App, caller Caller, body PasskeyBody, from audit.Origin, now time.Time) (created *collections.Passkey, err error) {
	if e.passkeys == nil {
		return nil, passkeysUnavailable()
	}
	user, err := collections.FindUser(app, caller.RecordID)
	if err != nil {
		return nil, err
	}
	parsed, unreadable := protocol.ParseCredentialCreationResponseBytes(body.Credential.Value)
	state, ends := challengeInvalid, time.Time{}
	if unreadable == nil {
		state, ends, err = e.checkChallenge(parsed.Response.CollectedClientData.Challenge, registrationPurpose(user, caller), now)
	}
	if err != nil {
		return nil, err
	}
	if state != challengeValid {
		if err := e.requireReauthentication(ctx, app, caller, body.PasswordProof, from, now); err != nil {
			return nil, err
		}
	}
	checks := validate.NewChecks()
	name := checks.Text("name", body.Name, validate.Required(100).Filled())
	if !body.Credential.Given() || unreadable != nil {
		checks.Reject("credential", "Must be a public-key credential as a browser makes it.")
	}
	if err := checks.Err(); err != nil {
		return nil, err
	}
	if state != challengeValid {
		return nil, invalidPasskey(nil)
	}
	err = e.changeUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		created, refused, err = e.storePasskey(tx, user, caller, newPasskey{name: name, parsed: parsed, ends: ends}, from, now)
		return refused, err
	})
	return created, err
}

// newPasskey is a passkey to store.
type newPasskey struct {
	name   string
	parsed *protocol.ParsedCredentialCreationData
	ends   time.Time // expiry of the challenge
}

func (e *Engine) storePasskey(tx core.App, user *collections.User, caller Caller, n newPasskey, from audit.Origin, now time.Time) (created *collections.Passkey, refused, err error) {
	challenge := n.parsed.Response.CollectedClientData.Challenge
	if state, _, err := e.checkChallenge(challenge, registrationPurpose(user, caller), now); err != nil || state != challengeValid {
		return nil, tokenInvalid(), err // the token key changed since the challenge
	}
	if first, err := collections.UseChallenge(tx, HashSecret(challenge), now, n.ends); err != nil || !first {
		return nil, invalidPasskey(nil), err
	}
	person, err := e.webauthnUserOf(tx, user)
	if err != nil {
		return nil, nil, err
	}
	if len(person.passkeys) >= maxPasskeys {
		return nil, tooManyPasskeys(), nil
	}
	credential, wrong := e.passkeys.CreateCredential(person, webauthn.SessionData{
		Challenge: challenge, UserID: person.handle, UserVerification: protocol.VerificationPreferred, CredParams: webauthn.CredentialParametersDefault(),
	}, n.parsed)
	if wrong != nil {
		return nil, invalidPasskey(wrong), nil
	}
	id := base64.RawURLEncoding.EncodeToString(credential.ID)
	if _, err := collections.FindPasskey(tx, id); err == nil {
		return nil, fault.State("already_registered", "This passkey is registered already."), nil
	} else if !collections.IsNotFound(err) {
		return nil, nil, err
	}
	created, err = collections.CreatePasskey(tx, collections.NewPasskey{
		UserID: user.Id, Name: n.name, CredentialID: id, PublicKey: base64.RawURLEncoding.EncodeToString(credential.PublicKey),
		Transports: supportedTransports(credential.Transport), AAGUID: hex.EncodeToString(credential.Authenticator.AAGUID),
		SignCount: credential.Authenticator.SignCount, UserVerified: credential.Flags.UserVerified,
		BackupEligible: credential.Flags.BackupEligible, BackedUp: credential.Flags.BackupState,
	}, now)
	if err != nil {
		return nil, nil, err
	}
	if err := notifications.QueueMail(tx, notifications.PasskeyAdded, user, nil, now); err != nil {
		return nil, nil, err
	}
	return created, nil, audit.Append(tx, passkeyEntry(user, created, audit.PasskeyRegister, caller.Actor(from)), now)
}

// supportedTransports drops unknown and repeated transports: the values come from the caller and the column is short.
func supportedTransports(given []protocol.AuthenticatorTransport) (list []string) {
	seen := map[protocol.AuthenticatorTransport]bool{
		protocol.USB: false, protocol.NFC: false, protocol.BLE: false, protocol.Internal: false, protocol.Hybrid: false, protocol.SmartCard: false,
	}
	for _, transport := range given {
		if repeated, known := seen[transport]; known && !repeated {
			seen[transport] = true
			list = append(list, string(transport))
		}
	}
	return list
}

// passkeyEntry returns an audit entry about a user that names the passkey.
func passkeyEntry(user *collections.User, p *collections.Passkey, event audit.Event, by audit.Actor) audit.Entry {
	entry := userEntry(user, event, by)
	entry.Changes = audit.Changes{"passkey": {New: p.Number()}}
	return entry
}

// PasskeyName is a request to rename a passkey.
type PasskeyName struct {
	Name validate.String `json:"name"`
}

// RenamePasskey renames one of the caller's passkeys.
func (e *Engine) RenamePasskey(app core.App, caller Caller, id string, body PasskeyName, from audit.Origin, now time.Time) (renamed *collections.Passkey, err error) {
	checks := validate.NewChecks()
	name := checks.Text("name", body.Name, validate.Required(100).Filled())
	if err := checks.Err(); err != nil {
		return nil, err
	}
	err = e.changePasskey(app, caller, id, func(tx core.App, user *collections.User, p *collections.Passkey) error {
		renamed = p
		entry := passkeyEntry(user, p, audit.PasskeyRename, caller.Actor(from))
		entry.Changes["name"] = audit.Change{Old: phi.Text(p.Name()), New: phi.Text(name)}
		if err := collections.RenamePasskey(tx, p, name); err != nil {
			return err
		}
		return audit.Append(tx, entry, now)
	})
	return renamed, err
}

// RemovePasskey removes one of the caller's passkeys, after reauthentication. Removing the last second factor ends every session, as turning off
// TOTP does. Source: docs/decisions/authentication.md, "Passkeys".
func (e *Engine) RemovePasskey(ctx context.Context, app core.App, caller Caller, id string, proof PasswordProof, from audit.Origin, now time.Time) error {
	if err := e.requireReauthentication(ctx, app, caller, proof, from, now); err != nil {
		return err
	}
	return e.changePasskey(app, caller, id, func(tx core.App, user *collections.User, p *collections.Passkey) error {
		if err := removePasskey(tx, user, p, caller.Actor(from), now); err != nil {
			return err
		}
		if left, err := hasSecondFactor(tx, user); err != nil || left {
			return err
		}
		_, err := RevokeAll(tx, user.Id, reasonTwoFactor, now)
		return err
	})
}

// changePasskey is changeUser for one of the caller's passkeys, which may not exist.
func (e *Engine) changePasskey(app core.App, caller Caller, id string, apply func(tx core.App, user *collections.User, p *collections.Passkey) error) error {
	return e.changeUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		p, err := collections.FindOwnPasskey(tx, user.Id, id)
		if collections.IsNotFound(err) {
			return fault.Missing(), nil
		}
		if err != nil {
			return nil, err
		}
		return nil, apply(tx, user, p)
	})
}

func removePasskey(tx core.App, user *collections.User, p *collections.Passkey, by audit.Actor, now time.Time) error {
	entry := passkeyEntry(user, p, audit.PasskeyRemove, by)
	entry.Changes["name"] = audit.Change{Old: phi.Text(p.Name())}
	if err := collections.RemovePasskey(tx, p); err != nil {
		return err
	}
	if err := notifications.QueueMail(tx, notifications.PasskeyRemoved, user, nil, now); err != nil {
		return err
	}
	return audit.Append(tx, entry, now)
}

// removeAllPasskeys removes every passkey of a user, for an administrator.
func removeAllPasskeys(tx core.App, user *collections.User, by audit.Actor, now time.Time) error {
	list, err := collections.PasskeysOf(tx, user.Id)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := removePasskey(tx, user, p, by, now); err != nil {
			return err
		}
	}
	return nil
}
