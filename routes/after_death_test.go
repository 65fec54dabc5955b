package routes_test

import (
	"fmt"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// logReview records interpretation by the provider.
func (c *clinic) logReview(patient, start string, minutes int) {
	c.t.Helper()
	c.request(authz.Provider, "POST", "/time-entries/", object{
		"patient_id": patient, "category": "interpretation", "activity": "other", "started_at": start, "duration_seconds": minutes * 60, "notes": "Read",
	}).want(201)
}

// Minutes after a death or the end of monitoring support no code, also of an entry made by hand with an earlier service date.
func TestMinutesAfterDeath(t *testing.T) {
	type call struct {
		start   string
		minutes int
	}
	before, after := call{"2026-01-07T15:00:00Z", 10}, call{"2026-01-09T15:00:00Z", 12}
	for name, test := range map[string]struct {
		code    string
		calls   []call
		archive object
		day     string
		minutes int
		want    string // "" for a review that succeeds
	}{
		"some after the death":    {"99457", []call{before, after}, object{"deceased_at": "2026-01-08"}, "2026-01-08", 20, "minutes_below_minimum"},
		"all after the death":     {"99457", []call{{after.start, 25}}, object{"deceased_at": "2026-01-08"}, "2026-01-08", 20, "minutes_below_minimum"},
		"all after the end":       {"99457", []call{{after.start, 25}}, object{"effective_at": "2026-01-08"}, "2026-01-07", 20, "minutes_below_minimum"},
		"between death and end":   {"99457", []call{{after.start, 25}}, object{"deceased_at": "2026-01-08", "effective_at": "2026-01-11"}, "2026-01-08", 20, "minutes_below_minimum"},
		"on the day of death":     {"99457", []call{before, after}, object{"deceased_at": "2026-01-09"}, "2026-01-09", 20, ""},
		"ten minutes after":       {"99470", []call{{before.start, 5}, {after.start, 7}}, object{"deceased_at": "2026-01-08"}, "2026-01-08", 10, "minutes_below_minimum"},
		"ten minutes before":      {"99470", []call{before, after}, object{"deceased_at": "2026-01-08"}, "2026-01-08", 10, ""},
		"a further unit after":    {"99458", []call{{before.start, 22}, {after.start, 20}}, object{"deceased_at": "2026-01-08"}, "2026-01-08", 20, "minutes_below_minimum"},
		"a further unit before":   {"99458", []call{{before.start, 42}, {after.start, 20}}, object{"deceased_at": "2026-01-08"}, "2026-01-08", 20, ""},
		"interpreted after":       {"99091", []call{{after.start, 35}}, object{"deceased_at": "2026-01-08"}, "2026-01-08", 30, "minutes_below_minimum"},
		"interpreted before":      {"99091", []call{{before.start, 35}}, object{"deceased_at": "2026-01-08"}, "2026-01-08", 30, ""},
		"interpreted in part":     {"99091", []call{{before.start, 20}, {after.start, 15}}, object{"effective_at": "2026-01-08"}, "2026-01-08", 30, "minutes_below_minimum"},
		"archived after the call": {"99457", []call{before, after}, object{}, "2026-01-09", 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClinic(t, shortSupply)
			patient := c.billablePatient()
			for _, x := range test.calls {
				if test.code == "99091" {
					c.logReview(patient, x.start, x.minutes)
				} else {
					c.logCall(patient, x.start, x.minutes)
				}
			}
			if test.code == "99458" {
				c.move(c.manualEntry(patient, "99457", "2026-01-07", 20), "review", nil).want(200)
			}
			test.archive["reason"] = "Ended"
			c.request(authz.ClinicalManager, "POST", "/patients/"+patient+"/archive/", test.archive).want(200)
			got := c.move(c.manualEntry(patient, test.code, test.day, test.minutes), "review", nil)
			if test.want == "" {
				got.want(200)
			} else if got.want(400, "invalid_state"); !contains(got.at("warnings"), test.want) {
				t.Errorf("the reasons are %v, want %q", got.at("warnings"), test.want)
			}
		})
	}
}

