package routes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

// A patient who moves keeps the days of the place where each reading was taken, pending and claimed: readings at ten in the evening and eight in the morning in
// turn are two days each in Los Angeles, and would be one in New York.
func TestMoveKeepsDays(t *testing.T) {
	for _, move := range []struct{ from, to string }{
		{"America/Los_Angeles", "America/New_York"}, {"America/New_York", "Pacific/Honolulu"}, {"Pacific/Auckland", "America/Los_Angeles"}, {"", "Asia/Tokyo"}, {"Asia/Tokyo", ""},
	} {
		t.Run(move.from+" to "+move.to, func(t *testing.T) {
			c := newIngestingClinic(t)
			zone, place := newYork, any(nil)
			if move.from != "" {
				zone, _ = time.LoadLocation(move.from)
				place = move.from
			}
			patient := c.enroll(object{"time_zone": place, "icd10_codes": []string{"I10"}, "primary_provider_id": c.people[authz.Provider].Number(), "gateway_patient_id": "GW-1"})
			c.consent(patient)
			c.request(authz.Admin, "POST", "/devices/assign/", object{
				"device_id": "W-1", "patient_id": patient, "device_type": "weight_scale", "assigned_at": c.now.AddDate(0, 0, -40).Format(time.RFC3339),
			}).want(200)
			for i := range 16 {
				day := time.Date(2025, 12, 12+i, 22, 0, 0, 0, zone)
				if i%2 == 1 {
					day = time.Date(2025, 12, 12+i, 8, 0, 0, 0, zone)
				}
				c.sendWeight("GW-1", 80+float64(i%3)/10, day)
			}
			extra := c.sendWeight("GW-1", 80, time.Date(2025, 12, 27, 8, 30, 0, 0, zone)).at("id")
			c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "device"}).want(200)
			supply := c.entryOf(patient, "99454")
			c.moveEntry(supply, "review", nil).want(200)
			c.moveEntry(supply, "submit", nil).want(200)
			var next any
			if move.to != "" {
				next = move.to
			}
			c.request(authz.Nurse, "PATCH", "/patients/"+patient+"/", object{"time_zone": next}).want(200)
			c.request(authz.Nurse, "POST", fmt.Sprint("/ingestion/observations/", extra, "/entered-in-error/"), object{"reason": "Twice"}).want(200)
			c.request(authz.Admin, "GET", "/billing/entries/"+supply+"/", nil).want(200).wantAt(object{"transmission_days": 16.0, "evidence_changed_at": nil, "repay_by": nil})
			days, rows := map[any]bool{}, c.request(authz.Admin, "GET", "/billing/entries/"+supply+"/evidence/", nil).want(200).at("readings").([]any)
			for _, row := range rows {
				days[row.(object)["day"]] = true
			}
			if len(days) != 16 || len(rows) != 16 {
				t.Errorf("the packet has %d readings of %d days", len(rows), len(days))
			}
			// Late readings are of the place where they were measured, later ones of the new place.
			c.sendWeightFrom("W-2", "GW-1", 80, time.Date(2025, 12, 30, 22, 0, 0, 0, zone))
			c.sendWeight("GW-1", 80, c.now.Add(26*time.Hour))
			here := newYork
			if move.to != "" {
				here, _ = time.LoadLocation(move.to)
			}
			stored := c.queryRows(t, `SELECT day FROM reading_days WHERE patient = '`+patient+`' AND readings > 0 ORDER BY day DESC LIMIT 2`)
			if want := []string{c.now.In(here).Format(time.DateOnly), "2025-12-30"}; fmt.Sprint(stored) != fmt.Sprint(want) {
				t.Errorf("later days are %v, want %v", stored, want)
			}
		})
	}
}

