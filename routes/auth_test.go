package routes_test

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pquerna/otp/totp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

const newPassword = "Better-Horse-43!"

// send sends a request with the given token; "" sends none.
func (c *clinic) send(token, method, path string, body any, header ...string) reply {
	c.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(c.t.Context(), method, "/api/v1"+path, strings.NewReader(string(raw)))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, method, r.URL.Path, rec.Code, rec.Header(), rec.Body.Bytes())
	return reply{c.t, method + " " + path, rec.Code, rec.Body.String()}
}

func (c *clinic) login(email, password string, more ...string) reply {
	c.t.Helper()
	body := object{"email": email, "password": password}
	for i := 0; i+1 < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	return c.send("", "POST", "/auth/login/", body)
}

func (r reply) text(field string) string {
	r.t.Helper()
	value, _ := r.object()[field].(string)
	return value
}

// fieldErrors returns the messages about one field.
func (r reply) fieldErrors(field string) string {
	r.t.Helper()
	messages, _ := r.object()["field_errors"].(object)[field].([]any)
	var all []string
	for _, message := range messages {
		all = append(all, message.(string))
	}
	return strings.Join(all, " ")
}

// startMail starts a mail server on a socket and a mailer that sends to it.
func (c *clinic) startMail() (*sandbox.MailCatcher, *notifications.Mailer) {
	c.t.Helper()
	catcher, err := sandbox.NewMailCatcher(func() time.Time { return c.now }, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = catcher.Close() })
	c.app.OnMailerSend().UnbindAll() // the test app would intercept the mail
	settings := c.app.Settings()
	settings.SMTP.Enabled, settings.SMTP.Host, settings.SMTP.Port = true, "127.0.0.1", catcher.Port()
	mailer := notifications.NewMailer(notifications.MailerOptions{
		Configured: true, Resolve: c.auth.ResolveMail,
		Clock: func() time.Time { return c.now }, Log: slog.New(slog.DiscardHandler),
	})
	mailer.From.Address = "vigil@vigil.test"
	return catcher, mailer
}

// deliver sends the due mail and returns every message caught so far.
func (c *clinic) deliver(catcher *sandbox.MailCatcher, mailer *notifications.Mailer) []sandbox.Message {
	c.t.Helper()
	if _, err := mailer.SendDue(c.t.Context(), c.app.BaseApp); err != nil {
		c.t.Fatal(err)
	}
	return catcher.Messages()
}

// linkToken returns the token of the link in a mail.
func linkToken(t *testing.T, mail sandbox.Message) string {
	t.Helper()
	for line := range strings.Lines(mail.Text) {
		if address, err := url.Parse(strings.TrimSpace(line)); err == nil && address.Query().Get("token") != "" {
			if !strings.Contains(mail.HTML, address.Query().Get("token")) {
				t.Error("the link is not in the HTML form")
			}
			return address.Query().Get("token")
		}
	}
	t.Fatalf("no link in %q", mail.Text)
	return ""
}

func TestRegistration(t *testing.T) {
	c := newClinic(t)
	catcher, mailer := c.startMail()
	body := object{
		"email": " New.Nurse@Practice.Test ", "password": newPassword, "first_name": "New", "last_name": "Nurse", "role": "nurse",
		"time_zone": "America/Chicago", "npi": "1234567893", "phone": "+1 312 555 0100",
	}
	made := c.request(authz.Admin, "POST", "/auth/register/", body).want(201)
	if made.text("email") != "new.nurse@practice.test" || made.text("created_at") != "2026-01-15T13:45:00Z" || made.object()["is_active"] != true {
		t.Errorf("registered %s", made.body)
	}
	again := c.request(authz.Admin, "POST", "/auth/register/", body).want(400, "validation_error")
	if again.fieldErrors("email") == "" {
		t.Errorf("a second account of the address: %s", again.body)
	}
	mails := c.deliver(catcher, mailer)
	if len(mails) != 1 || mails[0].To[0] != "new.nurse@practice.test" || strings.Contains(string(mails[0].Raw), newPassword) {
		t.Fatalf("mailed %d", len(mails))
	}
	if !strings.Contains(mails[0].Text, "https://vigil.example.org") || !strings.Contains(mails[0].Text, "new.nurse@practice.test") {
		t.Errorf("welcome mail: %q", mails[0].Text)
	}
	profile := c.send(c.login("NEW.nurse@practice.test", newPassword).want(200).text("access"), "GET", "/auth/profile/", nil).want(200)
	if profile.object()["must_change_password"] != true || profile.text("npi") != "1234567893" || profile.text("time_zone") != "America/Chicago" {
		t.Errorf("profile %s", profile.body)
	}
	token := linkToken(t, mails[0])
	confirm := object{"token": token, "new_password": "Quite-Another-9", "new_password_confirm": "Quite-Another-9"}
	c.now = c.now.Add(23 * time.Hour)
	c.send("", "POST", "/auth/password-reset/confirm/", confirm).want(200)
	c.send("", "POST", "/auth/password-reset/confirm/", confirm).want(400, "invalid_reset_token")
	profile = c.send(c.login("new.nurse@practice.test", "Quite-Another-9").want(200).text("access"), "GET", "/auth/profile/", nil).want(200)
	if profile.object()["must_change_password"] != false {
		t.Errorf("profile after the link %s", profile.body)
	}
}

