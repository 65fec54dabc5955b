package routes_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The whole life of a passkey for every staff role.
func TestPasskeys(t *testing.T) {
	for _, role := range authz.Roles {
		if role == authz.Patient {
			continue
		}
		t.Run(string(role), func(t *testing.T) {
			c := newClinic(t)
			catcher, mailer := c.startMail()
			user := c.people[role]
			token := c.login(user.Email(), vigiltest.Password).want(200).text("access")
			d := c.enrolled(token)
			listed := c.send(token, "GET", "/auth/passkeys/", nil).results()
			if len(listed) != 1 || listed[0]["name"] != "Desk key" || listed[0]["last_used_at"] != nil || listed[0]["created_at"] != "2026-01-15T13:45:00Z" {
				t.Errorf("listed %v", listed)
			}
			c.send(token, "GET", "/auth/profile/", nil).want(200).wantAt(object{"has_passkeys": true, "is_2fa_enabled": false})

			d.signIn().want(200).wantAt(object{"user.email": user.Email(), "user.role": string(role), "access_expires_in": 900.0})
			c.login(user.Email(), vigiltest.Password, "totp_code", "123456").want(401, "totp_required") // no code replaces a passkey
			session := d.signIn(c.step(user, "passkey")).want(200)
			session.wantAt(object{"user.email": user.Email()})

			c.send(token, "PATCH", "/auth/passkeys/"+d.id+"/", object{"name": "  "}).wantFields("name")
			c.send(token, "PATCH", "/auth/passkeys/"+d.id+"/", object{"name": "Red key"}).want(200).wantAt(object{"name": "Red key"})
			if listed := c.send(token, "GET", "/auth/passkeys/", nil).results(); listed[0]["last_used_at"] != "2026-01-15T13:45:00Z" {
				t.Errorf("listed %v", listed)
			}
			c.send(token, "DELETE", "/auth/passkeys/"+d.id+"/", object{}).want(204)
			c.send(token, "DELETE", "/auth/passkeys/"+d.id+"/", object{"password": vigiltest.Password}).want(404, "not_found") // the session has ended
			d.signIn().want(401, "authentication_failed")
			c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(401, "token_revoked") // it was the last factor
			c.login(user.Email(), vigiltest.Password).want(200)

			subjects := map[string]int{}
			for _, mail := range c.deliver(catcher, mailer) {
				subjects[mail.Subject]++
			}
			if want := map[string]int{"A passkey was added": 1, "A passkey was removed": 1}; !maps.Equal(subjects, want) {
				t.Errorf("mailed %v", subjects)
			}
			if got := c.audited("auth.passkey"); got != "register used used rename remove" {
				t.Errorf("recorded %q", got)
			}
		})
	}
}

