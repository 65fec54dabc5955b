package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/routes/web"
)

// setupView is shown once: neither the secret nor the codes can be read again.
type setupView struct {
	Secret          string   `json:"secret"`
	ProvisioningURI string   `json:"provisioning_uri"`
	QRCodeURL       string   `json:"qr_code_url"`
	BackupCodes     []string `json:"backup_codes"`
}

// proof reads the password where one came along. The contract asks for no body here, so whatever else was sent, or called,
// never mattered.
func proof(c *web.Call) (proof auth.PasswordProof, err error) {
	raw, err := c.Body()
	if err != nil {
		return proof, err
	}
	if err := input.DecodeObject(raw, &proof); err == nil {
		return proof, nil
	}
	return auth.PasswordProof{}, nil
}

func (a *api) setUpTwoFactor(c *web.Call) error {
	proof, err := proof(c)
	if err != nil {
		return err
	}
	setup, err := a.Auth.SetUpTwoFactor(c.Request.Context(), c.App, c.Caller, proof, c.Origin(), c.Now)
	if err != nil {
		return err
	}
	return c.OK(setupView{setup.Secret, setup.ProvisioningURI, a.PublicURL + web.BasePath + "/auth/2fa/qr-code/", setup.BackupCodes})
}

// twoFactorView says whether the second factor is on now.
type twoFactorView struct {
	Detail       string `json:"detail"`
	Is2FAEnabled bool   `json:"is_2fa_enabled"`
}

func (a *api) verifyTwoFactor(c *web.Call, body auth.CodeBody) error {
	return c.Answer(twoFactorView{"Two-factor authentication is on.", true}, a.Auth.VerifyTwoFactor(c.App, c.Caller, body, c.Origin(), c.Now))
}

const (
	pngType = "image/png"
	svgType = "image/svg+xml"
)

// drawQRCode draws what an authenticator app scans, for the set-up under way.
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
	return c.Answer(twoFactorView{"Two-factor authentication is off.", false}, a.Auth.DisableTwoFactor(c.Request.Context(), c.App, c.Caller, body, c.Origin(), c.Now))
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
