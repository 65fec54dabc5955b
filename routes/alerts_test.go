package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// alert stores an alert of a patient and returns its path.
func (c *clinic) alert(patientID string, level alerts.Level) string {
	c.t.Helper()
	id, err := alerts.Store(c.app, alerts.Draft{
		PatientID: patientID, MeasuredAt: c.now,
		Finding: alerts.Finding{Type: "pulse", Level: level, Parameter: "pulse", Value: 120, Threshold: 110, Message: "Pulse 120 bpm."},
	}, c.now)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := triage.Rescore(c.app, patientID, c.now); err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("/alerts/%d/", collections.Number(id))
}

// actions returns the steps of an answer's audit trail with the users who took them.
func (r reply) actions() (list []string) {
	r.t.Helper()
	trail, _ := r.at("audit_trail").([]any)
	for _, step := range trail {
		o := step.(object)
		who, _, _ := strings.Cut(o["actor"].(string), "@")
		list = append(list, fmt.Sprint(o["action"], " ", strings.TrimRight(who, "0123456789"), " ", o["detail"]))
	}
	return list
}

func TestAcknowledgeAlert(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(nil)
	nurse, provider := c.people[authz.Nurse].Email(), c.people[authz.Provider].Email()

	plain := c.alert(patient, alerts.Critical)
	c.request(authz.Nurse, "POST", plain+"acknowledge/", nil).want(200).wantAt(object{
		"acknowledged": true, "acknowledged_by": nurse, "acknowledged_at": "2026-01-15T13:45:00Z", "notes": nil, "status": nil, "audit_trail": nil,
	})
	c.now = c.now.Add(time.Minute)
	c.request(authz.Provider, "POST", plain+"acknowledge/", object{"notes": "Called."}).want(200).
		wantAt(object{"acknowledged_by": nurse, "acknowledged_at": "2026-01-15T13:45:00Z", "notes": "Called."})
	c.request(authz.Provider, "POST", plain+"acknowledge/", object{"outcome": "resolved", "clinical_note": "Fine."}).want(200).wantAt(object{
		"status": "resolved", "acknowledged_by": nurse, "outcome": "resolved", "acknowledged": nil,
	})
	c.request(authz.Nurse, "GET", plain, nil).want(200).wantAt(object{
		"status": "resolved", "resolved_by": provider, "clinical_note": "Fine.", "notes": "Called.", "level": "critical", "patient_name": "Ada Lovelace",
	})
	for _, step := range []string{"acknowledge/", "resolve/", "notes/", "escalate/"} {
		c.request(authz.Nurse, "POST", plain+step, object{"notes": "x"}).want(400, "invalid_state")
	}

	detailed := c.alert(patient, alerts.Warning)
	reply := c.request(authz.Nurse, "POST", detailed+"acknowledge/", object{"outcome": "monitoring", "follow_up_required": true}).want(200)
	reply.wantAt(object{"status": "acknowledged", "outcome": "monitoring", "acknowledged_by": nurse})
	c.request(authz.Nurse, "GET", detailed, nil).wantAt(object{"follow_up_required": true, "follow_up_at": "2026-01-16T13:46:00Z"})
	c.request(authz.MA, "POST", detailed+"notes/", object{"notes": "Asked for a call."}).want(200).wantAt(object{"notes": "Asked for a call.", "status": "acknowledged"})
	c.request(authz.MA, "POST", detailed+"notes/", object{}).wantFields("notes")
	c.request(authz.MA, "POST", detailed+"escalate/", nil).want(201).wantAt(object{
		"priority": "urgent", "reason": "Pulse 120 bpm.", "status": "open", "created_by": c.people[authz.MA].Email(), "patient_id": patient,
	})
	alertID := collections.NumberID(2)
	c.insert(collections.Announcements, dbx.Params{"id": "announcement001", "key": alerts.AnnouncementKey(alertID), "told_at": collections.FormatInstant(c.now.Add(-time.Hour))})
	got := c.request(authz.Nurse, "POST", detailed+"resolve/", nil).want(200).wantAt(object{"status": "resolved", "acknowledged": true}).actions()
	want := []string{"notified system <nil>", "acknowledged nurse monitoring", "note_added ma Asked for a call.", "escalated ma <nil>", "resolved nurse <nil>"}
	if !slices.Equal(got, want) {
		t.Errorf("the trail is %v, want %v", got, want)
	}
	c.request(authz.Nurse, "POST", c.alert(patient, alerts.Warning)+"acknowledge/", object{"outcome": "no good"}).wantFields("outcome")
	c.request(authz.Nurse, "POST", "/alerts/999/acknowledge/", nil).want(404)
	c.request(authz.Nurse, "GET", "/alerts/x/", nil).want(404)
	if row := c.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]; row["unacknowledged_alerts"] != 1.0 || row["last_reviewed_by"] != nurse {
		t.Errorf("the triage list has %v", row)
	}
}

