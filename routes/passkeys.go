package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/fault"
)

// passkeyView is a passkey as its owner sees it.
type passkeyView struct {
	ID         int64   `json:"id"`
	Name       string  `json:"name"`
	CreatedAt  *string `json:"created_at"`
	LastUsedAt *string `json:"last_used_at"`
	BackedUp   bool    `json:"backed_up"`
}

func viewPasskey(p *collections.Passkey) passkeyView {
	return passkeyView{p.Number(), p.Name(), instantOrNull(p.CreatedAt()), instantOrNull(p.LastUsedAt()), p.BackedUp()}
}

func (a *api) listPasskeys(c *call) error {
	passkeys, err := collections.PasskeysOf(c.App, c.Caller.RecordID)
	if err != nil {
		return err
	}
	passkeys, unreadable := collections.ReadableOnly(passkeys)
	views := make([]passkeyView, len(passkeys))
	for i, p := range passkeys {
		views[i] = viewPasskey(p)
	}
	return listWhole(c, views, unreadable)
}

// offerPasskeyRegistration answers what navigator.credentials.create takes.
func (a *api) offerPasskeyRegistration(c *call) error {
	proof, err := c.proof()
	if err != nil {
		return err
	}
	options, err := a.Auth.PasskeyRegistration(c.Request.Context(), c.App, c.Caller, proof, c.origin(), c.Now)
	if err != nil {
		return err
	}
	return c.ok(options)
}

func (a *api) registerPasskey(c *call) error {
	var body auth.PasskeyBody
	if err := c.decode(&body); err != nil {
		return err
	}
	passkey, err := a.Auth.RegisterPasskey(c.Request.Context(), c.App, c.Caller, body, c.origin(), c.Now)
	if err != nil {
		return err
	}
	return c.created(viewPasskey(passkey))
}

// passkeyID is the record id of the passkey in the path.
func (c *call) passkeyID() (string, error) {
	number, err := c.pathInteger("id")
	if err != nil || number > maxUserNumber {
		return "", fault.Missing()
	}
	return collections.NumberID(number), nil
}

func (a *api) renamePasskey(c *call) error {
	id, err := c.passkeyID()
	if err != nil {
		return err
	}
	var body auth.PasskeyName
	if err := c.decode(&body); err != nil {
		return err
	}
	passkey, err := a.Auth.RenamePasskey(c.App, c.Caller, id, body, c.origin(), c.Now)
	if err != nil {
		return err
	}
	return c.ok(viewPasskey(passkey))
}

func (a *api) removePasskey(c *call) error {
	id, err := c.passkeyID()
	if err != nil {
		return err
	}
	proof, err := c.proof()
	if err != nil {
		return err
	}
	if err := a.Auth.RemovePasskey(c.Request.Context(), c.App, c.Caller, id, proof, c.origin(), c.Now); err != nil {
		return err
	}
	return c.noContent()
}

// offerPasskeySignIn answers what navigator.credentials.get takes.
func (a *api) offerPasskeySignIn(c *call) error {
	var body auth.StepBody
	if err := c.decodeOptional(&body); err != nil {
		return err
	}
	options, err := a.Auth.PasskeyAssertion(c.App, body, c.Now)
	if err != nil {
		return err
	}
	return c.ok(options)
}

// signInWithPasskey answers as login does. The checks, in order: the fields (400); the lock (423); the challenge and the temporary token, each
// used up by this; the account; the passkey, its signature, and what the device says it checked (401 authentication_failed, and a failure).
func (a *api) signInWithPasskey(c *call) error {
	var body auth.AssertionBody
	if err := c.decode(&body); err != nil {
		return err
	}
	session, err := a.Auth.SignInWithPasskey(c.Request.Context(), c.App, body, c.origin(), c.Now)
	if err != nil {
		return err
	}
	return c.ok(viewSignedIn(session))
}
