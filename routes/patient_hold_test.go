package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/patients"
)

func TestPatientHold(t *testing.T) {
	c := newClinic(t) // 2026-01-15T13:45:00Z
	id := c.enroll(object{"time_zone": "America/Los_Angeles"})
	path := "/patients/" + id + "/"
	c.wantRoles("POST", "/patients/"+unknownPatient+"/hold/", object{"reason": "travel", "until": "2026-01-20"}, archivers...)
	c.wantRoles("DELETE", "/patients/"+unknownPatient+"/hold/", nil, archivers...)
	hold := func(body any) reply { return c.request(authz.Nurse, "POST", path+"hold/", body) }

	hold(object{}).wantFields("reason", "until")
	for _, until := range []any{"2026-01-14", "2026-01-15T13:45:00Z", "2026-02-15", "2026-02-14T13:46:00Z", "soon", "2026-02-30", 5, nil} {
		hold(object{"reason": "hospital", "until": until}).wantFields("until")
	}
	hold(object{"reason": "holiday", "until": "2026-01-20"}).wantFields("reason")
	hold(object{"reason": "other", "until": "2026-01-20", "notes": strings.Repeat("x", 4001)}).wantFields("notes")
	c.request(authz.Nurse, "DELETE", path+"hold/", nil).want(404, "not_found")
	c.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{"hold": nil, "deceased_at": nil, "effective_at": nil})

	by := c.people[authz.Nurse].Email()
	for until, end := range map[string]string{
		"2026-01-15": "2026-01-16T08:00:00Z", "2026-02-14": "2026-02-15T08:00:00Z", // through the end of the day in Los Angeles
		"2026-01-15T18:00:00": "2026-01-16T02:00:00Z", "2026-02-14T13:45:00Z": "2026-02-14T13:45:00Z", "2026-01-16T01:00:00+02:00": "2026-01-15T23:00:00Z",
	} {
		hold(object{"reason": "hospice", "until": until}).wantAt(object{"reason": "hospice", "until": end, "from": "2026-01-15T13:45:00Z"})
	}
	c.request(authz.Nurse, "DELETE", path+"hold/", nil).want(204)
	c.request(authz.Nurse, "DELETE", path+"hold/", nil).want(404, "not_found")

	hold(object{"reason": "travel", "until": "2026-01-20", "notes": "Visits her son."}).want(201)
	c.now = c.now.Add(time.Hour)
	held := hold(object{"reason": "hospital", "until": "2026-01-18T10:00:00Z", "notes": "Fell on the trip."}).want(200)
	want := object{"reason": "hospital", "from": "2026-01-15T13:45:00Z", "until": "2026-01-18T10:00:00Z", "by": by, "notes": "Fell on the trip."}
	held.wantAt(want)
	for _, role := range []authz.Role{authz.MA, authz.DataMonitor} {
		view := c.request(role, "GET", path, nil).want(200)
		view.wantAt(object{"hold.reason": "hospital", "hold.by": by})
		if notes := view.at("hold.notes"); (notes != nil) != (role == authz.MA) {
			t.Errorf("%s sees the notes %v", role, notes)
		}
	}
	list := c.request(authz.MA, "GET", "/patients/", nil).results()
	if shown, _ := list[0]["hold"].(object); shown["reason"] != "hospital" {
		t.Errorf("the list of patients has the hold %v", list[0]["hold"])
	}
	row := func() any { return c.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]["hold"] }
	if shown, _ := row().(object); shown["until"] != "2026-01-18T10:00:00Z" || shown["by"] != by || len(shown) != 4 {
		t.Errorf("the triage row has the hold %v", row())
	}

	c.now = time.Date(2026, 1, 18, 10, 0, 0, 0, time.UTC)
	if row() != nil {
		t.Errorf("the triage row has the hold %v after its end", row())
	}
	c.request(authz.Nurse, "GET", path, nil).wantAt(object{"hold": nil})
	if ended, err := patients.EndDueHolds(t.Context(), c.app, c.now); ended != 1 || err != nil {
		t.Errorf("%d holds ended (%v)", ended, err)
	}
	if ended, err := patients.EndDueHolds(t.Context(), c.app, c.now); ended != 0 || err != nil {
		t.Errorf("%d holds ended again (%v)", ended, err)
	}
	events := slices.DeleteFunc(c.events(id), func(e string) bool { return !strings.HasPrefix(e, "patient.hold") })
	if got := strings.Join(events[5:], " "); got != "patient.hold_end patient.hold patient.hold patient.hold_end" {
		t.Errorf("the audit trail has %s", got)
	}
	if stored := c.queryRows(t, `SELECT hold_notes FROM patients`); strings.Contains(fmt.Sprint(stored), "Fell") {
		t.Error("the notes are stored in plain text")
	}

	hold(object{"reason": "travel", "until": "2026-01-20"}).want(201)
	c.request(authz.Nurse, "POST", path+"archive/", object{"reason": "Moved"}).want(200)
	hold(object{"reason": "travel", "until": "2026-01-20"}).want(400, "invalid_state")
	c.request(authz.Nurse, "DELETE", path+"hold/", nil).want(404, "not_found")
	c.request(authz.Nurse, "POST", path+"unarchive/", nil).want(200)
	c.request(authz.Nurse, "GET", path, nil).wantAt(object{"hold": nil})
}