// Medical assistants handle alerts that are not critical and cannot resolve any; billing and portal users see no alerts.
func TestAlertRoles(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(nil)
	critical, warning := c.alert(patient, alerts.Critical), c.alert(patient, alerts.Warning)
	c.request(authz.MA, "POST", critical+"acknowledge/", nil).want(403, "permission_denied")
	c.request(authz.MA, "POST", warning+"acknowledge/", object{"outcome": "resolved"}).want(403, "permission_denied")
	c.request(authz.MA, "POST", warning+"acknowledge/", nil).want(200)
	staff := []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA}
	c.wantRoles("GET", critical, nil, staff...)
	c.wantRoles("POST", critical+"notes/", object{"notes": "x"}, staff...)
	c.wantRoles("POST", critical+"escalate/", nil, staff...)
	c.wantRoles("POST", critical+"resolve/", nil, staff[:4]...)

	c.request(authz.Admin, "DELETE", "/patients/"+patient+"/", nil).want(204)
	c.request(authz.Nurse, "GET", warning, nil).want(404)

	own := newClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	foreign := own.alert(own.enroll(nil), alerts.Warning)
	own.request(authz.Nurse, "GET", foreign, nil).want(403)
	own.request(authz.Nurse, "POST", foreign+"acknowledge/", nil).want(403)
	own.request(authz.ClinicalManager, "GET", foreign, nil).want(200)
}

func TestEscalations(t *testing.T) {
	c := newClinic(t)
	nurse := c.people[authz.Nurse].Email()
	patient := c.enroll(object{"primary_provider_id": c.people[authz.Provider].Number()})
	body := object{"patient_id": patient, "priority": "urgent", "reason": "Three high readings."}
	created := c.request(authz.MA, "POST", "/escalations/", body).want(201)
	created.wantAt(object{
		"status": "open", "priority": "urgent", "reason": "Three high readings.", "assigned_to": c.people[authz.Provider].Email(), "patient_name": "Ada Lovelace",
		"created_by": c.people[authz.MA].Email(), "assigned_at": "2026-01-15T13:45:00Z", "resolution_notes": "", "resolved_by": nil, "alert_id": nil,
	})
	path := fmt.Sprintf("/escalations/%v/", created.at("id"))
	c.request(authz.MA, "GET", path, nil).want(200).wantAt(object{"id": created.at("id"), "status": "open"})

	c.now = c.now.Add(10 * time.Minute)
	c.request(authz.Nurse, "PATCH", path, object{"status": "in_progress", "assigned_to": nurse, "priority": "stat"}).want(200).
		wantAt(object{"status": "in_progress", "assigned_to": nurse, "assigned_at": "2026-01-15T13:55:00Z", "priority": "stat"})
	c.request(authz.Nurse, "PATCH", path, object{"status": "in_progress"}).want(200).wantAt(object{"status": "in_progress"})
	c.request(authz.Nurse, "PATCH", path, object{"status": "resolved", "resolution_notes": "Adjusted.", "interaction_minutes": 12}).want(200).
		wantAt(object{"status": "resolved", "resolution_notes": "Adjusted.", "resolved_by": nurse, "resolved_at": "2026-01-15T13:55:00Z", "interaction_minutes": 12.0})
	c.request(authz.Nurse, "PATCH", path, object{"status": "cancelled"}).want(400, "invalid_transition")
	c.request(authz.Nurse, "PATCH", path, object{"priority": "routine"}).want(400, "invalid_state")
	c.request(authz.Nurse, "PATCH", path, object{"status": "open"}).wantFields("status")
	c.request(authz.Nurse, "PATCH", path, object{"interaction_minutes": 5}).wantFields("interaction_minutes")
	c.request(authz.Nurse, "PATCH", path, object{"status": "resolved", "interaction_minutes": 241, "priority": "now", "resolution_notes": strings.Repeat("x", 4001)}).
		wantFields("interaction_minutes", "priority", "resolution_notes")

	c.request(authz.Nurse, "POST", "/escalations/", object{}).wantFields("patient_id", "priority", "reason")
	for field, value := range map[string]any{"priority": "high", "reason": " ", "assigned_to": "nobody@vigil.test"} {
		changed := object{"patient_id": patient, "priority": "urgent", "reason": "x", field: value}
		c.request(authz.Nurse, "POST", "/escalations/", changed).wantFields(field)
	}
	c.request(authz.Nurse, "POST", "/escalations/", object{"patient_id": collections.NewUUID(), "priority": "urgent", "reason": "x"}).want(404, "not_found")
	c.request(authz.Nurse, "POST", "/escalations/", object{"patient_id": patient, "priority": "urgent", "reason": "x", "related_escalation_id": 99}).want(404, "not_found")

	related := c.request(authz.Nurse, "POST", "/escalations/", object{
		"patient_id": patient, "priority": "routine", "reason": "Once more.", "assigned_to": nurse, "related_escalation_id": created.at("id"),
	}).want(201).wantAt(object{"related_escalation_id": created.at("id"), "assigned_to": nurse})
	for filter, want := range map[string]int{
		"": 2, "?status=open": 1, "?priority=stat": 1, "?priority=urgent": 0, "?assigned_to=" + strings.ToUpper(nurse): 2, "?patient_id=" + patient: 2,
		"?patient_id=" + collections.NewUUID(): 0, "?status=resolved&priority=stat": 1,
	} {
		if list := c.request(authz.MA, "GET", "/escalations/"+filter, nil).results(); len(list) != want {
			t.Errorf("%q lists %d", filter, len(list))
		}
	}
	if list := c.request(authz.MA, "GET", "/escalations/", nil).results(); list[0]["id"] != related.at("id") {
		t.Error("the newest does not come first")
	}
	c.request(authz.MA, "GET", "/escalations/?status=done", nil).wantFields("status")

	staff := []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA}
	c.wantRoles("GET", path, nil, staff...)
	c.wantRoles("POST", "/escalations/", object{}, staff...)
	c.wantRoles("PATCH", path, object{}, staff[:4]...)
}

