package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Limits of a two-factor setup until its first code. Source: docs/decisions/authentication.md, "TOTP parameters".
const (
	setupLife      = 15 * time.Minute
	maxWrongSetups = 5
	secretBytes    = 20 // 160 bits, RFC 4226, section 4, R6
)

const reasonTwoFactor = "two_factor_off"

// Setup holds the secret for an authenticator app and the backup codes, which are shown once. It refuses to print.
type Setup struct {
	Secret, ProvisioningURI string
	BackupCodes             []string
}

// Format and LogValue hide the secret.
func (Setup) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[setup]") }
func (Setup) LogValue() slog.Value       { return slog.StringValue("[setup]") }

// SetUpTwoFactor begins a two-factor setup after reauthentication. It replaces an earlier setup that was not confirmed.
func (e *Engine) SetUpTwoFactor(ctx context.Context, app core.App, caller Caller, proof PasswordProof, from audit.Origin, now time.Time) (setup Setup, err error) {
	if err := e.requireReauthentication(ctx, app, caller, proof, from, now); err != nil {
		return Setup{}, err
	}
	err = e.changeUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		if user.TwoFactorEnabled() {
			return fault.State("already_enabled", "Two-factor authentication is already on."), nil
		}
		var random [secretBytes]byte
		_, _ = rand.Read(random[:]) // never fails
		setup.Secret = base32.StdEncoding.EncodeToString(random[:])
		setup.ProvisioningURI = e.provisioningURI(user.Email(), setup.Secret)
		codes, hashes := e.newBackupCodes(user)
		setup.BackupCodes = codes
		user.SetTOTPPending(collections.TOTPPending{Secret: setup.Secret, CodeHashes: hashes, Until: now.Add(setupLife)})
		return nil, saveUser(tx, user, now)
	})
	if err != nil {
		return Setup{}, err
	}
	return setup, nil
}

// provisioningURI returns the otpauth URI that authenticator apps read from a QR code.
func (e *Engine) provisioningURI(email, secret string) string {
	issuer := strings.ReplaceAll(url.QueryEscape(e.options.TOTPIssuer), "+", "%20") // apps do not read + as a space
	return fmt.Sprintf("otpauth://totp/%s:%s?secret=%s&issuer=%s&algorithm=SHA1&digits=6&period=%d", issuer, url.PathEscape(email), secret, issuer, totpPeriod)
}

// PendingURI returns the provisioning URI of the pending setup, or a missing fault if there is none.
func (e *Engine) PendingURI(app core.App, caller Caller, now time.Time) (string, error) {
	user, err := collections.FindUser(app, caller.RecordID)
	if err != nil {
		return "", err
	}
	pending := user.TOTPPending()
	if pending.Secret == "" || !now.Before(pending.Until) {
		return "", fault.Missing()
	}
	return e.provisioningURI(user.Email(), pending.Secret), nil
}

// CodeBody holds a TOTP code.
type CodeBody struct {
	TOTPCode validate.String `json:"totp_code"`
}

func invalidTOTP() error {
	return fault.New(fault.Invalid, "invalid_totp", "The two-factor code is wrong.")
}

// VerifyTwoFactor turns the second factor on with the first code of the pending setup, which then is used, and notifies the user.
// Source: RFC 6238, section 5.2.
func (e *Engine) VerifyTwoFactor(app core.App, caller Caller, body CodeBody, from audit.Origin, now time.Time) error {
	checks := validate.NewChecks()
	code := checks.Text("totp_code", compactCode(body.TOTPCode), validate.Required(11).Identifier())
	if err := checks.Err(); err != nil {
		return err
	}
	return e.changeUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		pending := user.TOTPPending()
		if pending.Secret == "" || !now.Before(pending.Until) {
			return invalidTOTP(), nil
		}
		step, right := matchTOTP(pending.Secret, code, 0, now)
		if !right || !totpFormat.MatchString(code) {
			if pending.Failures++; pending.Failures >= maxWrongSetups {
				pending = collections.TOTPPending{}
			}
			user.SetTOTPPending(pending)
			return invalidTOTP(), saveUser(tx, user, now)
		}
		user.SetTwoFactor(pending.Secret)
		user.SetTOTPLastStep(step)
		user.SetTOTPPending(collections.TOTPPending{})
		if err := collections.ReplaceBackupCodes(tx, user.Id, pending.CodeHashes, now); err != nil {
			return nil, err
		}
		if err := saveUser(tx, user, now); err != nil {
			return nil, err
		}
		if err := notifications.QueueMail(tx, notifications.TwoFactorEnabled, user, nil, now); err != nil {
			return nil, err
		}
		return nil, audit.Append(tx, userEntry(user, audit.TwoFactorEnable, caller.Actor(from)), now)
	})
}