// A sent claim with a service date before a death is marked if the death leaves it too few minutes.
func TestSentMinutesAfterDeath(t *testing.T) {
	for name, test := range map[string]struct {
		archive object
		want    string
	}{
		"died between the calls":  {object{"deceased_at": "2026-01-08"}, "minutes_below_minimum"},
		"ended between the calls": {object{"effective_at": "2026-01-08T12:00:00-05:00"}, "minutes_below_minimum"},
		"died after both":         {object{"deceased_at": "2026-01-09"}, ""},
	} {
		c := newClinic(t)
		patient := c.billablePatient()
		c.logCall(patient, "2026-01-07T15:00:00Z", 10)
		c.logCall(patient, "2026-01-09T15:00:00Z", 12)
		entry := c.manualEntry(patient, "99457", "2026-01-07", 20)
		c.move(entry, "review", nil).want(200)
		c.move(entry, "submit", nil).want(200)
		test.archive["reason"] = "Ended"
		path := "/patients/" + patient
		c.request(authz.ClinicalManager, "POST", path+"/archive/", test.archive).want(200)
		c.wantChanged(name, entry, test.want)
		c.request(authz.ClinicalManager, "POST", path+"/unarchive/", nil).want(200)
		c.wantChanged(name+", restored", entry, "")
	}
}

// The engine bills the code that the minutes before a death support.
func TestEngineBillsMinutesBeforeDeath(t *testing.T) {
	c := newClinic(t, shortSupply)
	patient := c.billablePatient()
	c.logCall(patient, "2026-01-07T15:00:00Z", 10)
	c.logCall(patient, "2026-01-09T15:00:00Z", 12)
	c.request(authz.ClinicalManager, "POST", "/patients/"+patient+"/archive/", object{"reason": "Died", "deceased_at": "2026-01-08"}).want(200)
	c.now = c.now.AddDate(0, 0, 20)
	c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "time"}).want(200)
	got := c.request(authz.Admin, "GET", "/billing/entries/?patient_id="+patient, nil).want(200).results()
	if len(got) != 1 || got[0]["cpt_code"] != "99470" || got[0]["service_date"] != "2026-01-07" {
		t.Errorf("billed %v", got)
	}
}

// A wrong date of the end of monitoring is refused where it can be known to be wrong; else restoring the patient takes it back with its marks.
func TestWrongEndOfMonitoring(t *testing.T) {
	c := newClinic(t)
	patient, supply, minutes := c.sentMonth(0)
	path := "/patients/" + patient
	archive := func(effective any) reply {
		return c.request(authz.ClinicalManager, "POST", path+"/archive/", object{"reason": "Moved", "effective_at": effective})
	}
	for _, wrong := range []string{"2006-01-14", "1951-01-01", "1899-12-31", "2025-08-01"} {
		archive(wrong).wantFields("effective_at")
	}
	c.wantChanged("refused", supply, "")
	for range 2 {
		archive("2025-12-20").want(200)
		c.wantChanged("a wrong month", supply, "not_active")
		c.wantChanged("a wrong month", minutes, "not_active")
		c.request(authz.ClinicalManager, "POST", path+"/unarchive/", nil).want(200)
		c.wantChanged("restored", supply, "")
		c.wantChanged("restored", minutes, "")
	}
	archive("2026-01-14").want(200)
	c.wantChanged("the right date", supply, "")
	c.wantChanged("the right date", minutes, "")
	if entry := c.request(authz.Admin, "GET", "/billing/entries/"+minutes+"/", nil).want(200); entry.at("repay_by") != nil {
		t.Errorf("the claim is to be repaid by %v", entry.at("repay_by"))
	}
	c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{
		"patient_id": patient, "cpt_code": "99458", "service_date": "2026-01-06", "duration_minutes": 20,
	}).want(201)
}

