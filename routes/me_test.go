package routes_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// The permissions reported to an app match the policy for each role: a listed action is allowed.
func TestPermissionsMatchPolicy(t *testing.T) {
	c := newClinic(t)
	words := map[authz.Reach]string{authz.NonCritical: "non_critical", authz.Own: "own", authz.All: "all"}
	for _, role := range authz.Roles {
		permissions := c.request(role, "GET", "/auth/me/", nil).want(200).object()["permissions"].(object)
		for _, action := range []authz.Action{
			authz.ReadTriage, authz.AcknowledgeAlerts, authz.ReadStaff, authz.ReadBilling, authz.ConnectEMR, authz.SetOnCall, authz.ChangeTimeEntries, authz.ReadPatients,
		} {
			want, may := words[authz.ReachOf(role, action)]
			if got, has := permissions[action.Code()]; has != may || may && got != want {
				t.Errorf("%s has %v for %q, want %q", role, got, action, want)
			}
		}
		if len(permissions) != len(authz.Rights(role)) {
			t.Errorf("%s has %d permissions listed, and %d", role, len(permissions), len(authz.Rights(role)))
		}
	}
	if got := authz.Rights(authz.MA)["acknowledge_alerts"]; got != "non_critical" {
		t.Errorf("a medical assistant acknowledges %q", got)
	}
}

// Units and shortcuts are stored per user and kept across sessions.
func TestDisplay(t *testing.T) {
	c := newClinic(t)
	c.request(authz.Nurse, "GET", "/auth/me/", nil).want(200).wantAt(object{
		"display.weight_unit": "kg", "display.temperature_unit": "C", "display.single_keys": true, "practice.time_zone": "America/New_York",
	})
	c.request(authz.Nurse, "PATCH", "/auth/me/", object{"weight_unit": "lb", "single_keys": false}).want(200).wantAt(object{
		"display.weight_unit": "lb", "display.temperature_unit": "C", "display.single_keys": false,
	})
	c.request(authz.Nurse, "PATCH", "/auth/me/", object{"temperature_unit": "F", "single_keys": true}).want(200)
	c.request(authz.Nurse, "GET", "/auth/me/", nil).want(200).wantAt(object{
		"display.weight_unit": "lb", "display.temperature_unit": "F", "display.single_keys": true,
	})
	c.request(authz.Provider, "GET", "/auth/me/", nil).want(200).wantAt(object{"display.weight_unit": "kg", "display.temperature_unit": "C"})
	for field, wrong := range map[string]any{"weight_unit": "stone", "temperature_unit": "K", "single_keys": "sometimes"} {
		c.request(authz.Nurse, "PATCH", "/auth/me/", object{field: wrong}).wantFields(field)
	}
	c.request(authz.Nurse, "PATCH", "/auth/me/", object{"weight_unit": nil}).wantFields("weight_unit")
}

// A user's draft key is the same each time, and differs from all others.
func TestDraftKey(t *testing.T) {
	c := newClinic(t)
	seen := map[string]authz.Role{}
	for _, role := range authz.Roles {
		key := c.request(role, "GET", "/auth/me/", nil).want(200).text("draft_key")
		if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != 32 {
			t.Errorf("the key of %s is %q (%v)", role, key, err)
		}
		if other, taken := seen[key]; taken {
			t.Errorf("%s and %s share a key", role, other)
		}
		seen[key] = role
		if again := c.login(c.people[role].Email(), vigiltest.Password).want(200).text("access"); c.send(again, "GET", "/auth/me/", nil).want(200).text("draft_key") != key {
			t.Errorf("%s has another key in another session", role)
		}
	}
}

// A nurse can search staff to assign tasks to; the list has no patients or deactivated accounts, and only name, address
// and role.
func TestStaff(t *testing.T) {
	c := newClinic(t)
	off := vigiltest.User(t, c.app, authz.Nurse, vigiltest.Inactive(), vigiltest.With("first_name", "Otto"), vigiltest.With("last_name", "Offline"))
	vigiltest.User(t, c.app, authz.Provider, vigiltest.With("first_name", "Amara"), vigiltest.With("last_name", "Osei"))
	for _, role := range []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA} {
		var roles []string
		for _, one := range c.request(role, "GET", "/users/staff/", nil).results() {
			roles = append(roles, one["role"].(string))
			if one["email"] == off.Email() {
				t.Errorf("%s is offered an account that is off", role)
			}
			if len(one) != 4 {
				t.Errorf("%s sees %v", role, one)
			}
		}
		if slices.Contains(roles, "patient") || !slices.Contains(roles, "ma") || !slices.Contains(roles, "data_monitor") {
			t.Errorf("%s is offered %v", role, roles)
		}
	}
	if found := c.request(authz.Nurse, "GET", "/users/staff/?search=osei%20ama&role=provider", nil).results(); len(found) != 1 || found[0]["name"] != "Amara Osei" {
		t.Errorf("Dr. Osei is found as %v", found)
	}
	c.request(authz.Nurse, "GET", "/users/staff/?search=offline", nil).want(200).wantAt(object{"count": 0.0})
	c.request(authz.Nurse, "GET", "/users/staff/?role=patient", nil).wantFields("role")
	c.request(authz.Nurse, "GET", "/users/", nil).want(403, "permission_denied")
	for _, role := range []authz.Role{authz.DataMonitor, authz.Patient} {
		c.request(role, "GET", "/users/staff/", nil).want(403, "permission_denied")
	}
}

// The practice's own words are shown only in the languages that have some.
func TestPortalAdvice(t *testing.T) {
	for want, advice := range map[string]map[string]string{
		"map[]": nil, "map[es:Llame al 518-555-0100.]": {"en": "", "es": "Llame al 518-555-0100."},
	} {
		c := newClinic(t, func(e *routes.Engines) { e.PortalAdvice = advice })
		if got := fmt.Sprint(c.request(authz.Patient, "GET", "/auth/me/", nil).want(200).at("practice.portal_advice")); got != want {
			t.Errorf("the portal's advice is %s, want %s", got, want)
		}
	}
}
