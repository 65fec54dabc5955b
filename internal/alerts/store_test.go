package alerts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const patient = "0194c5a8-0000-7000-8000-000000000001"

func store(t *testing.T, app core.App, draft alerts.Draft, at time.Time) string {
	t.Helper()
	if draft.PatientID == "" {
		draft.PatientID = patient
	}
	id, err := alerts.Store(app, draft, at)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestStore(t *testing.T) {
	app := vigiltest.NewApp(t)
	finding := breach("blood_pressure", alerts.Critical, "systolic", 185, 180, "Systolic 185 mmHg.")
	id := store(t, app, alerts.Draft{ObservationID: "o1", EscalationID: "000000000000007", Finding: finding, MeasuredAt: now.Add(-time.Hour)}, now)
	if id != collections.NumberID(1) {
		t.Errorf("id %s", id)
	}
	record, err := app.FindRecordById(collections.Alerts, id)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"patient": patient, "level": "critical", "type": "blood_pressure", "observation": "o1", "parameter": "systolic",
		"message": "Systolic 185 mmHg.", "value": 185.0, "threshold": 180.0, "status": "active", "acknowledged": false,
		"acknowledged_by": "", "resolved_at": "", "escalation": "000000000000007", "normal_readings": 0.0,
		"measured_at": "2026-01-15T12:45:00.000000Z", "created_at": "2026-01-15T13:45:00.000000Z", "updated_at": "2026-01-15T13:45:00.000000Z",
	}
	for column, value := range want {
		if got := record.Get(column); got != value {
			t.Errorf("%s is %v, want %v", column, got, value)
		}
	}
	var message string
	if err := app.DB().NewQuery("SELECT message FROM alerts").Row(&message); err != nil || strings.Contains(message, "Systolic") {
		t.Errorf("the message lies on disk as %q (%v)", message, err)
	}
}

