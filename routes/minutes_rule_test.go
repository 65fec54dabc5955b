package routes_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// Care management counts under CMS's reading only, and only in a month with live contact; the comparison changes nothing.
func TestMinutesRuleComparison(t *testing.T) {
	c := newClinic(t)
	care := func(patient, start string, minutes int) {
		t.Helper()
		c.request(authz.Nurse, "POST", "/time-entries/", object{
			"patient_id": patient, "category": "care_management", "started_at": start, "duration_seconds": minutes * 60, "notes": "Adjusted the plan",
		}).want(201)
	}
	talked, quiet := c.billablePatient(), c.billablePatient()
	c.logCall(talked, "2026-01-10T14:00:00Z", 25)
	care(talked, "2026-01-11T14:00:00Z", 40)
	care(quiet, "2026-01-12T14:00:00Z", 60)
	path := "/billing/minutes-rule/?month=2026-01"
	rules := c.request(authz.DataMonitor, "GET", path, nil).want(200).at("rules").([]any)
	want := []object{
		{"rule": "interactive", "in_force": true, "minutes": 25.0, "patients": 1.0, "expected": 47.87},
		{"rule": "care_management", "in_force": false, "minutes": 65.0, "patients": 1.0, "expected": 47.87 + 2*38.49},
	}
	units := [][]float64{{0, 1, 0}, {0, 1, 2}}
	for i, w := range want {
		got := rules[i].(object)
		wantMembers(t, "rule", got, w)
		for n, code := range got["codes"].([]any) {
			if code.(object)["units"] != units[i][n] {
				t.Errorf("%s: %v", w["rule"], code)
			}
		}
	}
	c.request(authz.Admin, "GET", "/billing/minutes-rule/?month=2020-12", nil).want(200).wantAt(object{"month": "2020-12", "decided": false})
	c.request(authz.Admin, "GET", "/billing/minutes-rule/?month=2026-13", nil).wantFields("month")
	c.request(authz.Provider, "GET", path, nil).want(403)
	if list := c.request(authz.Admin, "GET", "/billing/entries/", nil).results(); len(list) != 0 {
		t.Errorf("the comparison stored %v", list)
	}
}