// Monitoring of a patient who was entered late ends before the record was made.
func TestEndBeforeRecord(t *testing.T) {
	for day, want := range map[string]int{"2026-01-02": 200, "2025-12-20": 200, "2025-11-30": 400} { // entered on January 15
		c := newClinic(t)
		c.request(authz.Nurse, "POST", "/patients/"+c.enroll(nil)+"/archive/", object{"reason": "Moved", "effective_at": day}).want(want)
	}
	c := newClinic(t)
	patient := c.enroll(object{"date_of_birth": "2026-01-10"})
	c.request(authz.Nurse, "POST", "/patients/"+patient+"/archive/", object{"reason": "Moved", "effective_at": "2026-01-09"}).wantFields("effective_at")
}

// A consent before birth is refused.
func TestConsentBeforeBirth(t *testing.T) {
	c := newClinic(t)
	path := fmt.Sprint("/patients/", c.enroll(object{"date_of_birth": "1955-12-10"}), "/consents/")
	body := func(granted string) object { return object{"type": "rpm", "method": "written", "granted_at": granted} }
	for _, wrong := range []string{"1900-01-01", "1955-12-09", "1955-12-09T23:59:59-05:00"} {
		c.request(authz.Nurse, "POST", path, body(wrong)).wantFields("granted_at")
	}
	c.request(authz.Nurse, "POST", path, body("1955-12-10")).want(201)
	c.request(authz.Nurse, "POST", path, body("2025-12-10")).want(201)
}

// Entries together have no more units of 99458 in a month than the practice bills, with any reason.
func TestUnitsOfMonthOverEntries(t *testing.T) {
	c := newClinic(t)
	patient := c.billablePatient()
	for i := range 7 {
		c.logCall(patient, fmt.Sprintf("2026-01-%02dT15:00:00Z", 5+i), 20)
	}
	c.move(c.manualEntry(patient, "99457", "2026-01-05", 20), "review", nil).want(200)
	two, one, more := c.manualEntry(patient, "99458", "2026-01-07", 40), c.manualEntry(patient, "99458", "2026-01-08", 20), c.manualEntry(patient, "99458", "2026-01-09", 20)
	c.move(two, "review", nil).want(200)
	c.move(one, "review", nil).want(400, "duplicate_entry")
	c.move(one, "review", object{"override_reason": "a further call"}).want(200)
	refused := c.move(more, "review", object{"override_reason": "a further call"}).want(400, "duplicate_entry")
	if !contains(refused.at("warnings"), "frequency_limit") {
		t.Errorf("a fourth unit is refused for %v", refused.at("warnings"))
	}
	c.move(one, "void", object{"reason": "Twice"}).want(200)
	c.move(more, "review", object{"override_reason": "instead"}).want(200)
}

// A member id of one payer is not sent to another.
func TestPayerWithoutMemberID(t *testing.T) {
	c := newClinic(t)
	payer := func(code string) any {
		return c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Payer " + code, "payer_id": code}).want(201).at("id")
	}
	first, second := payer("ONE"), payer("TWO")
	path := "/patients/" + c.enroll(object{"insurance": object{"payer_id": first, "member_id": "M1", "group_number": "G1", "relationship": "self"}}) + "/"
	patch := func(insurance object) reply {
		return c.request(authz.Admin, "PATCH", path, object{"insurance": insurance})
	}
	patch(object{"payer_id": first}).want(200).wantAt(object{"insurance.member_id": "M1", "insurance.group_number": "G1"})
	patch(object{"payer_id": second}).want(200).wantAt(object{
		"insurance.payer_id": second, "insurance.member_id": nil, "insurance.group_number": nil, "insurance.relationship": "self",
	})
	patch(object{"member_id": "M2"}).want(200).wantAt(object{"insurance.payer_id": second, "insurance.member_id": "M2"})
	patch(object{"payer_id": first, "member_id": "M3"}).want(200).wantAt(object{"insurance.member_id": "M3"})
	patch(object{"secondary": object{"payer_id": first, "member_id": "S1"}}).wantFields("insurance.secondary.payer_id")
	third := payer("THREE")
	patch(object{"secondary": object{"payer_id": third, "member_id": "S1"}}).want(200).wantAt(object{"insurance.secondary.member_id": "S1"})
	patch(object{"secondary": object{"payer_id": second}}).want(200).wantAt(object{"insurance.secondary.member_id": nil, "insurance.member_id": "M3"})
}
