package routes_test

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func codeAt(t *testing.T, secret string, at time.Time) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, at)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func codes(r reply) (list []string) {
	for _, code := range r.object()["backup_codes"].([]any) {
		list = append(list, code.(string))
	}
	return list
}

// The whole life of a second factor, from setup to removal.
func TestTwoFactor(t *testing.T) {
	c := newClinic(t)
	catcher, mailer := c.startMail()
	user := c.people[authz.Nurse]
	token := c.login(user.Email(), vigiltest.Password).want(200).text("access")
	post := func(path string, body object) reply { return c.send(token, "POST", "/auth/2fa/"+path, body) }

	c.send(token, "GET", "/auth/2fa/qr-code/", nil).want(404, "not_found")
	post("verify/", object{"totp_code": "123456"}).want(400, "invalid_totp")
	post("disable/", object{"password": vigiltest.Password, "totp_code": "123456"}).want(400, "invalid_state")
	first := post("setup/", nil).want(200)
	setup := post("setup/", nil).want(200)
	secret := setup.text("secret")
	if secret == first.text("secret") || setup.text("qr_code_url") != "https://vigil.example.org/api/v1/auth/2fa/qr-code/" {
		t.Errorf("set up %s", setup.body)
	}
	want := "otpauth://totp/RPM:" + user.Email() + "?secret=" + secret + "&issuer=RPM&algorithm=SHA1&digits=6&period=30"
	if setup.text("provisioning_uri") != want {
		t.Errorf("provisioning URI %s, want %s", setup.text("provisioning_uri"), want)
	}
	backup := codes(setup)
	c.login(user.Email(), vigiltest.Password).want(200) // not required before it is confirmed
	post("verify/", object{"totp_code": codeAt(t, first.text("secret"), c.now)}).want(400, "invalid_totp")
	post("verify/", object{"totp_code": backup[0]}).want(400, "invalid_totp")
	post("verify/", object{}).want(400, "validation_error")
	code := codeAt(t, secret, c.now)
	if on := post("verify/", object{"totp_code": code}).want(200); on.object()["is_2fa_enabled"] != true {
		t.Errorf("verified %s", on.body)
	}
	post("setup/", nil).want(400, "already_enabled")
	c.login(user.Email(), vigiltest.Password).want(401, "totp_required")
	c.login(user.Email(), vigiltest.Password, "totp_code", code).want(401, "authentication_failed") // the set-up used it
	c.now = c.now.Add(30 * time.Second)
	code = codeAt(t, secret, c.now)
	c.login(user.Email(), vigiltest.Password, "totp_code", code).want(200)
	c.login(user.Email(), vigiltest.Password, "totp_code", code).want(401, "authentication_failed")
	c.login(user.Email(), vigiltest.Password, "backup_code", strings.ToUpper(backup[3])).want(200)
	c.login(user.Email(), vigiltest.Password, "backup_code", backup[3]).want(401, "authentication_failed")

	proof := object{"password": vigiltest.Password, "totp_code": code}
	post("backup-codes/", proof).want(400, "invalid_totp") // used
	c.now = c.now.Add(30 * time.Second)
	proof["totp_code"] = codeAt(t, secret, c.now)
	fresh := codes(post("backup-codes/", proof).want(200))
	c.login(user.Email(), vigiltest.Password, "backup_code", backup[4]).want(401, "authentication_failed")
	session := c.login(user.Email(), vigiltest.Password, "totp_code", fresh[0]).want(200)

	post("disable/", object{"password": "Wrong-Password-1", "totp_code": fresh[1]}).wantFields("password")
	post("disable/", object{"password": vigiltest.Password}).wantFields("totp_code")
	post("disable/", object{"password": vigiltest.Password, "totp_code": fresh[0]}).want(400, "invalid_totp")
	if off := post("disable/", object{"password": vigiltest.Password, "backup_code": fresh[1]}).want(200); off.object()["is_2fa_enabled"] != false {
		t.Errorf("disabled %s", off.body)
	}
	c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(401, "token_revoked")
	c.login(user.Email(), vigiltest.Password, "totp_code", "ignored").want(200)

	subjects := map[string]int{}
	for _, mail := range c.deliver(catcher, mailer) {
		subjects[mail.Subject]++
		if mail.To[0] != user.Email() {
			t.Errorf("mail to %v", mail.To)
		}
	}
	if subjects["A backup code was used"] != 3 || subjects["Two-factor authentication was turned off"] != 1 ||
		subjects["Two-factor authentication was turned on"] != 1 || subjects["New backup codes were made"] != 1 || len(subjects) != 4 {
		t.Errorf("mailed %v", subjects)
	}
	if n := vigiltest.RowCounts(t, c.app); n["notifications"] != 3 || n["backup_codes"] != 0 {
		t.Errorf("%d notices, %d backup codes", n["notifications"], n["backup_codes"])
	}
}