// A response that does not match its challenge is refused and counts as a failed sign-in.
func TestPasskeyRefusals(t *testing.T) {
	type try func(c *clinic, d *device, user *collections.User) reply
	alone := func(change func(*device)) try {
		return func(c *clinic, d *device, _ *collections.User) reply {
			change(d)
			return d.signIn()
		}
	}
	second := func(change func(*device)) try {
		return func(c *clinic, d *device, user *collections.User) reply {
			change(d)
			return d.signIn(c.step(user, "passkey"))
		}
	}
	replay := func(c *clinic, d *device, _ *collections.User) reply {
		shown := object{"credential": d.get(c.send("", "POST", "/auth/passkeys/authentication-options/", object{}))}
		c.send("", "POST", "/auth/passkeys/authenticate/", shown).want(200)
		return c.send("", "POST", "/auth/passkeys/authenticate/", shown)
	}
	crossed := func(c *clinic, d *device, user *collections.User) reply { // a challenge for a passkey alone, used as the second step
		shown := d.get(c.send("", "POST", "/auth/passkeys/authentication-options/", object{}))
		return c.send("", "POST", "/auth/passkeys/authenticate/", object{"credential": shown, "temporary_token": c.step(user, "passkey")})
	}
	bare := func(c *clinic, d *device, user *collections.User) reply { // a challenge for the second step, without its password
		shown := d.get(c.send("", "POST", "/auth/passkeys/authentication-options/", object{"temporary_token": c.step(user, "passkey")}))
		return c.send("", "POST", "/auth/passkeys/authenticate/", object{"credential": shown})
	}
	registered := func(c *clinic, d *device, user *collections.User) reply { // a challenge for a registration
		token := c.login(c.people[authz.MA].Email(), vigiltest.Password).want(200).text("access")
		return c.send("", "POST", "/auth/passkeys/authenticate/", object{"credential": d.get(c.registrationOptions(token))})
	}
	for name, try := range map[string]try{
		"wrong origin":                 alone(func(d *device) { d.at.Origin = "https://vigil.example.com" }),
		"another port":                 alone(func(d *device) { d.at.Origin = "https://vigil.example.org:8443" }),
		"wrong origin as second step":  second(func(d *device) { d.at.Origin = "https://evil.example" }),
		"wrong relying party":          alone(func(d *device) { d.at.ID = "evil.example" }),
		"wrong relying party, second":  second(func(d *device) { d.at.ID = "evil.example" }),
		"user not verified, alone":     alone(func(d *device) { d.holds.Options.UserNotVerified = true }),
		"user not present":             second(func(d *device) { d.holds.Options.UserNotPresent = true }),
		"another key":                  alone(func(d *device) { d.key.Key = newKey().Key }),
		"another owner's handle":       alone(func(d *device) { d.holds.Options.UserHandle = []byte("somebody else") }),
		"no handle":                    alone(func(d *device) { d.holds.Options.UserHandle = nil }),
		"may suddenly be copied":       alone(func(d *device) { d.holds.Options.BackupEligible = true }),
		"count goes backwards":         alone(func(d *device) { d.signIn().want(200); d.key.Counter = 0 }),
		"replayed":                     replay,
		"challenge of another kind":    crossed,
		"challenge of the second step": bare,
		"challenge of a registration":  registered,
		"a forged challenge":           func(c *clinic, d *device, _ *collections.User) reply { return d.forge() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClinic(t)
			user := c.people[authz.Nurse]
			d := c.enrolled(c.login(user.Email(), vigiltest.Password).want(200).text("access"))
			try(c, d, user).want(401, "authentication_failed")
			if got := c.failedSignIns(); got != 1 {
				t.Errorf("%d failures counted", got)
			}
		})
	}
}

// A device without user verification still counts as a second factor.
func TestPasskeyWithoutUserVerification(t *testing.T) {
	c := newClinic(t)
	user := c.people[authz.MA]
	token := c.login(user.Email(), vigiltest.Password).want(200).text("access")
	d := c.device()
	d.holds.Options.UserNotVerified = true
	c.registerWith(token, "Old key", d.create(c.registrationOptions(token))).want(201)
	d.signIn(c.step(user, "passkey")).want(200)
	d.signIn().want(401, "authentication_failed")
}

// Late responses are refused but do not count as guesses.
func TestLatePasskeys(t *testing.T) {
	c := newClinic(t)
	user := c.people[authz.Nurse]
	d := c.enrolled(c.login(user.Email(), vigiltest.Password).want(200).text("access"))
	late := object{"credential": d.get(c.send("", "POST", "/auth/passkeys/authentication-options/", object{}))}
	temporary := c.step(user, "passkey")
	c.now = c.now.Add(5*time.Minute - time.Second)
	ended := object{"temporary_token": temporary}
	ended["credential"] = d.get(c.send("", "POST", "/auth/passkeys/authentication-options/", ended))
	c.now = c.now.Add(time.Second)
	c.send("", "POST", "/auth/passkeys/authenticate/", late).want(401, "authentication_failed")
	c.send("", "POST", "/auth/passkeys/authenticate/", ended).want(401, "authentication_failed")
	d.signIn(temporary).want(401, "authentication_failed")
	if got := c.failedSignIns(); got != 0 {
		t.Errorf("%d failures counted", got)
	}

	temporary = c.step(user, "passkey")
	d.signIn(temporary).want(200)
	d.signIn(temporary).want(401, "authentication_failed") // it was used
	temporary = c.step(user, "passkey")
	c.send("", "POST", "/auth/passkeys/authenticate/", object{"temporary_token": temporary, "credential": late["credential"]}).want(401, "authentication_failed")
	d.signIn(temporary).want(401, "authentication_failed") // it was used, though without success
	temporary = c.step(user, "passkey")
	c.change(user)
	d.signIn(temporary).want(401, "authentication_failed") // it ended with the password
	if n := vigiltest.RowCounts(t, c.app); n["used_challenges"] == 0 {
		t.Error("no challenge is kept as used")
	}
	c.now = c.now.Add(6 * time.Minute)
	d.signIn().want(200)
	if n := vigiltest.RowCounts(t, c.app); n["used_challenges"] != 1 {
		t.Errorf("%d used challenges are kept", n["used_challenges"])
	}
}