func TestSnoozes(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(nil)
	path := "/patients/" + patient + "/snoozes/"
	nurse := c.people[authz.Nurse].Email()
	first := c.request(authz.Nurse, "POST", path, object{"type": "pulse", "reason": "Exercise week.", "ends_at": "2026-01-20T00:00:00Z"}).want(201)
	first.wantAt(object{
		"type": "pulse", "reason": "Exercise week.", "in_force": true, "include_critical": false, "created_by": nurse, "ends_at": "2026-01-20T00:00:00Z", "ended_at": nil,
	})
	c.request(authz.Nurse, "POST", path, object{"type": "weight", "reason": "Diet.", "ends_at": "2026-01-15T14:00:00Z"}).want(201)
	c.now = c.now.Add(time.Hour)
	second := c.request(authz.Provider, "POST", path, object{"type": "pulse", "reason": "Fever.", "ends_at": "2026-01-15T18:45:00Z", "include_critical": true}).want(201)
	list := c.request(authz.MA, "GET", path, nil).results()
	if len(list) != 3 || list[0]["id"] != second.at("id") || list[2]["ended_by"] != c.people[authz.Provider].Email() || list[2]["in_force"] != false || list[1]["in_force"] != false {
		t.Errorf("the list has %v", list)
	}
	for filter, want := range map[string]int{"?in_force=true": 1, "?in_force=false": 2} {
		if got := c.request(authz.MA, "GET", path+filter, nil).results(); len(got) != want {
			t.Errorf("%s lists %d", filter, len(got))
		}
	}
	end := fmt.Sprintf("%s%v/end/", path, second.at("id"))
	c.request(authz.Nurse, "POST", end, nil).want(200).wantAt(object{"in_force": false, "ended_by": nurse, "ended_at": "2026-01-15T14:45:00Z"})
	c.request(authz.Nurse, "POST", end, nil).want(400, "invalid_state")
	c.request(authz.Nurse, "POST", fmt.Sprintf("%s%v/end/", path, 999), nil).want(404)
	c.request(authz.Nurse, "POST", fmt.Sprintf("/patients/%s/snoozes/%v/end/", c.enroll(nil), second.at("id")), nil).want(404)
	c.request(authz.Nurse, "POST", path, object{"type": "battery", "ends_at": "2026-01-15T19:45:00Z", "include_critical": true}).wantFields("type", "reason", "ends_at")

	events := c.events(patient)
	if n := len(slices.DeleteFunc(events, func(e string) bool { return !strings.HasPrefix(e, "snooze.") })); n != 4 {
		t.Errorf("the trail has %v", events)
	}
	staff := []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA}
	c.wantRoles("GET", path, nil, staff...)
	c.wantRoles("POST", path, object{}, staff[:4]...)
	c.wantRoles("POST", end, object{}, staff[:4]...)
}