// openAlerts returns the patient's unacknowledged alerts.
func openAlerts(t *testing.T, app core.App) []alerts.OpenAlert {
	t.Helper()
	if _, err := collections.FindTriageScore(app, patient); collections.IsNotFound(err) {
		if err := triage.AddRow(app, patient, now); err != nil {
			t.Fatal(err)
		}
	}
	picture, err := triage.ReadSnapshot(app, patient, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	return picture.Open
}

// An informative alert is stored resolved and without a value.
func TestStoreInformative(t *testing.T) {
	app := vigiltest.NewApp(t)
	id := store(t, app, alerts.Draft{Informative: true, Finding: alerts.Finding{Type: alerts.TypeDeviceInfo, Level: alerts.Normal}}, now)
	record, err := app.FindRecordById(collections.Alerts, id)
	if err != nil {
		t.Fatal(err)
	}
	for column, value := range map[string]any{
		"status": "resolved", "acknowledged": true, "acknowledged_by": "system", "resolved_by": "system",
		"resolved_at": collections.FormatInstant(now), "value": nil, "threshold": nil,
	} {
		if got := record.Get(column); got != value {
			t.Errorf("%s is %v, want %v", column, got, value)
		}
	}
	if open := openAlerts(t, app); len(open) != 0 {
		t.Errorf("open: %v", open)
	}
}

func TestSaveProgress(t *testing.T) {
	app := vigiltest.NewApp(t)
	finding := breach("pulse", alerts.Critical, "pulse", 135, 130, "")
	id := store(t, app, alerts.Draft{Finding: finding, MeasuredAt: now}, now)
	want := alerts.OpenAlert{ID: id, Type: "pulse", Level: alerts.Critical, MeasuredAt: now, CreatedAt: now, Parameter: "pulse", Value: 135, ResolvesWithin: 36 * time.Hour}
	if diff := cmp.Diff([]alerts.OpenAlert{want}, openAlerts(t, app)); diff != "" {
		t.Error(diff)
	}
	later := now.Add(time.Hour)
	if err := alerts.SaveProgress(app, alerts.Progress{Alert: want, NormalReadings: 1}, later); err != nil {
		t.Fatal(err)
	}
	if list := openAlerts(t, app); len(list) != 1 || list[0].NormalReadings != 1 {
		t.Errorf("after one normal reading: %+v", list)
	}
	if err := alerts.SaveProgress(app, alerts.Progress{Alert: want, NormalReadings: 2, Resolved: true}, later); err != nil {
		t.Fatal(err)
	}
	record, err := app.FindRecordById(collections.Alerts, id)
	if err != nil {
		t.Fatal(err)
	}
	for column, value := range map[string]any{
		"status": "auto_resolved", "acknowledged": true, "acknowledged_by": "system",
		"acknowledged_at": collections.FormatInstant(later), "resolved_by": "system", "normal_readings": 2.0,
	} {
		if got := record.Get(column); got != value {
			t.Errorf("%s is %v, want %v", column, got, value)
		}
	}
	if list := openAlerts(t, app); len(list) != 0 {
		t.Errorf("still open: %+v", list)
	}
}

func TestList(t *testing.T) {
	app := vigiltest.NewApp(t)
	bp := alerts.Finding{Type: "blood_pressure", Level: alerts.Critical}
	first := store(t, app, alerts.Draft{Finding: bp, ObservationID: "o1"}, now)
	second := store(t, app, alerts.Draft{Finding: alerts.Finding{Type: "pulse", Level: alerts.Warning}, ObservationID: "o1"}, now)
	info := store(t, app, alerts.Draft{Finding: alerts.Finding{Type: alerts.TypeDeviceInfo, Level: alerts.Normal}, ObservationID: "o1", Informative: true}, now.Add(time.Minute))
	other := store(t, app, alerts.Draft{PatientID: "p2", Finding: bp, ObservationID: "o2"}, now.Add(-time.Minute))
	if _, err := app.DB().Insert(collections.CareTeamMembers, dbx.Params{"patient": "p2", "user": "u1"}).Execute(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		filter collections.AlertFilter
		want   []string
	}{
		{"newest first, later number first at the same time", collections.AlertFilter{}, []string{info, second, first, other}},
		{"patient", collections.AlertFilter{PatientID: "p2"}, []string{other}},
		{"level", collections.AlertFilter{Level: "critical"}, []string{first, other}},
		{"status", collections.AlertFilter{Status: "resolved"}, []string{info}},
		{"type and acknowledged", collections.AlertFilter{Type: "pulse", Acknowledged: new(false)}, []string{second}},
		{"acknowledged", collections.AlertFilter{Acknowledged: new(true)}, []string{info}},
		{"both ends of the time belong to it", collections.AlertFilter{From: now.Add(-time.Minute), To: now}, []string{second, first, other}},
		{"care team", collections.AlertFilter{CareTeamOf: "u1"}, []string{other}},
	}
	for _, test := range tests {
		page, total, err := collections.PageOfAlerts(app, test.filter, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, record := range page {
			got = append(got, record.Id)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || total != len(test.want) {
			t.Errorf("%s: %d in all, %s", test.name, total, diff)
		}
	}
	if page, total, err := collections.PageOfAlerts(app, collections.AlertFilter{}, 1, 2); err != nil || total != 4 || len(page) != 2 || page[0].Id != second {
		t.Errorf("second page: %v of %d (%v)", page, total, err)
	}
	raised, err := collections.AlertsOfObservations(app, "o1", "o2", "o3")
	if err != nil || len(raised) != 2 || len(raised["o1"]) != 2 || raised["o1"][0].Id != first || len(raised["o2"]) != 1 {
		t.Errorf("of observations: %v (%v)", raised, err)
	}
	if none, err := collections.AlertsOfObservations(app); err != nil || len(none) != 0 {
		t.Errorf("of none: %v (%v)", none, err)
	}
}