// Passkeys of other users, of closed and locked accounts, and of roles that have none.
func TestPasskeysAndAccounts(t *testing.T) {
	c := newClinic(t)
	user, other := c.people[authz.Nurse], c.people[authz.Provider]
	mine := c.enrolled(c.login(user.Email(), vigiltest.Password).want(200).text("access"))
	theirs := c.enrolled(c.login(other.Email(), vigiltest.Password).want(200).text("access"))
	theirs.signIn(c.step(user, "passkey")).want(401, "authentication_failed")
	token := c.login(c.people[authz.MA].Email(), vigiltest.Password).want(200).text("access")
	for _, path := range []string{mine.id, "0", "x", "999999"} {
		c.send(token, "DELETE", "/auth/passkeys/"+path+"/", object{}).want(404, "not_found")
		c.send(token, "PATCH", "/auth/passkeys/"+path+"/", object{"name": "Mine"}).want(404, "not_found")
	}
	if listed := c.send(token, "GET", "/auth/passkeys/", nil).results(); len(listed) != 0 {
		t.Errorf("shows %v", listed)
	}
	portal := c.login(c.people[authz.Patient].Email(), vigiltest.Password).want(200).text("access")
	c.registrationOptions(portal).want(403, "permission_denied")
	c.device().signIn().want(401, "authentication_failed") // no account's passkey

	mine.signIn().want(200) // a sign-in resets the count of failures
	for range 5 {
		mine.forge().want(401, "authentication_failed")
	}
	c.login(user.Email(), vigiltest.Password).want(423, "account_locked")
	mine.signIn().want(200) // a stranger's guesses do not keep the owner out

	c.request(authz.Admin, "POST", "/users/"+number(user)+"/deactivate/", nil).want(200)
	mine.signIn().want(401, "authentication_failed")
	c.request(authz.Admin, "POST", "/users/"+number(user)+"/activate/", nil).want(200)
	mine.signIn().want(200)
	c.request(authz.Admin, "PATCH", "/users/"+number(user)+"/", object{"role": "patient", "current_password": vigiltest.Password}).want(200)
	mine.signIn().want(401, "authentication_failed")
	c.login(user.Email(), vigiltest.Password).want(200) // without a passkey, no second step
}

