package routes_test

import (
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

func TestSessions(t *testing.T) {
	c := newClinic(t)
	user, other := c.people[authz.Nurse], c.people[authz.Provider]
	first := c.login(user.Email(), vigiltest.Password).want(200)
	c.now = c.now.Add(time.Minute)
	second := c.login(user.Email(), vigiltest.Password).want(200)
	stranger := c.login(other.Email(), vigiltest.Password).want(200)
	token := second.text("access")

	open := c.send(token, "GET", "/auth/sessions/", nil).want(200).results()
	if len(open) != 2 || open[0]["current"] != true || open[1]["current"] != false || open[0]["started_at"] == open[1]["started_at"] {
		t.Fatalf("sessions: %v", open)
	}
	old := open[1]["id"].(string)
	c.send(stranger.text("access"), "DELETE", "/auth/sessions/"+old+"/", nil).want(404)
	c.send(first.text("access"), "GET", "/auth/profile/", nil).want(200)
	c.send(token, "DELETE", "/auth/sessions/"+old+"/", nil).want(204)
	c.send(token, "DELETE", "/auth/sessions/"+old+"/", nil).want(404)
	c.send(first.text("access"), "GET", "/auth/profile/", nil).want(401, "token_revoked")
	c.send("", "POST", "/auth/token/refresh/", object{"refresh": first.text("refresh")}).want(401, "token_revoked")
	c.send(token, "GET", "/auth/profile/", nil).want(200)

	// The session follows its refreshes, and a late request needs the password.
	renewed := c.send("", "POST", "/auth/token/refresh/", object{"refresh": second.text("refresh")}).want(200)
	third := c.login(user.Email(), vigiltest.Password).want(200)
	if open = c.send(renewed.text("access"), "GET", "/auth/sessions/", nil).want(200).results(); len(open) != 2 {
		t.Fatalf("after a refresh: %v", open)
	}
	late := ""
	for _, session := range open {
		if session["current"] == false {
			late = session["id"].(string)
		}
	}
	c.now = c.now.Add(11 * time.Minute)
	c.send(renewed.text("access"), "DELETE", "/auth/sessions/"+late+"/", nil).want(403, "reauthentication_required")
	c.send(renewed.text("access"), "DELETE", "/auth/sessions/"+late+"/", object{"password": "wrong"}).want(401, "authentication_failed")
	c.send(third.text("access"), "GET", "/auth/profile/", nil).want(200)
	c.send(renewed.text("access"), "DELETE", "/auth/sessions/"+late+"/", object{"password": vigiltest.Password}).want(204)
	c.send(third.text("access"), "GET", "/auth/profile/", nil).want(401, "token_revoked")
	c.send(renewed.text("access"), "DELETE", "/auth/sessions/not-a-session/", nil).want(404)

	c.send(renewed.text("access"), "POST", "/auth/logout-all/", nil).want(403, "reauthentication_required")
	c.send(renewed.text("access"), "POST", "/auth/logout-all/", object{"password": "wrong"}).want(401, "authentication_failed")
	c.send(renewed.text("access"), "GET", "/auth/profile/", nil).want(200)
	c.send(renewed.text("access"), "POST", "/auth/logout-all/", object{"password": vigiltest.Password}).want(204)
	c.send(renewed.text("access"), "GET", "/auth/profile/", nil).want(401)
}

// A copied refresh token that is used ends the whole session: no access token of it works, old or new; other sessions stay.
func TestReusedTokenEndsAccessTokens(t *testing.T) {
	for name, prepare := range map[string]func(c *clinic, current reply){
		"alone":                  func(*clinic, reply) {},
		"after the user used it": func(c *clinic, current reply) { c.send(current.text("access"), "GET", "/auth/profile/", nil).want(200) },
		"after a sign-out": func(c *clinic, current reply) {
			c.send(current.text("access"), "POST", "/auth/logout/", object{"refresh": current.text("refresh")}).want(204)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClinic(t)
			user := c.people[authz.Nurse]
			other := c.login(user.Email(), vigiltest.Password).want(200)
			first := c.login(user.Email(), vigiltest.Password).want(200)
			refresh := func(of reply) reply {
				c.now = c.now.Add(time.Minute)
				return c.send("", "POST", "/auth/token/refresh/", object{"refresh": of.text("refresh")})
			}
			thiefs := refresh(first).want(200)
			again := refresh(thiefs).want(200)
			prepare(c, again)
			refresh(first).want(401, "token_reused")
			for _, session := range []reply{first, thiefs, again} {
				c.send(session.text("access"), "GET", "/patients/", nil).want(401, "token_revoked")
				c.send(session.text("access"), "GET", "/auth/profile/", nil).want(401, "token_revoked")
			}
			refresh(again).want(401, "token_revoked")
			c.send(other.text("access"), "GET", "/patients/", nil).want(200)
			refresh(other).want(200)
		})
	}
}

func TestStaffHaveTimeForASecondFactor(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) {
		authority := auth.New(vigiltest.Sealer(), auth.Options{RefreshFamilyLife: 30 * 24 * time.Hour, FreshSignIn: time.Hour, RequireTwoFactor: auth.TwoFactorPolicy{
			Roles: []authz.Role{authz.Nurse, authz.Admin}, Grace: 7 * 24 * time.Hour, Since: vigiltest.Clock,
		}})
		e.Auth, e.AccessTokens = authority, authority
	})
	c.now = vigiltest.Clock
	nurse := c.people[authz.Nurse]
	signIn := func(user *collections.User) reply { return c.login(user.Email(), vigiltest.Password).want(200) }
	due := vigiltest.Clock.Add(7 * 24 * time.Hour).Format("2006-01-02T15:04:05Z")
	begun := signIn(nurse)
	if got := begun.text("two_factor_due_at"); got != due {
		t.Errorf("the sign-in says %q, want %q", got, due)
	}
	if got := c.send(begun.text("access"), "GET", "/auth/profile/", nil).want(200).text("two_factor_due_at"); got != due {
		t.Errorf("the profile says %q, want %q", got, due)
	}
	if _, said := signIn(c.people[authz.Provider]).object()["two_factor_due_at"]; said {
		t.Error("a provider is told")
	}
	c.now = c.now.Add(7*24*time.Hour - time.Second)
	c.send(signIn(nurse).text("access"), "GET", "/alerts/", nil).want(200)
	c.now = c.now.Add(time.Second)
	token := signIn(nurse).text("access")
	c.send(token, "GET", "/alerts/", nil).want(403, "two_factor_setup_required")
	c.send(token, "GET", "/auth/sessions/", nil).want(200)
	setup := c.send(token, "POST", "/auth/2fa/setup/", nil).want(200)
	code, err := totp.GenerateCode(setup.text("secret"), c.now)
	if err != nil {
		t.Fatal(err)
	}
	c.send(token, "POST", "/auth/2fa/verify/", object{"totp_code": code}).want(200)
	c.send(token, "GET", "/alerts/", nil).want(200)

	// The code that turned it on is used up (RFC 6238, 5.2).
	c.login(nurse.Email(), vigiltest.Password, "totp_code", code).want(401, "authentication_failed")
	c.now = c.now.Add(30 * time.Second)
	if code, err = totp.GenerateCode(setup.text("secret"), c.now); err != nil {
		t.Fatal(err)
	}
	if _, said := c.login(nurse.Email(), vigiltest.Password, "totp_code", code).want(200).object()["two_factor_due_at"]; said {
		t.Error("a user with a second factor is told")
	}
}
