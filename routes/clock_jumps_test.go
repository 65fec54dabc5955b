package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A clock jump locks no user out beyond a new sign-in, keeps no expired token alive, and leaves the audit trail intact.
func TestClockJumps(t *testing.T) {
	c := newClinic(t)
	start, email := c.now, c.people[authz.Admin].Email()
	session := c.login(email, vigiltest.Password).want(200)
	profile := func(token string) reply { return c.send(token, "GET", "/auth/profile/", nil) }
	profile(session.text("access")).want(200)

	c.now = start.Add(20 * time.Hour) // a suspended host, or a replaced battery
	profile(session.text("access")).want(401, "token_expired")
	renewed := c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(200)
	profile(renewed.text("access")).want(200)
	patient := c.send(renewed.text("access"), "POST", "/patients/", patientBody(nil)).want(201).text("id")

	c.now = start.AddDate(0, 0, -2) // before everything stored
	back := c.login(email, vigiltest.Password).want(200).text("access")
	profile(back).want(200)
	c.send(back, "PUT", "/patients/"+patient+"/", patientBody(object{"first_name": "Augusta"})).want(200)
	c.send(back, "GET", "/patients/"+patient+"/", nil).want(200).wantAt(object{"first_name": "Augusta"})

	c.now = start.AddDate(0, 0, 30) // past the end of every session
	profile(renewed.text("access")).want(401, "token_expired")
	profile(back).want(401, "token_expired")
	c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(401)
	c.now = start.Add(time.Minute)
	profile(c.login(email, vigiltest.Password).want(200).text("access")).want(200)
	if result, err := audit.Verify(c.app, nil); err != nil || !result.Valid {
		t.Errorf("the audit trail: %+v %v", result, err)
	}
}