func TestRegistrationRefusals(t *testing.T) {
	c := newClinic(t)
	right := object{"email": "x@practice.test", "password": newPassword, "first_name": "Ada", "last_name": "Lovelace", "role": "nurse"}
	for field, values := range map[string][]any{
		"email": {"", nil, 7, "no address", "a@b", "two@at@signs.test", "\u0430dmin@practice.test", strings.Repeat("a", 250) + "@x.test", "a b@x.test"},
		"password": {
			"", nil, "short-A1", "alllowercase-1", "ALLUPPERCASE-1", "No-Digit-Here", "NoSpecial12345", strings.Repeat("Aa1-", 18), strings.Repeat("Aa1-", 2500),
			"x@practice.test-A1", "Ada_Lovelace-1234", "Lovelace-12345", "Vigil-12345678", "AdaLovelace123!",
		},
		"first_name": {"", nil, strings.Repeat("x", 101)},
		"last_name":  {" ", []string{"a"}},
		"role":       {"", "Admin", "superuser", 1},
		"npi":        {"1234567890", "123", "abcdefghij", 1234567893},
		"phone":      {"call me", "12"},
		"time_zone":  {"Mars/Olympus", "Local"},
		"patient_id": {"7", "00000000-0000-4000-8000-000000000000"},
	} {
		for _, value := range values {
			body := object{}
			for name, fine := range right {
				body[name] = fine
			}
			body[field] = value
			answer := c.request(authz.Admin, "POST", "/auth/register/", body).want(400, "validation_error")
			if answer.fieldErrors(field) == "" || len(answer.object()["field_errors"].(object)) != 1 {
				t.Errorf("%s %v: %s", field, value, answer.body)
			}
		}
	}
	if n := vigiltest.RowCounts(t, c.app); n["users"] != len(authz.Roles) || n["mails"] != 0 {
		t.Errorf("refusals left %d users, %d mails", n["users"], n["mails"])
	}
}

func TestPasswordChange(t *testing.T) {
	c := newClinic(t)
	user := c.people[authz.Nurse]
	session := c.login(user.Email(), vigiltest.Password).want(200)
	token := session.text("access")
	change := func(old, wanted, confirm string) reply {
		return c.send(token, "POST", "/auth/password/change/", object{"old_password": old, "new_password": wanted, "new_password_confirm": confirm})
	}
	for _, test := range []struct{ old, wanted, confirm, field string }{
		{"", newPassword, newPassword, "old_password"},
		{vigiltest.Password, newPassword, newPassword + "x", "new_password_confirm"},
		{vigiltest.Password, "short", "short", "new_password"},
		{vigiltest.Password, vigiltest.Password, vigiltest.Password, "new_password"},
		{vigiltest.Password, "Violet-Person-1234", "Violet-Person-1234", "new_password"},
	} {
		if answer := change(test.old, test.wanted, test.confirm).want(400, "validation_error"); answer.fieldErrors(test.field) == "" {
			t.Errorf("%+v: %s", test, answer.body)
		}
	}
	change(vigiltest.Password, newPassword, newPassword).want(200)
	c.send(token, "GET", "/auth/profile/", nil).want(401, "token_invalid")
	c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(401, "token_revoked")
	c.login(user.Email(), vigiltest.Password).want(401, "authentication_failed")
	token = c.login(user.Email(), newPassword).want(200).text("access")

	for range 5 {
		if answer := change("Wrong-Password-1", newPassword+"1", newPassword+"1").want(400); answer.fieldErrors("old_password") == "" {
			t.Errorf("a wrong old password: %s", answer.body)
		}
	}
	change(newPassword, newPassword+"1", newPassword+"1").want(429, "throttled")
	c.now = c.now.Add(14 * time.Minute)
	token = c.login(user.Email(), newPassword).want(200).text("access")
	change(newPassword, newPassword+"1", newPassword+"1").want(429, "throttled")
	c.now = c.now.Add(61 * time.Second)
	change(newPassword, newPassword+"1", newPassword+"1").want(200)
}