// ProofBody holds the password and second factor of a signed-in caller.
type ProofBody struct {
	Password   validate.String `json:"password"`
	TOTPCode   validate.String `json:"totp_code"` // either field accepts either kind of code
	BackupCode validate.String `json:"backup_code"`
}

// DisableTwoFactor turns the second factor off after both factors are proved, and ends every session. Source: docs/decisions/authentication.md,
// "Disable 2FA".
func (e *Engine) DisableTwoFactor(ctx context.Context, app core.App, caller Caller, body ProofBody, from audit.Origin, now time.Time) error {
	return e.withBothFactors(ctx, app, caller, body, from, now, func(tx core.App, user *collections.User) error {
		return disableTwoFactor(tx, user, caller.Actor(from), now)
	})
}

// disableTwoFactor removes the second factor, for the user or for an administrator.
func disableTwoFactor(tx core.App, user *collections.User, by audit.Actor, now time.Time) error {
	user.SetTwoFactor("")
	user.SetTOTPPending(collections.TOTPPending{})
	if _, err := RevokeAll(tx, user.Id, reasonTwoFactor, now); err != nil {
		return err
	}
	if err := saveUser(tx, user, now); err != nil {
		return err
	}
	if err := collections.ReplaceBackupCodes(tx, user.Id, nil, now); err != nil {
		return err
	}
	if err := notifications.QueueMail(tx, notifications.TwoFactorDisabled, user, nil, now); err != nil {
		return err
	}
	return audit.Append(tx, userEntry(user, audit.TwoFactorDisable, by), now)
}

// ReplaceBackupCodes returns new backup codes and invalidates the old ones. Source: docs/decisions/authentication.md, "Backup codes".
func (e *Engine) ReplaceBackupCodes(ctx context.Context, app core.App, caller Caller, body ProofBody, from audit.Origin, now time.Time) (codes []string, err error) {
	err = e.withBothFactors(ctx, app, caller, body, from, now, func(tx core.App, user *collections.User) error {
		var hashes []string
		codes, hashes = e.newBackupCodes(user)
		if err := collections.ReplaceBackupCodes(tx, user.Id, hashes, now); err != nil {
			return err
		}
		if err := notifications.QueueMail(tx, notifications.BackupCodesReplaced, user, nil, now); err != nil {
			return err
		}
		return audit.Append(tx, userEntry(user, audit.BackupCodesReplaced, caller.Actor(from)), now)
	})
	return codes, err
}