// Registrations that are refused.
func TestPasskeyRegistrationRefuses(t *testing.T) {
	c := newClinic(t)
	user := c.people[authz.Admin]
	token := c.login(user.Email(), vigiltest.Password).want(200).text("access")
	other := c.login(c.people[authz.Nurse].Email(), vigiltest.Password).want(200).text("access")
	again := c.login(user.Email(), vigiltest.Password).want(200).text("access")
	d := c.device()
	c.registerWith(token, "Key", d.create(c.registrationOptions(other))).want(400, "invalid_passkey")
	c.registerWith(token, "Key", d.create(c.registrationOptions(again))).want(400, "invalid_passkey") // of another session
	made := d.create(c.registrationOptions(token))
	c.registerWith(token, "", made).wantFields("name")
	c.registerWith(token, strings.Repeat("x", 101), made).wantFields("name")
	c.send(token, "POST", "/auth/passkeys/", object{}).wantFields("name", "credential")
	c.send(token, "POST", "/auth/passkeys/", object{"name": "Key", "credential": "text"}).wantFields("credential")
	c.registerWith(token, "Key", made).want(201)
	c.registerWith(token, "Key", made).want(400, "invalid_passkey") // its challenge was used
	c.registerWith(token, "Key", d.create(c.registrationOptions(token))).want(400, "already_registered")
	for _, wrong := range []virtualwebauthn.RelyingParty{{ID: "evil.example", Origin: party.Origin}, {ID: party.ID, Origin: "https://evil.example"}} {
		elsewhere := c.device()
		elsewhere.at = wrong
		c.registerWith(token, "Key", elsewhere.create(c.registrationOptions(token))).want(400, "invalid_passkey")
	}
	slow := c.device().create(c.registrationOptions(token))
	c.now = c.now.Add(5 * time.Minute)
	c.registerWith(token, "Key", slow).want(400, "invalid_passkey")
	for range 9 {
		c.enrolled(token)
	}
	c.registrationOptions(token).want(400, "too_many_passkeys")
	if n := vigiltest.RowCounts(t, c.app)["passkeys"]; n != 10 {
		t.Errorf("%d passkeys", n)
	}
}

// A user with either second factor must use one, and an administrator's reset removes both.
func TestPasskeysBesideTOTP(t *testing.T) {
	const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
	c := newClinic(t)
	catcher, mailer := c.startMail()
	user := vigiltest.User(t, c.app, authz.Nurse, vigiltest.TwoFactor(secret))
	token := c.login(user.Email(), vigiltest.Password, "totp_code", codeAt(t, secret, c.now)).want(200).text("access")
	c.step(user, "totp")
	d := c.enrolled(token)
	session := d.signIn(c.step(user, "totp", "passkey")).want(200)
	session.wantAt(object{"user.is_2fa_enabled": true})
	c.send(token, "DELETE", "/auth/passkeys/"+d.id+"/", object{}).want(204)
	c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(200) // one factor is left
	d = c.enrolled(token)
	c.request(authz.Admin, "POST", "/users/"+number(user)+"/2fa/reset/", object{"current_password": vigiltest.Password}).want(200)
	d.signIn().want(401, "authentication_failed")
	c.request(authz.Admin, "POST", "/users/"+number(user)+"/unlock/", nil).want(200)
	c.login(user.Email(), vigiltest.Password).want(200)
	c.request(authz.Admin, "POST", "/users/"+number(user)+"/2fa/reset/", object{"current_password": vigiltest.Password}).want(400, "invalid_state")

	token = c.login(user.Email(), vigiltest.Password).want(200).text("access")
	c.enrolled(token)
	c.request(authz.Admin, "GET", "/users/"+number(user)+"/", nil).want(200).wantAt(object{"has_passkeys": true, "is_2fa_enabled": false})
	c.request(authz.Admin, "POST", "/users/"+number(user)+"/2fa/reset/", object{"current_password": vigiltest.Password}).want(200)
	c.login(user.Email(), vigiltest.Password).want(200)
	if mails := len(c.deliver(catcher, mailer)); mails != 8 {
		t.Errorf("%d mails, want three added, three removed, two second factors off", mails)
	}
}

// A sign count that decreases is reported to the owner and audited; the passkey still works.
func TestCopiedPasskey(t *testing.T) {
	c := newClinic(t)
	catcher, mailer := c.startMail()
	user := c.people[authz.Provider]
	d := c.enrolled(c.login(user.Email(), vigiltest.Password).want(200).text("access"))
	d.key.Counter = 7
	d.signIn().want(200)
	thief := *d
	thief.key.Counter = 3
	thief.signIn().want(401, "authentication_failed")
	d.signIn().want(200)
	if got := c.audited("auth.passkey"); got != "register used refused used" {
		t.Errorf("recorded %q", got)
	}
	if mails := c.deliver(catcher, mailer); len(mails) != 2 || mails[1].Subject != "A passkey was refused" {
		t.Errorf("mailed %d", len(mails))
	}
}
