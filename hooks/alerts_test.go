package hooks_test

import (
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
)

// alert stores an alert in the given state.
func (d *dashboard) alert(patientID, status string) string {
	d.t.Helper()
	id, err := alerts.Store(d.app, alerts.Draft{
		PatientID: patientID, MeasuredAt: vigiltest.Clock, Finding: alerts.Finding{Type: "pulse", Level: alerts.Warning, Message: "Pulse 120 bpm."},
	}, vigiltest.Clock)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.app.DB().Update(collections.Alerts, dbx.Params{"status": status, "acknowledged": status != "active"}, dbx.HashExp{"id": id}).Execute(); err != nil {
		d.t.Fatal(err)
	}
	if _, err := triage.Rescore(d.app, patientID, vigiltest.Clock); err != nil {
		d.t.Fatal(err)
	}
	return id
}

// Every pair of alert states, changed in the dashboard.
func TestDashboardAlertTransitions(t *testing.T) {
	d := newDashboard(t)
	states := []string{"active", "acknowledged", "resolved", "auto_resolved"}
	for from, legal := range map[string][]string{"active": {"acknowledged", "resolved"}, "acknowledged": {"resolved"}, "resolved": nil, "auto_resolved": nil} {
		for _, to := range states {
			if to == from {
				continue
			}
			patient := d.enrol(nil)
			id := d.alert(patient, from)
			events := len(d.events(patient))
			if !slices.Contains(legal, to) {
				d.refused("PATCH", collections.Alerts, id, "status", object{"status": to})
				if got := d.events(patient); len(got) != events {
					t.Errorf("refused from %s to %s, yet recorded: %v", from, to, got)
				}
				continue
			}
			changed := d.do("PATCH", collections.Alerts, id, object{"status": to, "notes": "By hand."})
			if changed["status"] != to || changed["acknowledged"] != true || (to == "resolved") != (changed["resolved_by"] == operator) {
				t.Errorf("from %s to %s: %v", from, to, changed)
			}
			want := map[string]string{"acknowledged": "alert.acknowledge ", "resolved": "alert.resolve "}[to] + operator
			if got := d.events(patient)[events:]; !slices.Equal(got, []string{want}) {
				t.Errorf("from %s to %s the trail gains %v", from, to, got)
			}
			if change := lastChange(t, d.app, patient); !strings.Contains(change, `"status":{"new":"`+to+`","old":"`+from+`"}`) || !strings.Contains(change, `"notes":{"new":"By hand."`) {
				t.Errorf("from %s to %s is recorded as %s", from, to, change)
			}
			place, err := d.app.FindFirstRecordByData(collections.TriageScores, "patient", patient)
			if err != nil || place.GetInt("unacknowledged_alerts") != 0 || place.GetString("last_reviewed_by") != operator {
				t.Errorf("from %s to %s the patient's score is not updated: %v", from, to, err)
			}
		}
	}

	patient := d.enrol(nil)
	id := d.alert(patient, "active")
	for column, value := range map[string]any{"level": "normal", "patient": d.enrol(nil), "value": 3, "acknowledged": true, "message": "All is well.", "snoozed": true} {
		d.refused("PATCH", collections.Alerts, id, column, object{column: value})
	}
	d.do("PATCH", collections.Alerts, id, object{"notes": "Called."})
	if events := d.events(patient); events[len(events)-1] != "alert.note "+operator {
		t.Errorf("a note is recorded as %v", events)
	}
	over := d.alert(patient, "resolved")
	d.refused("PATCH", collections.Alerts, over, "status", object{"notes": "Late."})
	d.refused("POST", collections.Alerts, "", "", object{"patient": patient, "level": "critical", "type": "pulse", "status": "active"})
	d.refused("POST", collections.Snoozes, "", "", object{"patient": patient, "type": "pulse", "created_by": "x"})
}

// Every pair of escalation states, changed in the dashboard, with the same consequences as through the API.
func TestDashboardEscalationTransitions(t *testing.T) {
	d := newDashboard(t)
	provider := vigiltest.User(t, d.app, authz.Provider, vigiltest.Email("provider@vigil.test"))
	open := func(patient string) string {
		return d.do("POST", collections.Escalations, "", object{"patient": patient, "priority": "urgent", "status": "resolved", "reason": "By hand.", "created_by": "x"})["id"].(string)
	}
	states := []string{"open", "in_progress", "resolved", "cancelled"}
	for from, legal := range map[string][]string{"open": {"in_progress", "resolved", "cancelled"}, "in_progress": {"resolved", "cancelled"}, "resolved": nil, "cancelled": nil} {
		for _, to := range states {
			if to == from {
				continue
			}
			patient := d.enrol(object{"primary_provider": provider.Id})
			id := open(patient)
			if from != "open" {
				d.do("PATCH", collections.Escalations, id, object{"status": from})
			}
			if !slices.Contains(legal, to) {
				d.refused("PATCH", collections.Escalations, id, "status", object{"status": to})
				continue
			}
			if changed := d.do("PATCH", collections.Escalations, id, object{"status": to}); changed["status"] != to || (to == "resolved") != (changed["resolved_by"] == operator) {
				t.Errorf("from %s to %s: %v", from, to, changed)
			}
			events := d.events(patient)
			if events[len(events)-1] != "escalation.update "+operator {
				t.Errorf("from %s to %s the trail has %v", from, to, events)
			}
		}
	}

	patient := d.enrol(object{"primary_provider": provider.Id})
	before := vigiltest.RowCounts(t, d.app)
	id := open(patient)
	if added := vigiltest.RowsAdded(t, d.app, before); added["escalations"] != 1 || added["announcements"] != 1 || added["audit_log"] != 1 {
		t.Errorf("opening one by hand adds %v", added)
	}
	stored, err := d.app.FindRecordById(collections.Escalations, id)
	if err != nil || stored.GetString("status") != "open" || stored.GetString("created_by") != operator || stored.GetString("assigned_to") != provider.Email() {
		t.Errorf("it is stored as %s by %s (%v)", stored.GetString("status"), stored.GetString("created_by"), err)
	}
	d.refused("PATCH", collections.Escalations, id, "reason", object{"reason": "Another."})
	d.refused("PATCH", collections.Escalations, id, "assigned_to", object{"assigned_to": "nobody@vigil.test"})
	d.refused("PATCH", collections.Escalations, id, "interaction_minutes", object{"interaction_minutes": 10})
	d.refused("PATCH", collections.Escalations, id, "interaction_minutes", object{"status": "resolved", "interaction_minutes": 500})
	if _, err := d.app.DB().NewQuery("UPDATE escalations SET created_at = {:at} WHERE id = {:id}").
		Bind(dbx.Params{"id": id, "at": collections.FormatInstant(vigiltest.Clock.Add(-time.Hour))}).Execute(); err != nil { // the minutes must be after the opening
		t.Fatal(err)
	}
	d.do("PATCH", collections.Escalations, id, object{"status": "resolved", "interaction_minutes": 25})
	if entry, err := d.app.FindFirstRecordByData(collections.TimeEntries, "escalation", id); err != nil || entry.GetInt("duration_seconds") != 1500 {
		t.Errorf("the time is not logged: %v", err)
	}
	d.refused("POST", collections.Escalations, "", "reason", object{"patient": patient, "priority": "urgent", "status": "open", "created_by": "x"})
}