// withBothFactors applies a change after the caller has proved both password and second factor.
func (e *Engine) withBothFactors(ctx context.Context, app core.App, caller Caller, body ProofBody, from audit.Origin, now time.Time,
	apply func(tx core.App, user *collections.User) error,
) error {
	checks := validate.NewChecks()
	password := checks.Secret("password", body.Password, 0)
	code := readCode(checks, body.TOTPCode, body.BackupCode)
	if code == "" && len(checks.Fields["totp_code"]) == 0 && len(checks.Fields["backup_code"]) == 0 {
		checks.Reject("totp_code", "This field is required.")
	}
	if err := checks.Err(); err != nil {
		return err
	}
	ctx, done := withQueueTimeout(ctx)
	defer done()
	proven, err := e.verifyPassword(ctx, app, caller, "password", password, now)
	if err != nil {
		return err
	}
	return e.changeUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		if !user.TwoFactorEnabled() {
			return fault.State("invalid_state", "Two-factor authentication is off."), nil
		}
		if user.TokenKey() != proven.TokenKey() {
			return tokenInvalid(), nil
		}
		factor, err := e.checkSecondFactor(tx, user, code, now)
		if err != nil {
			return nil, err
		}
		if refused, err := e.countProof(tx, user.Id, factor.proven, invalidTOTP(), now); refused != nil || err != nil {
			return refused, err
		}
		if err := markSecondFactorUsed(tx, user, factor, caller.Actor(from), now); err != nil {
			return nil, err
		}
		return nil, apply(tx, user)
	})
}

// markSecondFactorUsed prevents a code from being accepted again.
func markSecondFactorUsed(tx core.App, user *collections.User, factor secondFactor, by audit.Actor, now time.Time) error {
	if factor.backupCode {
		return recordBackupCodeUse(tx, user, factor, by, now)
	}
	user.SetTOTPLastStep(max(user.TOTPLastStep(), factor.timeStep))
	return saveUser(tx, user, now)
}

// recordBackupCodeUse audits the use of a backup code and notifies its owner.
func recordBackupCodeUse(tx core.App, user *collections.User, factor secondFactor, by audit.Actor, now time.Time) error {
	entry := userEntry(user, audit.BackupCodeUsed, by)
	entry.Changes = audit.Changes{"backup_codes_left": {Old: factor.codesLeft + 1, New: factor.codesLeft}}
	if err := audit.Append(tx, entry, now); err != nil {
		return err
	}
	return notifyBackupCodeUsed(tx, user, factor.codesLeft, now)
}

// A QR code has a white margin of four modules (ISO/IEC 18004, 6.3.8). 256 pixels is the minimum image size.
// Source: docs/decisions/authentication.md, "QR endpoint".
const (
	quietZone = 4
	minPixels = 256
)

// QRCode is an encoded provisioning URI. It contains the secret.
type QRCode struct {
	modules barcode.Barcode
	side    int // modules, margin included
}

// NewQRCode encodes a provisioning URI.
func NewQRCode(uri string) (QRCode, error) {
	modules, err := qr.Encode(uri, qr.M, qr.Auto)
	if err != nil {
		return QRCode{}, fmt.Errorf("encode QR code: %w", err)
	}
	return QRCode{modules: modules, side: modules.Bounds().Dx() + 2*quietZone}, nil
}

// isDark reports whether a module is black; outside the code all are white.
func (q QRCode) isDark(x, y int) bool {
	at := image.Pt(x-quietZone, y-quietZone)
	return at.In(q.modules.Bounds()) && q.modules.At(at.X, at.Y) == color.Black
}

// PNG renders each module as a square of whole pixels.
func (q QRCode) PNG() ([]byte, error) {
	scale := (minPixels + q.side - 1) / q.side
	canvas := image.NewPaletted(image.Rect(0, 0, q.side*scale, q.side*scale), color.Palette{color.White, color.Black})
	for y := range canvas.Rect.Dy() {
		for x := range canvas.Rect.Dx() {
			if q.isDark(x/scale, y/scale) {
				canvas.SetColorIndex(x, y, 1)
			}
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, canvas); err != nil {
		return nil, fmt.Errorf("draw QR code: %w", err)
	}
	return out.Bytes(), nil
}

// SVG renders all modules as one path.
func (q QRCode) SVG() []byte {
	var path strings.Builder
	for y := range q.side {
		for x := range q.side {
			if q.isDark(x, y) {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x, y)
			}
		}
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" shape-rendering="crispEdges">`+
		`<rect width="100%%" height="100%%" fill="#fff"/><path d="%s"/></svg>`, minPixels, minPixels, q.side, q.side, path.String())
}