func TestPasswordReset(t *testing.T) {
	c := newClinic(t)
	catcher, mailer := c.startMail()
	user := c.people[authz.Provider]
	session := c.login(user.Email(), vigiltest.Password).want(200)
	ask := func(email string) reply {
		return c.send("", "POST", "/auth/password-reset/", object{"email": email}).want(200)
	}
	before := vigiltest.RowCounts(t, c.app)
	known := ask(user.Email())
	addedForKnown := vigiltest.RowsAdded(t, c.app, before)
	before = vigiltest.RowCounts(t, c.app)
	unknown := ask("nobody@practice.test")
	if known.body != unknown.body {
		t.Errorf("known %s, unknown %s", known.body, unknown.body)
	}
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != len(addedForKnown) || added["mails"] != 1 || added["audit_log"] != 1 {
		t.Errorf("an unknown address adds %v, a known one %v", added, addedForKnown)
	}
	mails := c.deliver(catcher, mailer)
	if len(mails) != 1 || mails[0].To[0] != user.Email() {
		t.Fatalf("mailed %v", mails)
	}
	for range 4 {
		ask(strings.ToUpper(user.Email()))
	}
	mails = c.deliver(catcher, mailer)
	if len(mails) != 3 {
		t.Errorf("%d mails within the hour", len(mails))
	}
	confirm := func(token, password string) reply {
		return c.send("", "POST", "/auth/password-reset/confirm/", object{"token": token, "new_password": password, "new_password_confirm": password})
	}
	confirm(linkToken(t, mails[0]), newPassword).want(400, "invalid_reset_token") // only the newest link works
	newest := linkToken(t, mails[2])
	confirm(newest, "too short").want(400, "validation_error")
	confirm(newest, vigiltest.Password).want(400, "validation_error") // the old password
	for range 5 {
		c.login(user.Email(), "wrong").want(401)
	}
	c.login(user.Email(), vigiltest.Password).want(423, "account_locked")
	confirm(newest, newPassword).want(200)
	confirm(newest, newPassword+"1").want(400, "invalid_reset_token")
	c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(401, "token_revoked")
	c.login(user.Email(), newPassword).want(200) // the lock is gone too

	c.now = c.now.Add(2 * time.Hour)
	ask(user.Email())
	mails = c.deliver(catcher, mailer)
	mails = slices.DeleteFunc(mails, func(m sandbox.Message) bool { return m.Subject != "Set a new password" })
	late := linkToken(t, mails[len(mails)-1])
	c.now = c.now.Add(time.Hour)
	confirm(late, newPassword+"2").want(400, "invalid_reset_token")
}

func TestUnknownAddressGetsNoMail(t *testing.T) {
	c := newClinic(t)
	catcher, mailer := c.startMail()
	inactive := vigiltest.User(t, c.app, authz.Nurse, vigiltest.Inactive())
	for _, address := range []string{"nobody@practice.test", inactive.Email()} {
		c.send("", "POST", "/auth/password-reset/", object{"email": address}).want(200)
	}
	if mails := c.deliver(catcher, mailer); len(mails) != 0 {
		t.Errorf("mailed %v", mails)
	}
	if left := vigiltest.RowCounts(t, c.app)["mails"]; left != 0 {
		t.Errorf("%d mails are kept", left)
	}
}