// A hold during an open stat changes nothing about it, and readings are judged as ever.
func TestHoldDuringStat(t *testing.T) {
	w := newNightShift(t, 0)
	w.oxygen(80)
	w.wantStat("opened", 1)
	w.wantPushed("opened", 1, 1)
	w.request(authz.Nurse, "POST", "/patients/"+w.patient+"/hold/", object{"reason": "hospice", "until": "2026-01-30"}).want(201)
	w.wantStat("on hold", 1)
	if open := w.alertsOf("status", "active"); len(open) != 1 {
		t.Errorf("%d open alerts", len(open))
	}
	w.closeEscalations()
	w.now = w.now.Add(2 * time.Hour)
	w.cuff(220, 130, 80)
	w.wantStat("a critical reading during the hold", 1)
	w.wantPushed("a critical reading during the hold", 1, 1)
}

func TestArchiveAndDeath(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(object{"date_of_birth": "1955-12-10", "time_zone": "Pacific/Auckland"}) // it is the 16th there
	path := "/patients/" + id + "/"
	archive := func(body object) reply {
		body["reason"] = "Died at home"
		return c.request(authz.Nurse, "POST", path+"archive/", body)
	}
	for _, deceased := range []any{"2026-01-17", "1955-12-09", "2026-01-15T10:00:00Z", "2026-02-30", 5} {
		archive(object{"deceased_at": deceased}).wantFields("deceased_at")
	}
	for _, effective := range []any{"2026-01-17", "2026-01-15T13:46:00Z", "later", 5} {
		archive(object{"effective_at": effective}).wantFields("effective_at")
	}
	archive(object{"deceased_at": "2026-01-12", "effective_at": "2026-01-11"}).wantFields("effective_at")
	archive(object{"confirm": "yes"}).wantFields("confirm")
	archive(object{"deceased_at": "2026-01-16", "effective_at": nil, "confirm": nil}).want(200).wantAt(object{"deceased_at": "2026-01-16", "effective_at": nil})
	fhir := func() any {
		return c.request(authz.Nurse, "GET", "/fhir"+path, nil).want(200).object()["deceasedDateTime"]
	}
	spoken := c.enroll(object{"preferred_language": "es-MX"})
	const mexican = `"communication":[{"language":{"coding":[{"system":"urn:ietf:bcp:47","code":"es-MX"}]},"preferred":true}]`
	if got := c.request(authz.Nurse, "GET", "/fhir/patients/"+spoken+"/", nil).want(200).body; !strings.Contains(got, mexican) {
		t.Errorf("no preferred language in %s", got)
	}
	if fhir() != "2026-01-16" {
		t.Errorf("FHIR has %v", fhir())
	}
	c.request(authz.Provider, "POST", path+"unarchive/", nil).want(200)
	if fhir() != nil {
		t.Errorf("FHIR has %v of a living patient", fhir())
	}
	c.request(authz.Nurse, "GET", path, nil).wantAt(object{"deceased_at": nil, "archive_reason": "Died at home"})
	archive(object{"deceased_at": "2026-01-10", "effective_at": "2026-01-12"}).want(200).wantAt(object{
		"deceased_at": "2026-01-10", "effective_at": "2026-01-11T11:00:00Z",
	})
	listed := c.request(authz.MA, "GET", "/patients/archived/", nil).results()
	if listed[0]["deceased_at"] != "2026-01-10" || listed[0]["effective_at"] != "2026-01-11T11:00:00Z" {
		t.Errorf("the archived list has %v", listed)
	}
	if stored := c.queryRows(t, `SELECT deceased_at FROM patients`); strings.Contains(fmt.Sprint(stored), "2026-01-10") {
		t.Error("the date of death is stored in plain text")
	}
}

// After an archiving no one is notified about the patient: by the ladder, by queued pushes, by follow-ups or by the end of an escalation hold.
func TestArchiveStopsNotifications(t *testing.T) {
	w := newNightShift(t, 0)
	archive := func(body object) reply {
		body["reason"] = "Died at home"
		return w.request(authz.Nurse, "POST", "/patients/"+w.patient+"/archive/", body)
	}
	w.oxygen(80)
	w.wantStat("opened", 1)
	number := fmt.Sprint(w.escalationsOf()[0]["id"])
	archive(object{"deceased_at": "2026-01-15"}).want(409, "open_stat")
	archive(object{"confirm": false}).want(409, "open_stat")
	w.wantStat("not confirmed", 1)
	archive(object{"deceased_at": "2026-01-15", "confirm": true}).want(200)
	w.wantPushed("queued before the archiving", 0, 0)
	w.wantStat("archived", 0)
	w.request(authz.Nurse, "GET", "/escalations/"+number+"/", nil).want(200).wantAt(object{
		"status": "cancelled", "cancelled_by": w.people[authz.Nurse].Email(), "resolution_notes": "The patient died on 2026-01-15. Archived: Died at home",
	})
	alert := w.newest()
	if alert["status"] != "resolved" || alert["resolution_reason"] != "archived" || !strings.Contains(fmt.Sprint(alert["notes"]), "Died at home") {
		t.Errorf("the alert is %v", alert)
	}
	ladder := escalations.Ladder{
		Zone: newYork, Overdue: map[escalations.Priority]time.Duration{escalations.Stat: 15 * time.Minute},
		Tiers: map[escalations.Priority]escalations.Deadlines{escalations.Stat: {15 * time.Minute, 30 * time.Minute, time.Hour}},
	}
	before := len(w.queryRows(t, `SELECT id FROM announcements`))
	for range 300 {
		w.now = w.now.Add(time.Minute)
		w.minute()
		if _, err := ladder.Sweep(t.Context(), w.app, w.now); err != nil {
			t.Fatal(err)
		}
	}
	if after := len(w.queryRows(t, `SELECT id FROM announcements`)); after != before {
		t.Errorf("%d announcements about a dead patient", after-before)
	}
	w.wantPushed("five hours later", 0, 0)
}