// Who was a provider when the time was recorded interpreted it, with any role since; a later provider did not.
func TestRoleOfTheTime(t *testing.T) {
	c := newClinic(t)
	doctor := c.people[authz.Provider]
	become := func(user *collections.User, role authz.Role) {
		t.Helper()
		user.Set("role", string(role))
		if err := c.app.Save(user); err != nil {
			t.Fatal(err)
		}
	}
	sent, waiting, late, earlier := c.billablePatient(), c.billablePatient(), c.billablePatient(), c.billablePatient()
	paid := c.submittedEntry(sent, "2026-01-13")
	c.logReview(waiting, "2026-01-14T14:00:00Z", 30)
	pending := c.manualEntry(waiting, "99091", "2026-01-14", 30)
	become(doctor, authz.ClinicalManager)
	call := c.logCall(sent, "2026-01-12T15:00:00Z", 5).at("id")
	c.request(authz.Nurse, "DELETE", fmt.Sprint("/time-entries/", call, "/"), nil).want(204) // a recount of the sent claim
	c.request(authz.Admin, "GET", "/billing/entries/"+paid+"/", nil).want(200).wantAt(object{"evidence_changed_at": nil, "repay_by": nil})
	c.move(pending, "review", nil).want(200)
	c.request(authz.Admin, "GET", "/billing/entries/"+pending+"/evidence/", nil).want(200)
	if row := c.request(authz.Admin, "GET", "/billing/entries/"+paid+"/evidence/", nil).want(200).at("time_entries").([]any)[0].(object); row["role"] != "provider" {
		t.Errorf("the packet names the role %v", row["role"])
	}
	// Interpreted before, billed by hand after.
	become(doctor, authz.Provider)
	c.logReview(earlier, "2026-01-14T18:00:00Z", 30)
	become(doctor, authz.ClinicalManager)
	after := c.manualEntry(earlier, "99091", "2026-01-14", 30)
	c.move(after, "review", nil).want(200).wantAt(object{"rendering_provider_id": float64(doctor.Number())})
	c.request(authz.Nurse, "POST", "/time-entries/", object{
		"patient_id": late, "category": "interpretation", "started_at": "2026-01-14T16:00:00Z", "duration_seconds": 1800, "notes": "Read",
	}).want(201)
	become(doctor, authz.Provider)
	by := c.manualEntry(late, "99091", "2026-01-14", 30)
	become(c.people[authz.Nurse], authz.Provider)
	c.wantRefusal(by, "review", nil, "minutes_below_minimum")
}

// Another education on the same assignment corrects the record of its episode of care until that is billed, and never that of an earlier episode.
func TestSecondSetUpKeepsFirst(t *testing.T) {
	c := newClinic(t)
	setUp := func(device, at string) {
		t.Helper()
		c.request(authz.Nurse, "POST", "/devices/"+device+"/setup-complete/", object{"completed_at": at}).want(200)
	}
	bill := func(patient, device string) string {
		t.Helper()
		c.storeDeviceDays(patient, device, c.now.AddDate(0, 0, -31), 16) // set up on December 15
		setUp(device, "2025-12-16T15:00:00Z")                            // corrects it
		c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "device"}).want(200)
		return c.entryOf(patient, "99453")
	}
	educated := func(entry string) any {
		t.Helper()
		return c.request(authz.Admin, "GET", "/billing/entries/"+entry+"/evidence/", nil).want(200).at("device_assignments").([]any)[0].(object)["setup_completed_at"]
	}
	for name, between := range map[string]func(patient string){
		"a refresher": func(string) {},
		"another episode": func(patient string) {
			c.request(authz.ClinicalManager, "POST", "/patients/"+patient+"/archive/", object{"reason": "Completed"}).want(200)
			c.request(authz.ClinicalManager, "POST", "/patients/"+patient+"/unarchive/", nil).want(200)
		},
	} {
		patient, device := c.billablePatient(), "D-"+name[2:5]
		entry := bill(patient, device)
		c.request(authz.Admin, "GET", "/billing/entries/"+entry+"/", nil).wantAt(object{"service_date": "2025-12-16"})
		between(patient)
		setUp(device, c.now.UTC().Format(time.RFC3339))
		if got := educated(entry); got != "2025-12-16T15:00:00Z" {
			t.Errorf("%s: the packet of the first set-up names %v", name, got)
		}
		c.move(entry, "review", nil).want(200).wantAt(object{"service_date": "2025-12-16"})
		setUp(device, c.now.Add(-time.Hour).UTC().Format(time.RFC3339)) // corrects the second
		c.move(entry, "submit", nil).want(200)
		if got := educated(entry); got != "2025-12-16T15:00:00Z" {
			t.Errorf("%s: the packet of the sent set-up names %v", name, got)
		}
	}
	// Once the entry is voided, the record is corrected.
	patient := c.billablePatient()
	c.move(bill(patient, "D-void"), "void", object{"reason": "Another day"}).want(200)
	setUp("D-void", "2025-12-17T15:00:00Z")
	by := c.manualEntry(patient, "99453", "2025-12-17", 0)
	if got := educated(by); got != "2025-12-17T15:00:00Z" {
		t.Errorf("the corrected set-up is %v", got)
	}
}
