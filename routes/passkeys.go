package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/routes/web"
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

func (a *api) listPasskeys(c *web.Call) error {
	passkeys, err := collections.PasskeysOf(c.App, c.Caller.RecordID)
	if err != nil {
		return err
	}
	passkeys, unreadable := collections.ReadableOnly(passkeys)
	return web.ListWhole(c, web.Views(passkeys, viewPasskey), unreadable)
}

// offerPasskeyRegistration answers what navigator.credentials.create takes.
func (a *api) offerPasskeyRegistration(c *web.Call) error {
	proof, err := proof(c)
	if err != nil {
		return err
	}
	return c.Answer(a.Auth.PasskeyRegistration(c.Request.Context(), c.App, c.Caller, proof, c.Origin(), c.Now))
}

func (a *api) registerPasskey(c *web.Call, body auth.PasskeyBody) error {
	return web.Show(c.Created, viewPasskey)(a.Auth.RegisterPasskey(c.Request.Context(), c.App, c.Caller, body, c.Origin(), c.Now))
}

func (a *api) renamePasskey(c *web.Call, id string) error {
	var body auth.PasskeyName
	if err := c.Decode(&body); err != nil {
		return err
	}
	return web.Show(c.OK, viewPasskey)(a.Auth.RenamePasskey(c.App, c.Caller, id, body, c.Origin(), c.Now))
}

func (a *api) removePasskey(c *web.Call, id string) error {
	proof, err := proof(c)
	if err != nil {
		return err
	}
	return c.Done(a.Auth.RemovePasskey(c.Request.Context(), c.App, c.Caller, id, proof, c.Origin(), c.Now))
}

// offerPasskeySignIn answers what navigator.credentials.get takes.
func (a *api) offerPasskeySignIn(c *web.Call) error {
	var body auth.StepBody
	if err := c.DecodeOptional(&body); err != nil {
		return err
	}
	return c.Answer(a.Auth.PasskeyAssertion(c.App, body, c.Now))
}

// signInWithPasskey answers as login does. The checks, in order: the fields (400); the lock (423); the challenge and the temporary token, each
// used up by this; the account; the passkey, its signature, and what the device says it checked (401 authentication_failed, and a failure).
func (a *api) signInWithPasskey(c *web.Call, body auth.AssertionBody) error {
	return web.Show(c.OK, viewSignedIn)(a.Auth.SignInWithPasskey(c.Request.Context(), c.App, body, c.Origin(), c.Now))
}