func TestQRCode(t *testing.T) {
	c := newClinic(t)
	token := c.login(c.people[authz.Patient].Email(), vigiltest.Password).want(200).text("access")
	c.send(token, "POST", "/auth/2fa/setup/", nil).want(200)
	drawn, err := png.Decode(strings.NewReader(c.send(token, "GET", "/auth/2fa/qr-code/", nil).want(200).body))
	if err != nil || drawn.Bounds().Dx() < 256 || drawn.Bounds().Dx() != drawn.Bounds().Dy() {
		t.Fatalf("PNG of %v: %v", drawn, err)
	}
	vector := c.send(token, "GET", "/auth/2fa/qr-code/", nil, "Accept", "image/svg+xml, image/png;q=0.5").want(200)
	var svg struct {
		XMLName xml.Name
		Width   int `xml:"width,attr"`
		Path    struct {
			D string `xml:"d,attr"`
		} `xml:"path"`
	}
	if err := xml.NewDecoder(bytes.NewReader([]byte(vector.body))).Decode(&svg); err != nil || svg.XMLName.Local != "svg" || svg.Width < 256 || len(svg.Path.D) < 1000 {
		t.Errorf("SVG %v %v", svg.XMLName, err)
	}
	c.send(token, "GET", "/auth/2fa/qr-code/", nil, "Accept", "text/html").want(406, "not_acceptable")
	c.now = c.now.Add(15 * time.Minute)
	token = c.login(c.people[authz.Patient].Email(), vigiltest.Password).want(200).text("access")
	c.send(token, "GET", "/auth/2fa/qr-code/", nil).want(404, "not_found")
}

func TestWrongCodesEndSetup(t *testing.T) {
	c := newClinic(t)
	token := c.login(c.people[authz.MA].Email(), vigiltest.Password).want(200).text("access")
	secret := c.send(token, "POST", "/auth/2fa/setup/", nil).want(200).text("secret")
	verify := func(code string) reply { return c.send(token, "POST", "/auth/2fa/verify/", object{"totp_code": code}) }
	for range 5 {
		verify("000000").want(400, "invalid_totp")
	}
	verify(codeAt(t, secret, c.now)).want(400, "invalid_totp")
	secret = c.send(token, "POST", "/auth/2fa/setup/", nil).want(200).text("secret")
	for range 4 {
		verify("000000").want(400, "invalid_totp")
	}
	verify(codeAt(t, secret, c.now)).want(200)
}

func TestGuessingASecondFactorEnds(t *testing.T) {
	const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
	c := newClinic(t)
	user := vigiltest.User(t, c.app, authz.Nurse, vigiltest.TwoFactor(secret))
	token := vigiltest.Token(t, user, c.now)
	disable := func(code string) reply {
		return c.send(token, "POST", "/auth/2fa/disable/", object{"password": vigiltest.Password, "totp_code": code})
	}
	for range 5 {
		disable("000000").want(400, "invalid_totp")
	}
	disable(codeAt(t, secret, c.now)).want(429, "throttled")
	c.request(authz.Admin, "POST", "/users/"+number(user)+"/unlock/", nil).want(200)
	disable(codeAt(t, secret, c.now)).want(200)
}
