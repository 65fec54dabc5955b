package auth_test

import (
	"bytes"
	"fmt"
	"image/png"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func freshFor(life time.Duration) func(*auth.Options) {
	return func(o *auth.Options) { o.FreshSignIn = life }
}

func codeFor(t testing.TB, secret string, at time.Time) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, at)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func codeBody(code string) auth.CodeBody { return auth.CodeBody{TOTPCode: validate.Of(code)} }

func proof(password, code string) auth.ProofBody {
	return auth.ProofBody{Password: validate.Of(password), TOTPCode: validate.Of(code)}
}

// twoFactor is a signed-in nurse who manages a second factor.
type twoFactor struct {
	*dashboard
	caller auth.Caller
}

func newTwoFactor(t *testing.T) *twoFactor {
	d := &dashboard{t: t, app: vigiltest.NewApp(t), e: newEngine(freshFor(10 * time.Minute)), now: clock}
	f := &twoFactor{dashboard: d}
	f.caller, _ = signedIn(t, d.e, d.app, vigiltest.User(t, d.app, authz.Nurse, vigiltest.Email("nurse@vigil.test")), clock)
	return f
}

func (f *twoFactor) setUp() auth.Setup {
	f.t.Helper()
	setup, err := f.e.SetUpTwoFactor(f.t.Context(), f.app, f.caller, auth.PasswordProof{Password: validate.Of(vigiltest.Password)}, origin, f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	return setup
}

func (f *twoFactor) verify(shown string) string {
	return code(f.e.VerifyTwoFactor(f.app, f.caller, codeBody(shown), origin, f.now))
}

func (f *twoFactor) turnOff(body auth.ProofBody) string {
	return code(f.e.DisableTwoFactor(f.t.Context(), f.app, f.caller, body, origin, f.now))
}

func (f *twoFactor) login(second string) string {
	body := credentials("nurse@vigil.test", vigiltest.Password)
	if second != "" {
		body = withCode(body, second)
	}
	_, err := f.e.Login(f.t.Context(), f.app, body, origin, f.now)
	return code(err)
}

func (f *twoFactor) want(what, got, want string) {
	f.t.Helper()
	if got != want {
		f.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestPendingSetup checks that a setup has no effect until its first code, is replaced by the next setup, and expires after 15 minutes or five
// wrong codes.
func TestPendingSetup(t *testing.T) {
	f := newTwoFactor(t)
	f.want("nothing to verify", f.verify("123456"), "invalid_totp")
	_, err := f.e.PendingURI(f.app, f.caller, clock)
	wantCode(t, "nothing to draw", err, "not_found")
	first, second := f.setUp(), f.setUp()
	f.want("not on yet", f.login(""), "")
	f.want("the first set-up's code", f.verify(codeFor(t, first.Secret, clock)), "invalid_totp")
	f.want("a backup code", f.verify(second.BackupCodes[0]), "invalid_totp")
	want := "otpauth://totp/RPM:nurse@vigil.test?secret=" + second.Secret + "&issuer=RPM&algorithm=SHA1&digits=6&period=30"
	f.now = clock.Add(15*time.Minute - time.Second)
	if uri, err := f.e.PendingURI(f.app, f.caller, f.now); err != nil || uri != want || second.ProvisioningURI != want {
		t.Errorf("in the last second %s, %v", uri, err)
	}
	f.now = clock.Add(15 * time.Minute)
	_, err = f.e.PendingURI(f.app, f.caller, f.now)
	wantCode(t, "a quarter of an hour later", err, "not_found")
	f.want("its code then", f.verify(codeFor(t, second.Secret, f.now)), "invalid_totp")

	setup := f.setUp()
	for range 5 {
		f.want("a wrong code", f.verify("000000"), "invalid_totp")
	}
	f.want("the right one after five", f.verify(codeFor(t, setup.Secret, f.now)), "invalid_totp")
	setup = f.setUp()
	for range 4 {
		f.want("a wrong code", f.verify("000000"), "invalid_totp")
	}
	f.want("the right one after four", f.verify(codeFor(t, setup.Secret, f.now)), "")
	err = f.e.VerifyTwoFactor(f.app, f.caller, auth.CodeBody{}, origin, f.now)
	if got := wrongFields(err); got != "totp_code" {
		t.Errorf("no code: %s", got)
	}
}

// TestProvisioningURI checks that an issuer with spaces is encoded for authenticator apps.
func TestProvisioningURI(t *testing.T) {
	app, e := vigiltest.NewApp(t), newEngine(freshFor(time.Hour), func(o *auth.Options) { o.TOTPIssuer = "Main St. & Sons" })
	caller, _ := signedIn(t, e, app, vigiltest.User(t, app, authz.Nurse, vigiltest.Email("a+b@vigil.test")), clock)
	setup, err := e.SetUpTwoFactor(t.Context(), app, caller, auth.PasswordProof{}, origin, clock)
	if want := "otpauth://totp/Main%20St.%20%26%20Sons:a+b@vigil.test?secret=" + setup.Secret + "&issuer=Main%20St.%20%26%20Sons&"; err != nil || !strings.HasPrefix(setup.ProvisioningURI, want) {
		t.Errorf("%s, %v", setup.ProvisioningURI, err)
	}
}

// TestTwoFactorLifecycle checks sign-in with a second factor, one-time backup codes, their replacement, and turning the factor off.
func TestTwoFactorLifecycle(t *testing.T) {
	f := newTwoFactor(t)
	setup := f.setUp()
	if len(setup.Secret) != 32 || len(setup.BackupCodes) != 10 {
		t.Errorf("set up %d letters and %d codes", len(setup.Secret), len(setup.BackupCodes))
	}
	seen, form := map[string]bool{}, regexp.MustCompile(`^[0-9a-hjkmnp-tv-z]{5}-[0-9a-hjkmnp-tv-z]{5}$`)
	for _, backup := range setup.BackupCodes {
		if !form.MatchString(backup) || seen[backup] {
			t.Errorf("backup code %s", backup)
		}
		seen[backup] = true
	}
	code1 := codeFor(t, setup.Secret, clock)
	f.want("verified", f.verify(code1), "")
	_, err := f.e.SetUpTwoFactor(t.Context(), f.app, f.caller, auth.PasswordProof{}, origin, clock)
	wantCode(t, "set up again", err, "already_enabled")
	f.want("no code", f.login(""), "totp_required")
	f.want("the code of the set-up", f.login(code1), "authentication_failed")
	for _, backup := range setup.BackupCodes[:3] {
		f.want("a backup code in capitals", f.login(strings.ToUpper(backup)), "")
		f.want("that again", f.login(backup), "authentication_failed")
	}

	replace := func(body auth.ProofBody) ([]string, string) {
		codes, err := f.e.ReplaceBackupCodes(t.Context(), f.app, f.caller, body, origin, f.now)
		return codes, code(err)
	}
	for name, test := range map[string]struct {
		body auth.ProofBody
		want string
	}{
		"nothing":                    {auth.ProofBody{}, "validation_error"},
		"no code":                    {auth.ProofBody{Password: validate.Of(vigiltest.Password)}, "validation_error"},
		"no password":                {auth.ProofBody{TOTPCode: validate.Of(setup.BackupCodes[4])}, "validation_error"},
		"a used code":                {proof(vigiltest.Password, code1), "invalid_totp"},
		"wrong password, right code": {proof("wrong", setup.BackupCodes[4]), "validation_error"},
	} {
		_, got := replace(test.body)
		f.want(name, got, test.want)
	}
	f.now = clock.Add(30 * time.Second)
	next := codeFor(t, setup.Secret, f.now)
	codes, got := replace(proof(vigiltest.Password, next))
	f.want("replaced", got, "")
	f.want("a code that proved something", f.login(next), "authentication_failed")
	f.want("a backup code of before", f.login(setup.BackupCodes[4]), "authentication_failed")
	f.want("a new one", f.login(codes[0]), "")

	_, session := signedInWith(t, f, codes[1])
	body := auth.ProofBody{Password: validate.Of(vigiltest.Password), BackupCode: validate.Of(codes[2])}
	f.want("off", f.turnOff(body), "")
	f.want("off again", f.turnOff(proof(vigiltest.Password, codes[3])), "invalid_state")
	_, err = refresh(f.e, f.app, session.Refresh, f.now)
	wantCode(t, "a session of before", err, "token_revoked")
	f.want("the password alone", f.login(""), "")
	if n := vigiltest.RowCounts(t, f.app); n["backup_codes"] != 0 {
		t.Errorf("%d backup codes are left", n["backup_codes"])
	}
	if got := mails(t, f.app); got != strings.Repeat("backup_code_used ", 6)+"backup_codes_replaced two_factor_disabled two_factor_enabled" {
		t.Errorf("mails: %s", got)
	}
}

func signedInWith(t *testing.T, f *twoFactor, second string) (auth.Caller, auth.Session) {
	t.Helper()
	session, err := f.e.Login(t.Context(), f.app, withCode(credentials("nurse@vigil.test", vigiltest.Password), second), origin, f.now)
	if err != nil {
		t.Fatal(err)
	}
	return callerOf(t, f.e, f.app, session.Access), session
}

// TestWrongProofsAreThrottled checks that after five wrong proofs within 15 minutes further ones are refused until those minutes have passed.
func TestWrongProofsAreThrottled(t *testing.T) {
	f := newTwoFactor(t)
	setup := f.setUp()
	f.want("verified", f.verify(codeFor(t, setup.Secret, clock)), "")
	for n := range 5 {
		f.now = clock.Add(time.Duration(n) * time.Minute)
		body, want := proof("wrong", "000000"), "validation_error"
		if n%2 == 1 {
			body, want = proof(vigiltest.Password, "000000"), "invalid_totp"
		}
		f.want(fmt.Sprint("wrong ", n), f.turnOff(body), want)
	}
	right := func() auth.ProofBody { return proof(vigiltest.Password, codeFor(t, setup.Secret, f.now)) }
	f.want("right, too late", f.turnOff(right()), "throttled")
	f.now = clock.Add(15*time.Minute - time.Second)
	f.want("right, in the last second", f.turnOff(right()), "throttled")
	f.now = clock.Add(15 * time.Minute)
	f.want("right, afterwards", f.turnOff(right()), "")
}

// TestProofOfOldPassword checks that the previous password is not accepted.
func TestProofOfOldPassword(t *testing.T) {
	f := newTwoFactor(t)
	body := passwordBody(vigiltest.Password, "Next-Lantern-41")
	f.want("changed", code(f.e.ChangePassword(t.Context(), f.app, f.caller, body, origin, clock)), "")
	f.want("the old one again", wrongFields(f.e.ChangePassword(t.Context(), f.app, f.caller, body, origin, clock)), "old_password")
	for name, test := range map[string]struct {
		body auth.PasswordBody
		want string
	}{
		"nothing":            {auth.PasswordBody{}, "new_password new_password_confirm old_password"},
		"the same again":     {passwordBody("Next-Lantern-41", "Next-Lantern-41"), "new_password"},
		"against the policy": {passwordBody("Next-Lantern-41", "nurse@vigil.test-A1"), "new_password"},
		"two that differ": {auth.PasswordBody{
			OldPassword: validate.Of("Next-Lantern-41"), NewPassword: validate.Of("Third-Lantern-51"), NewPasswordConfirm: validate.Of("Third-Lantern-52"),
		}, "new_password_confirm"},
	} {
		f.want(name, wrongFields(f.e.ChangePassword(t.Context(), f.app, f.caller, test.body, origin, clock)), test.want)
	}
}

// TestQRCode checks that both images show the same modules: finder patterns, a margin of four modules, and squares of whole pixels.
func TestQRCode(t *testing.T) {
	const uri = "otpauth://totp/RPM:nurse@vigil.test?secret=" + secret + "&issuer=RPM&algorithm=SHA1&digits=6&period=30"
	drawn, err := auth.NewQRCode(uri)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := drawn.PNG()
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	svg := string(drawn.SVG())
	var side int
	_, box, _ := strings.Cut(svg, `viewBox="0 0 `)
	if _, err := fmt.Sscan(box, &side); err != nil {
		t.Fatal(err)
	}
	pixels := img.Bounds().Dx()
	scale := pixels / side
	if pixels < 256 || pixels%side != 0 || img.Bounds().Dy() != pixels || (scale-1)*side >= 256 {
		t.Fatalf("%d pixels for %d modules", pixels, side)
	}
	black := func(x, y int) bool { r, _, _, _ := img.At(x, y).RGBA(); return r == 0 }
	for y := range side {
		for x := range side {
			dark := black(x*scale, y*scale)
			if dark != strings.Contains(svg, fmt.Sprintf("M%d %dh1v1h-1z", x, y)) || dark != black(x*scale+scale-1, y*scale+scale-1) {
				t.Fatalf("module %d, %d differs", x, y)
			}
			margin := min(x, y) < 4 || max(x, y) >= side-4
			corner := !margin && (x < 11 && y < 11 || x < 11 && y >= side-11 || x >= side-11 && y < 11)
			ring := corner && (x == 4 || y == 4 || x == side-5 || y == side-5)
			if margin && dark || ring && !dark {
				t.Fatalf("module %d, %d is dark: %v", x, y, dark)
			}
		}
	}
	if _, err := auth.NewQRCode(strings.Repeat("x", 5000)); err == nil {
		t.Error("5000 letters fit")
	}
}