func TestLockNotifiesAdministrators(t *testing.T) {
	c := newClinic(t)
	catcher, mailer := c.startMail()
	second := vigiltest.User(t, c.app, authz.Admin)
	vigiltest.User(t, c.app, authz.Admin, vigiltest.Inactive())
	for _, address := range []string{c.people[authz.Nurse].Email(), "nobody@practice.test"} {
		before := vigiltest.RowCounts(t, c.app)
		for range 5 {
			c.login(address, "wrong").want(401, "authentication_failed")
		}
		if added := vigiltest.RowsAdded(t, c.app, before); added["mails"] != 1 || added["audit_log"] != 6 || added["login_failures"] != 1 {
			t.Errorf("%s: %v", address, added)
		}
		locked := c.login(address, vigiltest.Password).want(423, "account_locked")
		if locked.text("locked_until") != "2026-01-15T14:15:00Z" {
			t.Errorf("locked %s", locked.body)
		}
	}
	var to []string
	for _, mail := range c.deliver(catcher, mailer) {
		to = append(to, mail.To...)
		if strings.Contains(string(mail.Raw), c.people[authz.Nurse].Email()) {
			t.Error("the mail names the account")
		}
	}
	slices.Sort(to)
	want := []string{c.people[authz.Admin].Email(), second.Email()}
	slices.Sort(want)
	if !slices.Equal(to, want) {
		t.Errorf("mailed %v, want %v", to, want)
	}
	notices, err := c.app.FindRecordsByFilter(collections.Notifications, "user = {:user}", "", 0, 0, dbx.Params{"user": second.Id})
	if err != nil || len(notices) != 1 || !strings.Contains(notices[0].GetString("body"), c.people[authz.Nurse].Email()) {
		t.Errorf("%d notices, %v", len(notices), err)
	}
	var stored string
	if err := c.app.DB().NewQuery("SELECT body FROM notifications LIMIT 1").Row(&stored); err != nil || strings.Contains(stored, "locked") {
		t.Errorf("the notice is readable on disk: %q, %v", stored, err)
	}
	c.request(authz.Admin, "POST", "/users/"+number(c.people[authz.Nurse])+"/unlock/", nil).want(200)
	c.login(c.people[authz.Nurse].Email(), vigiltest.Password).want(200)
}

func TestRolesThatNeedASecondFactor(t *testing.T) {
	var authority *auth.Engine
	c := newClinic(t, func(e *routes.Engines) {
		authority = auth.New(vigiltest.Sealer(), auth.Options{RefreshFamilyLife: time.Hour, FreshSignIn: time.Hour, RequireTwoFactor: auth.TwoFactorPolicy{Roles: []authz.Role{authz.Admin}}})
		e.Auth, e.AccessTokens = authority, authority
	})
	admin, nurse := c.people[authz.Admin], c.people[authz.Nurse]
	token := c.login(admin.Email(), vigiltest.Password).want(200).text("access")
	for _, path := range []string{"/users/", "/users/me/", "/patients/", "/alerts/"} {
		c.send(token, "GET", path, nil).want(403, "two_factor_setup_required")
	}
	c.send(token, "GET", "/auth/profile/", nil).want(200)
	c.send(c.login(nurse.Email(), vigiltest.Password).text("access"), "GET", "/alerts/", nil).want(200)
	setup := c.send(token, "POST", "/auth/2fa/setup/", nil).want(200)
	code, err := totp.GenerateCode(setup.text("secret"), c.now)
	if err != nil {
		t.Fatal(err)
	}
	c.send(token, "POST", "/auth/2fa/verify/", object{"totp_code": code}).want(200)
	c.send(token, "GET", "/users/", nil).want(200)
}

func number(user *collections.User) string { return strconv.FormatInt(user.Number(), 10) }

// An address of any form can be locked, even one that no account has.
func TestAnyAddressFormLocks(t *testing.T) {
	c := newClinic(t)
	for _, address := range []string{strings.Repeat("ü", 254), "'; DROP TABLE users; --", "\u202eadmin@practice.test", "{{.link}}<script>"} {
		for range 5 {
			c.login(address, "wrong").want(401, "authentication_failed")
		}
		c.login(address, "wrong").want(423, "account_locked")
		c.send("", "POST", "/auth/password-reset/", object{"email": address}).want(200)
	}
	catcher, mailer := c.startMail()
	if mails := c.deliver(catcher, mailer); len(mails) != 0 {
		t.Errorf("mailed %v", mails)
	}
}
