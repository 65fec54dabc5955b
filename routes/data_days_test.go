package routes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes"
)

// shortSupply enables the 2026 codes, among them the one for two to fifteen days.
func shortSupply(e *routes.Engines) { e.Billing.Enable2026Codes = true }

// The days of a running period are counted as billing counts them: the days still needed equal those in the entry's
// explanation.
func TestDataDays(t *testing.T) {
	c := newClinic(t, shortSupply) // January 15, 2026, 8:45 in New York
	id := c.enroll(object{"icd10_codes": []string{"I10"}, "time_zone": "America/New_York"})
	c.consent(id)
	c.storeDeviceDays(id, "D-1", c.now.AddDate(0, 0, -20), 14) // December 26 to January 8
	path := "/patients/" + id + "/data-days/"
	answer := c.request(authz.Nurse, "GET", path, nil).want(200)
	answer.wantAt(object{
		"patient_id": id, "time_zone": "America/New_York", "today": "2026-01-15", "first_day": "2025-12-26", "last_day": "2026-01-24", "billing_period": true,
		"days_needed": 16.0, "days_to_go": 2.0, "days_left": 10.0, "reached": "99445", "earlier": "2025-12-25", "later": nil,
	})
	if days := answer.at("days").([]any); len(days) != 14 || days[0] != "2025-12-26" || days[13] != "2026-01-08" {
		t.Errorf("the days are %v", days)
	}
	if reachable := answer.at("reachable").([]any); len(reachable) != 1 || reachable[0] != "99454" {
		t.Errorf("reachable codes: %v", reachable)
	}
	for _, code := range c.request(authz.Provider, "GET", "/billing/explain/"+id+"/?month=2026-01", nil).want(200).at("codes").([]any) {
		if x := code.(object); x["cpt_code"] == "99454" && (x["days"] != 14.0 || x["period_start"] != "2025-12-26") {
			t.Errorf("billing counts otherwise: %v", x)
		}
	}
	c.request(authz.Nurse, "GET", path+"?date=2026-01-24", nil).want(200).wantAt(object{"first_day": "2025-12-26"})
	c.request(authz.Nurse, "GET", path+"?date=2026-01-25", nil).want(200).wantAt(object{"first_day": "2026-01-25", "days_left": 0.0, "days_to_go": 16.0})
	// Before the first reading there is no period: the answer covers the month, and no day counts.
	c.request(authz.Nurse, "GET", path+"?date=2025-12-25", nil).want(200).wantAt(object{
		"first_day": "2025-12-01", "last_day": "2025-12-31", "billing_period": false, "reached": nil, "later": "2026-01-01",
	})
	c.request(authz.Nurse, "GET", path+"?date=2026-02-30", nil).wantFields("date")
	c.request(authz.Nurse, "GET", "/patients/"+unknownPatient+"/data-days/", nil).want(404)
	c.wantRoles("GET", path, nil, append(clinical[:5:5], authz.DataMonitor)...)
}

// The call list starts with the patients who can miss the fewest days, and has that number; a patient is behind if the
// current pace would not reach the required days.
func TestDaysShort(t *testing.T) {
	c := newClinic(t) // January 15, 2026, in New York, without 99445
	names := map[any]string{}
	worn := func(name string, days int, phone any) {
		id := c.enroll(object{"first_name": name, "icd10_codes": []string{"I10"}, "phone": phone})
		c.consent(id)
		c.storeDeviceDays(id, "D-"+name, c.now.AddDate(0, 0, -20), days) // from December 26, so ten days are left
		names[id] = name
	}
	worn("Steady", 14, "+12025550101")
	worn("Behind", 6, "+12025550102")
	worn("Lost", 5, "+12025550103")
	worn("There", 16, "+12025550104")
	const path = "/patients/data-days/"
	list := c.request(authz.Nurse, "GET", path, nil).want(200)
	list.wantAt(object{"count": 2.0, "next": nil, "previous": nil})
	for i, want := range []object{
		{"days": 6.0, "days_to_go": 10.0, "days_to_spare": 0.0, "behind": true, "phone": "+12025550102"},
		{"days": 14.0, "days_to_go": 2.0, "days_to_spare": 8.0, "behind": false, "phone": "+12025550101"},
	} {
		got := list.results()[i]
		if names[got["patient_id"]] != []string{"Behind", "Steady"}[i] || got["days_left"] != 10.0 || got["last_day"] != "2026-01-24" || got["days_needed"] != 16.0 {
			t.Errorf("%d: %v", i, got)
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%d: %s is %v, want %v", i, name, got[name], value)
			}
		}
	}
	for behind, want := range map[string]string{"true": "Behind", "false": "Steady"} {
		if found := c.request(authz.MA, "GET", path+"?behind="+behind, nil).results(); len(found) != 1 || names[found[0]["patient_id"]] != want {
			t.Errorf("behind=%s finds %v", behind, found)
		}
	}
	if phone := c.request(authz.DataMonitor, "GET", path, nil).results()[0]["phone"]; phone != nil {
		t.Errorf("billing receives the phone number %v", phone)
	}
	second := c.request(authz.Nurse, "GET", path+"?page_size=1&page=2", nil).want(200).at("results").([]any)
	if len(second) != 1 || names[second[0].(object)["patient_id"]] != "Steady" {
		t.Errorf("the second page has %v", second)
	}
	c.request(authz.Nurse, "GET", path+"?behind=perhaps", nil).wantFields("behind")
}

