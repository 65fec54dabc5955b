package routes_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/routes"
)

// shortSupply lets two to fifteen days have a code of their own.
func shortSupply(e *routes.Engines) { e.Billing.Enable2026Codes = true }

// The days of a running period, counted as billing counts them: what it says to go is what the explanation of the bill says.
func TestDataDays(t *testing.T) {
	c := newClinic(t, shortSupply) // January 15, 2026, 8:45 in New York
	id := c.enrol(object{"icd10_codes": []string{"I10"}, "time_zone": "America/New_York"})
	c.consent(id)
	c.wear(id, "D-1", c.now.AddDate(0, 0, -20), 14) // December 26 to January 8
	path := "/patients/" + id + "/data-days/"
	answer := c.ask(access.Nurse, "GET", path, nil).want(200)
	answer.wantAt(object{
		"patient_id": id, "time_zone": "America/New_York", "today": "2026-01-15", "first_day": "2025-12-26", "last_day": "2026-01-24", "billing_period": true,
		"days_needed": 16.0, "days_to_go": 2.0, "days_left": 10.0, "reached": "99445", "earlier": "2025-12-25", "later": nil,
	})
	if days := answer.at("days").([]any); len(days) != 14 || days[0] != "2025-12-26" || days[13] != "2026-01-08" {
		t.Errorf("the days are %v", days)
	}
	if reachable := answer.at("reachable").([]any); len(reachable) != 1 || reachable[0] != "99454" {
		t.Errorf("what can be reached is %v", reachable)
	}
	for _, code := range c.ask(access.Provider, "GET", "/billing/explain/"+id+"/?month=2026-01", nil).want(200).at("codes").([]any) {
		if x := code.(object); x["cpt_code"] == "99454" && (x["days"] != 14.0 || x["period_start"] != "2025-12-26") {
			t.Errorf("billing counts otherwise: %v", x)
		}
	}
	c.ask(access.Nurse, "GET", path+"?date=2026-01-24", nil).want(200).wantAt(object{"first_day": "2025-12-26"})
	c.ask(access.Nurse, "GET", path+"?date=2026-01-25", nil).want(200).wantAt(object{"first_day": "2026-01-25", "days_left": 0.0, "days_to_go": 16.0})
	// Before the first reading there is no period: the month, and nothing counts.
	c.ask(access.Nurse, "GET", path+"?date=2025-12-25", nil).want(200).wantAt(object{
		"first_day": "2025-12-01", "last_day": "2025-12-31", "billing_period": false, "reached": nil, "later": "2026-01-01",
	})
	c.ask(access.Nurse, "GET", path+"?date=2026-02-30", nil).wantFields("date")
	c.ask(access.Nurse, "GET", "/patients/"+nobody+"/data-days/", nil).want(404)
	c.wantRoles("GET", path, nil, append(clinical[:5:5], access.DataMonitor)...)
}

// What somebody typed, and what came without consent, has data and does not count; a period with too few days left is out of reach.
func TestDataDaysThatDoNotCount(t *testing.T) {
	c := newClinic(t, shortSupply)
	id := c.enrol(object{"icd10_codes": []string{"I10"}})
	c.ask(access.MA, "POST", "/patients/"+id+"/consents/", object{"type": "rpm", "method": "written", "granted_at": "2025-12-30"}).want(201)
	c.wear(id, "D-1", c.now.AddDate(0, 0, -20), 6) // December 26 to 31
	c.insert("reading_days", dbx.Params{"patient": id, "day": "2026-01-02", "observation_type": "weight", "first_observation": nobody, "readings": 2, "device_readings": 0})
	path := "/patients/" + id + "/data-days/"
	answer := c.ask(access.Nurse, "GET", path, nil).want(200)
	for name, want := range map[string]int{"days": 2, "days_without_consent": 4, "days_typed": 1} {
		if got := answer.at(name).([]any); len(got) != want {
			t.Errorf("%s are %v, want %d", name, got, want)
		}
	}
	answer.wantAt(object{"days_to_go": 14.0, "days_left": 10.0, "reached": "99445"})
	if reachable := answer.at("reachable").([]any); len(reachable) != 0 {
		t.Errorf("%v are said to be within reach", reachable)
	}
	// Today is the patient's: in Auckland it is the 16th already.
	c.now = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	far := c.enrol(object{"time_zone": "Pacific/Auckland"})
	c.ask(access.Nurse, "GET", "/patients/"+far+"/data-days/", nil).want(200).wantAt(object{"today": "2026-01-16", "time_zone": "Pacific/Auckland", "first_day": "2026-01-01"})
}
