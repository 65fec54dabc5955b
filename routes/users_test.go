package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestListUsers(t *testing.T) {
	c := newClinic(t)
	named := func(role authz.Role, first, last string, more ...vigiltest.UserOption) *collections.User {
		return vigiltest.User(t, c.app, role, append(more, vigiltest.With("first_name", first), vigiltest.With("last_name", last))...)
	}
	zoe, ada := named(authz.Nurse, "Zoe", "Adams"), named(authz.Nurse, "Ada", "Zimmer", vigiltest.Inactive())
	for range 5 {
		c.login(zoe.Email(), "wrong")
	}
	list := func(query string) (emails string) {
		for _, user := range c.request(authz.ClinicalManager, "GET", "/users/"+query, nil).results() {
			emails += strings.SplitN(user["email"].(string), "@", 2)[0] + " "
		}
		return emails
	}
	a, z := strings.SplitN(ada.Email(), "@", 2)[0], strings.SplitN(zoe.Email(), "@", 2)[0]
	for query, want := range map[string]string{
		"?search=zoe": z + " ", "?search=zimmer%20ADA": a + " ", "?search=nurse": z + " nurse4 " + a + " ", "?search=nobody": "",
		"?role=nurse&is_active=true": z + " nurse4 ", "?is_active=false": a + " ",
		"?role=nurse&ordering=-last_name":                  a + " nurse4 " + z + " ",
		"?role=nurse&ordering=-created_at":                 "nurse4 " + z + " " + a + " ",
		"?role=nurse&ordering=-email&search=vigil.test%20": a + " " + z + " nurse4 ",
	} {
		if got := list(query); got != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
	locked := c.request(authz.Admin, "GET", "/users/"+number(zoe)+"/", nil).want(200)
	if locked.text("locked_until") == "" || locked.object()["patient_id"] != nil {
		t.Errorf("a locked user: %s", locked.body)
	}
	c.request(authz.Admin, "GET", "/users/?role=boss&ordering=phone&is_active=maybe", nil).wantFields("role", "ordering", "is_active")
	c.request(authz.Admin, "GET", "/users/?page=9", nil).want(404, "not_found")
	if page := c.request(authz.Admin, "GET", "/users/?page=2&page_size=4", nil).want(200).object(); len(page["results"].([]any)) != 4 || page["count"] != 9.0 {
		t.Errorf("page 2 holds %v", page)
	}
	for _, id := range []string{"0", "99", "01", "-1", "x", "9999999999999999999", "999999999999999999"} {
		c.request(authz.Admin, "GET", "/users/"+id+"/", nil).want(404, "not_found")
	}
}

func TestUpdateUser(t *testing.T) {
	c := newClinic(t)
	nurse := c.people[authz.Nurse]
	path := "/users/" + number(nurse) + "/"
	session := c.login(nurse.Email(), vigiltest.Password).want(200)
	patient := c.enroll(nil)
	c.request(authz.Admin, "PATCH", path, object{"first_name": "Florence", "npi": "1234567893", "phone": "312 555 0100", "time_zone": "America/Denver"}).want(200).
		wantAt(object{"first_name": "Florence", "last_name": "Person", "npi": "1234567893", "phone": "312 555 0100", "time_zone": "America/Denver", "role": "nurse"})
	c.request(authz.Admin, "PATCH", path, object{"npi": nil, "phone": nil}).want(200).wantAt(object{"npi": nil, "phone": nil, "time_zone": "America/Denver"})
	c.request(authz.Admin, "PATCH", path, object{}).want(200)
	c.request(authz.Admin, "PATCH", path, object{"first_name": nil, "last_name": "", "role": "boss", "npi": "1234567890", "phone": "x", "time_zone": "x", "patient_id": 7}).
		wantFields("first_name", "last_name", "role", "npi", "phone", "time_zone", "patient_id")
	c.request(authz.Admin, "PATCH", path, object{"patient_id": patient}).wantFields("patient_id") // a nurse cannot be a portal user

	gone := c.enroll(nil)
	c.request(authz.Admin, "DELETE", "/patients/"+gone+"/", nil).want(204)
	for _, missing := range []string{gone, "00000000-0000-4000-8000-000000000000"} {
		c.request(authz.Admin, "PATCH", path, object{"role": "patient", "patient_id": missing, "current_password": vigiltest.Password}).want(404, "not_found")
	}

	token := session.text("access")
	c.send(token, "GET", "/alerts/", nil).want(200)
	c.request(authz.Admin, "PATCH", path, object{"role": "patient", "patient_id": patient, "current_password": vigiltest.Password}).want(200).wantAt(object{"role": "patient", "patient_id": patient})
	c.send(token, "GET", "/alerts/", nil).want(403, "permission_denied") // from the next request on, with the same token
	c.send(token, "GET", "/patients/"+patient+"/", nil).want(200)
	c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(401, "token_revoked")
	c.request(authz.Admin, "PATCH", path, object{"role": "nurse", "current_password": vigiltest.Password}).want(200).wantAt(object{"patient_id": nil})

	entries, _, err := audit.List(c.app, audit.Filter{ResourceType: audit.ResourceUser, ResourceID: number(nurse)}, 0, 20)
	if err != nil {
		t.Fatal(err)
	}
	var recorded []string
	for _, e := range entries {
		recorded = append(recorded, e.Event+fmt.Sprint(e.Fields()))
	}
	want := "[user.role_change[role] user.update[patient] user.role_change[role] user.update[patient] user.update[npi phone] " +
		"user.update[first_name npi phone time_zone] auth.login[]]"
	if fmt.Sprint(recorded) != want {
		t.Errorf("recorded %v", recorded)
	}
}

func TestOwnAccount(t *testing.T) {
	c := newClinic(t)
	c.request(authz.Patient, "PATCH", "/users/me/", object{"time_zone": "Europe/Paris", "phone": "555 123 4567", "role": "admin", "first_name": "Mallory"}).want(200).
		wantAt(object{"time_zone": "Europe/Paris", "phone": "555 123 4567", "role": "patient", "first_name": "Test"})
	c.request(authz.Patient, "GET", "/users/me/", nil).want(200).wantAt(object{"time_zone": "Europe/Paris", "email": c.people[authz.Patient].Email()})
}

func TestDeactivation(t *testing.T) {
	c := newClinic(t)
	nurse := c.people[authz.Nurse]
	path := "/users/" + number(nurse) + "/"
	session := c.login(nurse.Email(), vigiltest.Password).want(200)
	c.request(authz.Admin, "POST", path+"activate/", nil).want(400, "invalid_state")
	c.request(authz.Admin, "POST", path+"deactivate/", nil).want(200).wantAt(object{"is_active": false})
	c.request(authz.Admin, "POST", path+"deactivate/", nil).want(400, "invalid_state")
	c.send(session.text("access"), "GET", "/auth/profile/", nil).want(401, "token_invalid")
	c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(401, "token_revoked")
	c.login(nurse.Email(), vigiltest.Password).want(401, "authentication_failed")
	c.request(authz.Admin, "POST", path+"password-reset/", nil).want(400, "invalid_state")
	c.request(authz.Admin, "POST", path+"activate/", nil).want(200).wantAt(object{"is_active": true})
	c.send(session.text("access"), "GET", "/auth/profile/", nil).want(401, "token_invalid")
	c.login(nurse.Email(), vigiltest.Password).want(200)
	c.request(authz.Admin, "POST", "/users/4711/deactivate/", nil).want(404, "not_found")
}

func TestLastAdministratorStays(t *testing.T) {
	c := newClinic(t)
	me := c.people[authz.Admin]
	other := vigiltest.User(t, c.app, authz.Admin)
	mine, others := "/users/"+number(me)+"/", "/users/"+number(other)+"/"
	c.request(authz.Admin, "POST", mine+"deactivate/", nil).want(400, "invalid_state")
	c.request(authz.Admin, "PATCH", mine, object{"role": "nurse", "current_password": vigiltest.Password}).want(400, "invalid_state")
	c.request(authz.Admin, "PATCH", mine, object{"role": "admin", "first_name": "Still"}).want(200)
	c.request(authz.Admin, "POST", others+"deactivate/", nil).want(200)
	c.request(authz.Admin, "PATCH", others, object{"role": "nurse", "current_password": vigiltest.Password}).want(200)
	if n := vigiltest.RowCounts(t, c.app)["users"]; n != 8 {
		t.Errorf("%d users", n)
	}
}

func TestAdministratorsHelp(t *testing.T) {
	c := newClinic(t)
	catcher, mailer := c.startMail()
	const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
	user := vigiltest.User(t, c.app, authz.Provider, vigiltest.TwoFactor(secret))
	path := "/users/" + number(user) + "/"
	session := c.login(user.Email(), vigiltest.Password, "totp_code", codeAt(t, secret, c.now)).want(200)

	c.request(authz.Admin, "POST", path+"logout/", nil).want(200)
	c.send(session.text("access"), "GET", "/auth/profile/", nil).want(401, "token_invalid")
	c.send("", "POST", "/auth/token/refresh/", object{"refresh": session.text("refresh")}).want(401, "token_revoked")

	c.request(authz.Admin, "POST", path+"2fa/reset/", object{"current_password": vigiltest.Password}).want(200)
	c.request(authz.Admin, "POST", path+"2fa/reset/", object{"current_password": vigiltest.Password}).want(400, "invalid_state")
	c.login(user.Email(), vigiltest.Password).want(200)

	c.request(authz.Admin, "POST", path+"password-reset/", nil).want(200)
	mails := c.deliver(catcher, mailer)
	if len(mails) != 2 || mails[0].Subject != "Two-factor authentication was turned off" || linkToken(t, mails[1]) == "" {
		t.Errorf("mailed %d", len(mails))
	}
	c.now = c.now.Add(time.Hour)
	for range 6 {
		c.login(user.Email(), "wrong")
	}
	c.request(authz.Admin, "POST", path+"unlock/", nil).want(200)
	c.login(user.Email(), vigiltest.Password).want(200)
}
