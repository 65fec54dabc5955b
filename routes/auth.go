package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/auth"
)

// tokensView is what signing in and refreshing answer.
type tokensView struct {
	Access           string      `json:"access"`
	Refresh          string      `json:"refresh"`
	AccessExpiresIn  int         `json:"access_expires_in"`  // seconds
	RefreshExpiresIn int         `json:"refresh_expires_in"` // seconds
	User             *signedView `json:"user,omitempty"`
}

// signedView is the user in the answer to a sign-in.
type signedView struct {
	ID           int64  `json:"id"`
	Email        string `json:"email"`
	FirstName    string `json:"first_name"`
	LastName     string `json:"last_name"`
	Role         string `json:"role"`
	Is2FAEnabled bool   `json:"is_2fa_enabled"`
}

func viewTokens(s auth.Session) tokensView {
	return tokensView{
		Access: s.Access, Refresh: s.Refresh,
		AccessExpiresIn: int(s.AccessExpiresIn.Seconds()), RefreshExpiresIn: int(s.RefreshExpiresIn.Seconds()),
	}
}

// login signs a person in. The checks, in order:
//
//  1. the limit of sign-ins by address (the row's class, 429)
//  2. the fields (400)
//  3. the lock, which looks at nothing else and starts over with each attempt (423)
//  4. the password; an address without an account takes as long (401 authentication_failed, and a failure)
//  5. the account: active, and not the portal of a deleted patient (the same 401)
//  6. the second factor, when there is one: none given is 401 totp_required, with a temporary token for a passkey, and no failure; a wrong or
//     used one is the same 401 as a password
//
// The fifth failure in a row locks for thirty minutes. After the last check the failures are forgotten, the sign-in is recorded and tokens are given out.
// Source: docs/decisions/authentication.md, "Which response on the fifth failure" and "Login when TOTP is missing".
func (a *api) login(c *call) error {
	var body auth.LoginBody
	if err := c.decode(&body); err != nil {
		return err
	}
	session, err := a.Auth.Login(c.Request.Context(), c.App, body, c.origin(), c.Now)
	if err != nil {
		return err
	}
	return c.ok(viewSignedIn(session))
}

func viewSignedIn(session auth.Session) tokensView {
	view, user := viewTokens(session), session.User
	view.User = &signedView{
		ID: user.Number(), Email: user.Email(), FirstName: user.FirstName(), LastName: user.LastName(), Role: user.Role(),
		Is2FAEnabled: user.TwoFactorEnabled(),
	}
	return view
}

func (a *api) refresh(c *call) error {
	var body auth.RefreshBody
	if err := c.decode(&body); err != nil {
		return err
	}
	session, err := a.Auth.Refresh(c.App, body, c.origin(), c.Now)
	if err != nil {
		return err
	}
	return c.ok(viewTokens(session))
}

func (a *api) logout(c *call) error {
	var body auth.LogoutBody
	if err := c.decode(&body); err != nil {
		return err
	}
	if err := a.Auth.Logout(c.App, c.Caller, body, c.origin(), c.Now); err != nil {
		return err
	}
	return c.noContent()
}

func (a *api) logoutAll(c *call) error {
	if err := a.Auth.LogoutAll(c.App, c.Caller, c.origin(), c.Now); err != nil {
		return err
	}
	return c.noContent()
}

// profileView is the caller's own account.
type profileView struct {
	ID                 int64   `json:"id"`
	Email              string  `json:"email"`
	FirstName          string  `json:"first_name"`
	LastName           string  `json:"last_name"`
	Role               string  `json:"role"`
	Is2FAEnabled       bool    `json:"is_2fa_enabled"`
	HasPasskeys        bool    `json:"has_passkeys"`
	LastLogin          *string `json:"last_login"`
	DateJoined         *string `json:"date_joined"`
	IsActive           bool    `json:"is_active"`
	TimeZone           *string `json:"time_zone"`
	NPI                *string `json:"npi"`
	Phone              *string `json:"phone"`
	MustChangePassword bool    `json:"must_change_password"`
}

func viewProfile(user *collections.User, havePasskeys map[string]bool) profileView {
	return profileView{
		ID: user.Number(), Email: user.Email(), FirstName: user.FirstName(), LastName: user.LastName(), Role: user.Role(),
		Is2FAEnabled: user.TwoFactorEnabled(), HasPasskeys: havePasskeys[user.Id], LastLogin: storedInstant(user.ProxyRecord(), "last_login_at"),
		DateJoined: storedInstant(user.ProxyRecord(), "created_at"), IsActive: user.Active(), TimeZone: orNull(user.TimeZone()),
		NPI: orNull(user.NPI()), Phone: orNull(user.Phone()), MustChangePassword: user.MustChangePassword(),
	}
}

func (a *api) profile(c *call) error {
	user, err := collections.FindUser(c.App, c.Caller.RecordID)
	if err != nil {
		return err
	}
	return c.showProfile(user)
}

// showProfile answers with the caller's own account.
func (c *call) showProfile(user *collections.User) error {
	if err := collections.Readable(user.ProxyRecord()); err != nil {
		return err
	}
	havePasskeys, err := collections.HavePasskeys(c.App, user.Id)
	if err != nil {
		return err
	}
	return c.ok(viewProfile(user, havePasskeys))
}

// roleView describes a role to people.
type roleView struct {
	ID          access.Role `json:"id"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
}

type rolesView struct {
	Roles []roleView `json:"roles"`
}

func (a *api) roles(c *call) error {
	view := rolesView{}
	for _, role := range access.Roles {
		name, description := role.Describe()
		view.Roles = append(view.Roles, roleView{role, name, description})
	}
	return c.ok(view)
}

// detailView is an answer that only says what was done.
type detailView struct {
	Detail string `json:"detail"`
}

func (a *api) changePassword(c *call) error {
	var body auth.PasswordBody
	if err := c.decode(&body); err != nil {
		return err
	}
	if err := a.Auth.ChangePassword(c.Request.Context(), c.App, c.Caller, body, c.origin(), c.Now); err != nil {
		return err
	}
	return c.ok(detailView{"The password has been changed. Sign in again."})
}

// requestPasswordReset says the same whether there is such an account or not.
func (a *api) requestPasswordReset(c *call) error {
	var body auth.ResetRequestBody
	if err := c.decode(&body); err != nil {
		return err
	}
	if err := a.Auth.RequestReset(c.App, body, c.origin(), c.Now); err != nil {
		return err
	}
	return c.ok(detailView{"If an account with this address exists, a link to set a password has been sent to it."})
}

func (a *api) confirmPasswordReset(c *call) error {
	var body auth.ResetBody
	if err := c.decode(&body); err != nil {
		return err
	}
	if err := a.Auth.ConfirmReset(c.Request.Context(), c.App, body, c.origin(), c.Now); err != nil {
		return err
	}
	return c.ok(detailView{"The password has been set. Sign in with it."})
}