// Where 99445 is billed, two days are enough, unless the payer does not take it; patients with no day or one are first.
func TestDaysShortOfTheFirstCode(t *testing.T) {
	c := newClinic(t, shortSupply)
	sixteen := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Sixteen", "payer_id": "S16", "device_days": 16}).want(201).at("id")
	names := map[any]string{}
	for _, p := range []struct {
		name  string
		days  int
		payer any
	}{{"Six", 6, sixteen}, {"One", 1, nil}, {"Two", 2, nil}} {
		id := c.enroll(object{"first_name": p.name, "icd10_codes": []string{"I10"}, "insurance": object{"payer_id": p.payer, "member_id": "W1"}})
		c.consent(id)
		c.storeDeviceDays(id, "D-"+p.name, c.now.AddDate(0, 0, -20), p.days)
		names[id] = p.name
	}
	held := func(name string, since time.Time) {
		id := c.enroll(object{"first_name": name, "icd10_codes": []string{"I10"}})
		c.insert("device_assignments", dbx.Params{"device_id": "D-" + name, "patient": id, "assigned_at": collections.FormatInstant(since)})
		names[id] = name
	}
	held("Never", c.now.AddDate(0, 0, -9))
	held("Fresh", c.now)
	away := c.enroll(object{"icd10_codes": []string{"I10"}}) // no readings are expected
	c.storeDeviceDays(away, "D-away", c.now.AddDate(0, 0, -20), 1)
	c.request(authz.Nurse, "POST", "/patients/"+away+"/hold/", object{"reason": "hospital", "until": "2026-01-20"}).want(201)
	var got []string
	for _, row := range c.request(authz.Nurse, "GET", "/patients/data-days/", nil).want(200).results() {
		got = append(got, fmt.Sprint(names[row["patient_id"]], " ", row["days"], "/", row["days_needed"]))
	}
	if fmt.Sprint(got) != "[One 1/2 Never 0/2 Fresh 0/2 Six 6/16]" && fmt.Sprint(got) != "[One 1/2 Fresh 0/2 Never 0/2 Six 6/16]" {
		t.Errorf("short of days are %v", got)
	}
	for _, row := range c.request(authz.Nurse, "GET", "/patients/data-days/?behind=true", nil).want(200).results() {
		if names[row["patient_id"]] == "Fresh" {
			t.Error("a patient who got the device today is behind")
		} else if names[row["patient_id"]] == "Never" && (row["days_left"] != 30.0 || row["first_day"] != "2026-01-15" || row["days_to_spare"] != 28.0) {
			t.Errorf("a patient without any reading: %v", row)
		}
	}
	c.request(authz.DataMonitor, "GET", "/billing/near-billable/?unit=days", nil).want(200).wantAt(object{"count": 2.0}) // those with a period
}

// Patients who lack days are listed however many lack minutes, and paging does not cut the list short.
func TestNearBillableByUnit(t *testing.T) {
	c := newClinic(t)
	lacksDays := c.enroll(object{"icd10_codes": []string{"I10"}})
	c.consent(lacksDays)
	c.storeDeviceDays(lacksDays, "D-1", c.now.AddDate(0, 0, -20), 7)
	for i := range 51 {
		c.logCall(c.enroll(nil), c.now.Add(-time.Duration(i+1)*15*time.Minute).UTC().Format(time.RFC3339), 14)
	}
	const path = "/billing/near-billable/"
	for _, ordering := range []string{"missing", "-worth"} {
		found := c.request(authz.DataMonitor, "GET", path+"?unit=days&ordering="+ordering, nil).want(200)
		if list := found.results(); len(list) != 1 || list[0]["patient_id"] != lacksDays {
			t.Errorf("by %s: %v", ordering, list)
		}
		all := c.request(authz.DataMonitor, "GET", path+"?ordering="+ordering, nil).want(200)
		all.wantAt(object{"count": 52.0})
		rest := c.request(authz.DataMonitor, "GET", path+"?page=2&ordering="+ordering, nil).want(200)
		if first, second := len(all.at("results").([]any)), len(rest.at("results").([]any)); first != 50 || second != 2 {
			t.Errorf("by %s the pages have %d and %d", ordering, first, second)
		}
	}
	c.request(authz.DataMonitor, "GET", path+"?unit=hours", nil).wantFields("unit")
}

// Days with typed readings, and days without consent, have data but do not count; a period with too few days left cannot
// be reached.
func TestDataDaysThatDoNotCount(t *testing.T) {
	c := newClinic(t, shortSupply)
	id := c.enroll(object{"icd10_codes": []string{"I10"}})
	c.request(authz.MA, "POST", "/patients/"+id+"/consents/", object{"type": "rpm", "method": "written", "granted_at": "2025-12-30"}).want(201)
	c.storeDeviceDays(id, "D-1", c.now.AddDate(0, 0, -20), 6) // December 26 to 31
	c.insert("reading_days", dbx.Params{"patient": id, "day": "2026-01-02", "observation_type": "weight", "first_observation": unknownPatient, "readings": 2, "device_readings": 0})
	path := "/patients/" + id + "/data-days/"
	answer := c.request(authz.Nurse, "GET", path, nil).want(200)
	for name, want := range map[string]int{"days": 2, "days_without_consent": 4, "days_typed": 1} {
		if got := answer.at(name).([]any); len(got) != want {
			t.Errorf("%s are %v, want %d", name, got, want)
		}
	}
	answer.wantAt(object{"days_to_go": 14.0, "days_left": 10.0, "reached": "99445"})
	if reachable := answer.at("reachable").([]any); len(reachable) != 0 {
		t.Errorf("%v are listed as reachable", reachable)
	}
	// Today is the patient's day: in Auckland it is already the 16th.
	c.now = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	far := c.enroll(object{"time_zone": "Pacific/Auckland"})
	c.request(authz.Nurse, "GET", "/patients/"+far+"/data-days/", nil).want(200).wantAt(object{"today": "2026-01-16", "time_zone": "Pacific/Auckland", "first_day": "2026-01-01"})
}
