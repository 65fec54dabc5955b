package routes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// Some time after the sign-in, adding or removing a second factor requires the password; before that, the token is
// enough.
func TestFreshSignIn(t *testing.T) {
	c := newClinic(t)
	user := c.people[authz.Nurse]
	session := c.login(user.Email(), vigiltest.Password).want(200)
	d := c.enrolled(session.text("access"))
	access2 := d.signIn().want(200).text("access") // a passkey alone is a sign-in, too
	for _, token := range []string{session.text("access"), access2} {
		c.send(token, "POST", "/auth/2fa/setup/", nil).want(200)
	}
	c.now = c.now.Add(10 * time.Minute)
	token := session.text("access")
	secret := c.send(token, "POST", "/auth/2fa/setup/", nil).want(200).text("secret")
	offered := c.registrationOptions(token).want(200)
	c.now = c.now.Add(time.Second)
	doors := map[string][2]string{
		"set-up": {"POST", "/auth/2fa/setup/"}, "options": {"POST", "/auth/passkeys/registration-options/"},
		"registration": {"POST", "/auth/passkeys/"}, "removal": {"DELETE", "/auth/passkeys/" + d.id + "/"},
	}
	for _, refreshed := range []bool{false, true} {
		if refreshed { // a newer token of the same sign-in
			token = c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(200).text("access")
		}
		for _, door := range doors {
			for _, body := range []object{{}, {"password": nil}, {"password": ""}} {
				c.send(token, door[0], door[1], body).want(403, "reauthentication_required")
			}
		}
	}
	c.send(token, "POST", "/auth/2fa/setup/", object{"password": 7}).wantFields("password")
	c.registerWith(token, "Key", c.device().create(offered)).want(201) // a registration begun in time may be finished
	c.send(token, "POST", "/auth/2fa/verify/", object{"totp_code": codeAt(t, secret, c.now)}).want(200)
	c.send(token, "POST", "/auth/2fa/setup/", object{"password": vigiltest.Password}).want(400, "already_enabled")
	c.send(token, "POST", "/auth/passkeys/registration-options/", object{"password": vigiltest.Password}).want(200)
	c.send(token, "DELETE", "/auth/passkeys/"+d.id+"/", object{"password": vigiltest.Password}).want(204)
}

// Wrong passwords lock the account as they do at the sign-in; while it is locked, the right password fails too.
func TestFreshSignInCountsWrongPasswords(t *testing.T) {
	c := newClinic(t)
	user := c.people[authz.MA]
	token := c.login(user.Email(), vigiltest.Password).want(200).text("access")
	c.now = c.now.Add(11 * time.Minute)
	try := func(password string) reply {
		return c.send(token, "POST", "/auth/2fa/setup/", object{"password": password})
	}
	for i := range 5 {
		path := []string{"/auth/2fa/setup/", "/auth/passkeys/registration-options/"}[i%2]
		c.send(token, "POST", path, object{"password": strings.Repeat("wrong", i+1)}).want(401, "authentication_failed")
	}
	try(vigiltest.Password).want(423, "account_locked")
	c.login(user.Email(), vigiltest.Password).want(423, "account_locked")
	c.request(authz.Admin, "POST", "/users/"+number(user)+"/unlock/", nil).want(200)
	try(vigiltest.Password).want(200)
	for range 2 {
		try("wrong").want(401, "authentication_failed")
	}
	if got := c.failedSignIns(); got != 2+2 { // of the sign-in and of the reauthentication
		t.Errorf("%d failures counted", got)
	}
}

// A token without a session, and one of an ended session, do not count as a fresh sign-in.
func TestFreshSignInNeedsASession(t *testing.T) {
	c := newClinic(t)
	user := c.people[authz.Provider]
	session := c.login(user.Email(), vigiltest.Password).want(200)
	c.send(session.text("access"), "POST", "/auth/logout/", object{"refresh": session.text("refresh")}).want(204)
	c.send(session.text("access"), "POST", "/auth/2fa/setup/", nil).want(403, "reauthentication_required")
	c.request(authz.Provider, "POST", "/auth/2fa/setup/", nil).want(403, "reauthentication_required")
	c.request(authz.Provider, "POST", "/auth/2fa/setup/", object{"password": vigiltest.Password}).want(200)
}

// Passkeys require a host name: a service with only an IP address reports this.
func TestPasskeysNeedAHostName(t *testing.T) {
	for _, at := range []string{"", "http://127.0.0.1:8090", "https://[2001:db8::1]"} {
		var authority *auth.Engine
		c := newClinic(t, func(e *routes.Engines) {
			authority = auth.New(vigiltest.Sealer(), auth.Options{RefreshFamilyLife: time.Hour, FreshSignIn: time.Hour, SignInURL: at})
			e.Auth, e.AccessTokens = authority, authority
		})
		token := c.login(c.people[authz.Admin].Email(), vigiltest.Password).want(200).text("access")
		c.registrationOptions(token).want(400, "passkeys_unavailable")
		c.send(token, "POST", "/auth/passkeys/", object{}).want(400, "passkeys_unavailable")
		c.send("", "POST", "/auth/passkeys/authentication-options/", object{}).want(400, "passkeys_unavailable")
		c.send("", "POST", "/auth/passkeys/authenticate/", object{}).want(400, "passkeys_unavailable")
		if listed := c.send(token, "GET", "/auth/passkeys/", nil).results(); len(listed) != 0 {
			t.Errorf("lists %v", listed)
		}
	}
	c := newClinic(t, func(e *routes.Engines) {
		authority := auth.New(vigiltest.Sealer(), auth.Options{
			RefreshFamilyLife: time.Hour, FreshSignIn: time.Hour, SignInURL: "http://localhost:8090", RequireTwoFactor: auth.TwoFactorPolicy{Roles: []authz.Role{authz.Admin}},
		})
		e.Auth, e.AccessTokens = authority, authority
	})
	token := c.login(c.people[authz.Admin].Email(), vigiltest.Password).want(200).text("access")
	c.send(token, "GET", "/users/", nil).want(403, "two_factor_setup_required")
	d := c.device()
	d.at.ID, d.at.Origin = "localhost", "http://localhost:8090"
	made := c.registerWith(token, "Key", d.create(c.registrationOptions(token))).want(201)
	c.send(token, "GET", "/users/", nil).want(200) // a passkey is a second factor
	c.send(token, "DELETE", "/auth/passkeys/"+made.number()+"/", object{}).want(204)
	c.send(token, "GET", "/users/", nil).want(403, "two_factor_setup_required")
}
