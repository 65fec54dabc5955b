package routes

import (
	"errors"
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// tokensView answers a sign-in or a refresh.
type tokensView struct {
	Access           string               `json:"access"`
	Refresh          string               `json:"refresh"`
	AccessExpiresIn  int                  `json:"access_expires_in"`  // seconds
	RefreshExpiresIn int                  `json:"refresh_expires_in"` // seconds
	User             *signedInUserView    `json:"user,omitempty"`
	TwoFactorDueAt   *string              `json:"two_factor_due_at,omitempty"` // when the user must have set up a second factor
	LaunchedPatient  *launchedPatientView `json:"launched_patient,omitempty"`
}

// signedInUserView is the user in the answer to a sign-in.
type signedInUserView struct {
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

// login signs in a user. The checks, in order:
//
//  1. the sign-in limits of the address, for all and for failed sign-ins (the row's class, 429); then that of the account
//  2. the fields (400)
//  3. the account lock, which comes before every other check and restarts with each attempt (423)
//  4. the password; an address without an account takes as long (401 authentication_failed, counts as a failure)
//  5. the account: active, and not the portal account of a deleted patient (the same 401)
//  6. the second factor, if enabled: without a code 401 totp_required with a temporary token for a passkey, not counted as
//     a failure; a wrong or used code gets the same 401 as a wrong password
//
// The fifth failure in a row locks the account for thirty minutes. A successful sign-in resets the failures, is recorded
// and issues tokens. Source: docs/decisions/authentication.md, "Which response on the fifth failure" and
// "Login when TOTP is missing".
func (a *api) login(c *web.Call, body auth.LoginBody) error {
	if err := c.Take(a.Limits, ratelimit.Auth, ratelimit.AddressKey(c.Address)+" "+body.Account()); err != nil {
		return err
	}
	return web.RespondWith(c.OK, viewSignedIn)(a.Auth.Login(c.Request.Context(), c.App, body, c.Origin(), c.Now))
}

// countFailedSignIns serves a sign-in row and counts each failure against the caller's address as a guess. A correct
// password that still needs its second factor, and a locked account, do not count. Source: docs/decisions/limits.md,
// "Sign-ins behind one address".
func countFailedSignIns(handle handler) handler {
	return func(a *api, c *web.Call) error {
		err := handle(a, c)
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Unauthenticated && f.Code != auth.TOTPRequired {
			a.Limits.Take(ratelimit.Auth, ratelimit.AddressKey(c.Address), c.Now)
		}
		return err
	}
}

func viewSignedIn(session auth.Session) tokensView {
	view, user := viewTokens(session), session.User
	view.User = &signedInUserView{
		ID: user.Number(), Email: user.Email(), FirstName: user.FirstName(), LastName: user.LastName(), Role: user.Role(),
		Is2FAEnabled: user.TwoFactorEnabled(),
	}
	view.TwoFactorDueAt = instantOrNull(session.TwoFactorDue)
	return view
}

func (a *api) refresh(c *web.Call, body auth.RefreshBody) error {
	return web.RespondWith(c.OK, viewTokens)(a.Auth.Refresh(c.App, body, c.Origin(), c.Now))
}

func (a *api) logout(c *web.Call, body auth.LogoutBody) error {
	return c.NoContent(a.Auth.Logout(c.App, c.Caller, body, c.Origin(), c.Now))
}

func (a *api) logoutAll(c *web.Call) error {
	proof, err := readPasswordProof(c)
	if err != nil {
		return err
	}
	return c.NoContent(a.Auth.LogoutAll(c.Request.Context(), c.App, c.Caller, proof, c.Origin(), c.Now))
}

// sessionView is one of the caller's open sessions.
type sessionView struct {
	ID         string  `json:"id"`
	StartedAt  *string `json:"started_at"`
	LastUsedAt *string `json:"last_used_at"` // as far as recorded: the last refresh, or request while sessions end by inactivity
	ExpiresAt  *string `json:"expires_at"`
	Address    *string `json:"address"`
	UserAgent  *string `json:"user_agent"`
	DeviceID   *string `json:"device_id"`
	Current    bool    `json:"current"`
}

func (a *api) listSessions(c *web.Call) error {
	open, err := a.Auth.Sessions(c.App, c.Caller, c.Now)
	if err != nil {
		return err
	}
	return web.RespondSlice(c, web.Map(open, func(s collections.RefreshToken) sessionView {
		used := s.LastUsedAt
		if s.IssuedAt.After(used) {
			used = s.IssuedAt
		}
		return sessionView{
			ID: s.Family, StartedAt: instantOrNull(s.FamilyStartedAt), LastUsedAt: instantOrNull(used), ExpiresAt: instantOrNull(s.ExpiresAt),
			Address: orNull(s.SourceIP), UserAgent: orNull(s.UserAgent), DeviceID: orNull(s.DeviceID), Current: s.Family == c.Caller.Family,
		}
	}), 0)
}

func (a *api) endSession(c *web.Call) error {
	id, err := c.PathUUID()
	if err != nil {
		return err
	}
	proof, err := readPasswordProof(c)
	if err != nil {
		return err
	}
	return c.NoContent(a.Auth.EndSession(c.Request.Context(), c.App, c.Caller, id, proof, c.Origin(), c.Now))
}

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
	TaxonomyCode       *string `json:"taxonomy_code"`
	Credential         *string `json:"credential"`
	Phone              *string `json:"phone"`
	MustChangePassword bool    `json:"must_change_password"`
	TwoFactorDueAt     *string `json:"two_factor_due_at,omitempty"` // of the caller's own account
}

func viewProfile(user *collections.User, havePasskeys map[string]bool) profileView {
	return profileView{
		ID: user.Number(), Email: user.Email(), FirstName: user.FirstName(), LastName: user.LastName(), Role: user.Role(),
		Is2FAEnabled: user.TwoFactorEnabled(), HasPasskeys: havePasskeys[user.Id], LastLogin: instantOrNull(user.LastLoginAt()),
		DateJoined: instantOrNull(user.CreatedAt()), IsActive: user.Active(), TimeZone: orNull(user.TimeZone()),
		NPI: orNull(user.NPI()), TaxonomyCode: orNull(user.Taxonomy()), Credential: orNull(user.Credential()), Phone: orNull(user.Phone()), MustChangePassword: user.MustChangePassword(),
	}
}

func (a *api) profile(c *web.Call) error {
	user, err := collections.FindUser(c.App, c.Caller.RecordID)
	if err != nil {
		return err
	}
	return showProfile(c, user)
}

// showProfile answers with the caller's own account.
func showProfile(c *web.Call, user *collections.User) error {
	if err := collections.Readable(user.ProxyRecord()); err != nil {
		return err
	}
	havePasskeys, err := collections.UsersWithPasskeys(c.App, user.Id)
	if err != nil {
		return err
	}
	view := viewProfile(user, havePasskeys)
	view.TwoFactorDueAt = instantOrNull(c.Caller.TwoFactorDue)
	return c.OK(view)
}

type roleView struct {
	ID          authz.Role `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
}

type rolesView struct {
	Roles []roleView `json:"roles"`
}

func (a *api) roles(c *web.Call) error {
	return c.OK(rolesView{web.Map(authz.Roles, func(role authz.Role) roleView {
		name, description := role.Describe()
		return roleView{role, name, description}
	})})
}

// detailView is an answer with a message only.
type detailView struct {
	Detail string `json:"detail"`
}

func (a *api) changePassword(c *web.Call, body auth.PasswordBody) error {
	return c.Respond(detailView{"The password has been changed. Sign in again."}, a.Auth.ChangePassword(c.Request.Context(), c.App, c.Caller, body, c.Origin(), c.Now))
}

// requestPasswordReset gives the same answer whether the account exists or not.
func (a *api) requestPasswordReset(c *web.Call, body auth.ResetRequestBody) error {
	return c.Respond(detailView{"If an account with this address exists, a link to set a password has been sent to it."}, a.Auth.RequestReset(c.App, body, c.Origin(), c.Now))
}

func (a *api) confirmPasswordReset(c *web.Call, body auth.ResetBody) error {
	return c.Respond(detailView{"The password has been set. Sign in with it."}, a.Auth.ConfirmReset(c.Request.Context(), c.App, body, c.Origin(), c.Now))
}

// setupView is shown once: the secret and the codes cannot be read again.
type setupView struct {
	Secret          string   `json:"secret"`
	ProvisioningURI string   `json:"provisioning_uri"`
	QRCodeURL       string   `json:"qr_code_url"`
	BackupCodes     []string `json:"backup_codes"`
}

// readPasswordProof reads the optional password. The contract defines no body here, so a malformed body counts as none.
func readPasswordProof(c *web.Call) (proof auth.PasswordProof, err error) {
	raw, err := c.Body()
	if err != nil {
		return proof, err
	}
	if err := validate.DecodeObject(raw, &proof); err == nil {
		return proof, nil
	}
	return auth.PasswordProof{}, nil
}

func (a *api) setUpTwoFactor(c *web.Call) error {
	proof, err := readPasswordProof(c)
	if err != nil {
		return err
	}
	setup, err := a.Auth.SetUpTwoFactor(c.Request.Context(), c.App, c.Caller, proof, c.Origin(), c.Now)
	if err != nil {
		return err
	}
	return c.OK(setupView{setup.Secret, setup.ProvisioningURI, a.PublicURL + web.BasePath + "/auth/2fa/qr-code/", setup.BackupCodes})
}

// twoFactorView reports whether the second factor is enabled.
type twoFactorView struct {
	Detail       string `json:"detail"`
	Is2FAEnabled bool   `json:"is_2fa_enabled"`
}

func (a *api) verifyTwoFactor(c *web.Call, body auth.CodeBody) error {
	return c.Respond(twoFactorView{"Two-factor authentication is on.", true}, a.Auth.VerifyTwoFactor(c.App, c.Caller, body, c.Origin(), c.Now))
}

const (
	pngType = "image/png"
	svgType = "image/svg+xml"
)

// drawQRCode renders the QR code of the pending setup for an authenticator app.
func (a *api) drawQRCode(c *web.Call) error {
	uri, err := a.Auth.PendingURI(c.App, c.Caller, c.Now)
	if err != nil {
		return err
	}
	code, err := auth.NewQRCode(uri)
	if err != nil {
		return err
	}
	if web.Preferred(c.Request.Header, pngType, svgType) == svgType {
		return c.Send(http.StatusOK, svgType, code.SVG())
	}
	image, err := code.PNG()
	if err != nil {
		return err
	}
	return c.Send(http.StatusOK, pngType, image)
}

func (a *api) disableTwoFactor(c *web.Call, body auth.ProofBody) error {
	return c.Respond(twoFactorView{"Two-factor authentication is off.", false}, a.Auth.DisableTwoFactor(c.Request.Context(), c.App, c.Caller, body, c.Origin(), c.Now))
}

type backupCodesView struct {
	BackupCodes []string `json:"backup_codes"`
}

func (a *api) replaceBackupCodes(c *web.Call, body auth.ProofBody) error {
	codes, err := a.Auth.ReplaceBackupCodes(c.Request.Context(), c.App, c.Caller, body, c.Origin(), c.Now)
	if err != nil {
		return err
	}
	return c.OK(backupCodesView{codes})
}

// passkeyView is a passkey for its owner.
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
	return web.RespondSlice(c, web.Map(passkeys, viewPasskey), unreadable)
}

// offerPasskeyRegistration returns the options for navigator.credentials.create.
func (a *api) offerPasskeyRegistration(c *web.Call) error {
	proof, err := readPasswordProof(c)
	if err != nil {
		return err
	}
	return c.Respond(a.Auth.PasskeyRegistration(c.Request.Context(), c.App, c.Caller, proof, c.Origin(), c.Now))
}

func (a *api) registerPasskey(c *web.Call, body auth.PasskeyBody) error {
	return web.RespondWith(c.Created, viewPasskey)(a.Auth.RegisterPasskey(c.Request.Context(), c.App, c.Caller, body, c.Origin(), c.Now))
}

func (a *api) renamePasskey(c *web.Call, id string) error {
	var body auth.PasskeyName
	if err := c.Decode(&body); err != nil {
		return err
	}
	return web.RespondWith(c.OK, viewPasskey)(a.Auth.RenamePasskey(c.App, c.Caller, id, body, c.Origin(), c.Now))
}

func (a *api) removePasskey(c *web.Call, id string) error {
	proof, err := readPasswordProof(c)
	if err != nil {
		return err
	}
	return c.NoContent(a.Auth.RemovePasskey(c.Request.Context(), c.App, c.Caller, id, proof, c.Origin(), c.Now))
}

// offerPasskeySignIn returns the options for navigator.credentials.get.
func (a *api) offerPasskeySignIn(c *web.Call) error {
	var body auth.TemporaryTokenBody
	if err := c.DecodeOptional(&body); err != nil {
		return err
	}
	return c.Respond(a.Auth.PasskeyAssertion(c.App, body, c.Now))
}

// signInWithPasskey answers as login does. The checks, in order: the fields (400); the lock (423); the challenge and
// the temporary token, both single-use; the account; the passkey, its signature, and the user verification that the
// device reports (401 authentication_failed, counts as a failure).
func (a *api) signInWithPasskey(c *web.Call, body auth.AssertionBody) error {
	return web.RespondWith(c.OK, viewSignedIn)(a.Auth.SignInWithPasskey(c.Request.Context(), c.App, body, c.Origin(), c.Now))
}