// observe stores a blood pressure reading and, with a level, its alert.
func (c *clinic) observe(patientID string, systolic float64, daysAgo int, level alerts.Level) {
	c.t.Helper()
	id, at := collections.NewUUID(), c.now.AddDate(0, 0, -daysAgo)
	c.insert(collections.Observations, dbx.Params{
		"id": id, "patient": patientID, "observation_type": "blood_pressure", "systolic": systolic, "diastolic": 80, "status": "final", "source": "api", "fhir_status": "pending",
		"measured_at": collections.FormatInstant(at), "created_at": collections.FormatInstant(at),
	})
	_, err := c.app.DB().NewQuery(`INSERT INTO daily_counts (day, observation_type, status, readings) VALUES ({:day}, 'blood_pressure', 'final', 1)
		ON CONFLICT DO UPDATE SET readings = readings + 1`).Bind(dbx.Params{"day": at.Format(time.DateOnly)}).Execute()
	if err != nil {
		c.t.Fatal(err)
	}
	if level == "" {
		return
	}
	_, err = alerts.Store(c.app, alerts.Draft{
		PatientID: patientID, ObservationID: id, MeasuredAt: at,
		Finding: alerts.Finding{Type: "blood_pressure", Level: level, Parameter: "systolic", Value: systolic, Threshold: 180, Message: "High."},
	}, at)
	if err != nil {
		c.t.Fatal(err)
	}
}

func TestSimulateThresholds(t *testing.T) {
	c := newClinic(t)
	const path = "/triage/simulate-thresholds/"
	ada, grace := c.enroll(nil), c.enroll(nil)
	c.request(authz.Nurse, "PUT", "/patients/"+grace+"/vital-config/", object{"reason": "Own", "blood_pressure": object{"systolic_high": 130, "systolic_critical": 185}}).want(200)
	c.observe(ada, 150, 1, alerts.Warning)
	c.observe(ada, 190, 1, alerts.Critical)
	c.observe(ada, 120, 2, "")
	c.observe(ada, 190, 91, alerts.Critical) // before the span
	c.observe(grace, 135, 3, alerts.Warning)
	before := vigiltest.RowCounts(t, c.app)

	everybody := c.request(authz.Nurse, "POST", path, object{"blood_pressure": object{"systolic_high": 160, "systolic_critical": 200}}).want(200).wantAt(object{
		"patient_id": nil, "patients_total": 2.0, "patients_seen": 2.0, "sample_every": 1.0, "complete": true, "readings": 4.0,
		"from": "2025-10-17T13:45:00Z", "to": "2026-01-15T13:45:00Z", "actual.total": 3.0, "actual.critical": 1.0, "actual.warning": 2.0,
		"simulated.total": 2.0, "simulated.critical": 0.0, "simulated.warning": 2.0, "missed_critical.count": 1.0,
	})
	missed := everybody.at("missed_critical.readings").([]any)[0].(object)
	if missed["patient_id"] != ada || missed["value"] != 190.0 || missed["simulated_level"] != "warning" || missed["measured_at"] != "2026-01-14T13:45:00Z" {
		t.Errorf("missed: %v", missed)
	}
	days := everybody.at("per_day").([]any)
	if len(days) != 91 || days[89].(object)["date"] != "2026-01-14" || days[89].(object)["actual"].(object)["total"] != 2.0 {
		t.Errorf("%d days, the day before yesterday %v", len(days), days[89])
	}
	c.request(authz.Nurse, "POST", path, object{"patient_id": grace, "blood_pressure": nil}).want(200).
		wantAt(object{"patient_id": grace, "patients_total": 1.0, "readings": 1.0, "actual.warning": 1.0, "simulated.total": 0.0, "missed_critical.count": 0.0})
	c.request(authz.Nurse, "POST", path, object{}).want(200).wantAt(object{"actual.total": 3.0, "simulated.total": 3.0})
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 1 || added["audit_log"] != 3 {
		t.Errorf("three simulations add %v", added)
	}

	c.request(authz.Nurse, "POST", path, object{"patient_id": collections.NewUUID()}).want(404)
	c.request(authz.Nurse, "POST", path, object{"patient_id": "x"}).wantFields("patient_id")
	c.request(authz.Nurse, "POST", path, object{"pulse": object{"high": 1000}, "weight": 3}).wantFields("pulse.high", "weight")
	c.request(authz.Nurse, "POST", path, object{"pulse": object{"high": 60, "low": 70}}).wantFields("pulse.high")
	c.wantRoles("POST", path, object{}, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse)
}
