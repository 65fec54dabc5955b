package ingest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// announced returns the announcements in order, as kind, severity, key and body.
func announced(t *testing.T, app core.App) (list []string) {
	t.Helper()
	var rows []struct {
		ID   string `db:"id"`
		Head string `db:"head"`
		Body string `db:"body"`
	}
	err := app.DB().NewQuery(`SELECT id, kind || ' ' || severity || ' ' || key AS head, body FROM announcements ORDER BY rowid`).All(&rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		body, err := collections.Open(row.Body, "announcements.body", row.ID)
		if err != nil || row.Body == body {
			t.Errorf("the text of %s lies open, or cannot be opened: %v", row.Head, err)
		}
		list = append(list, row.Head+": "+body)
	}
	return list
}

// Every alert and escalation is announced with the patient's name; alerts that join an escalation are announced once in 30 minutes.
func TestAlertsAreAnnounced(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, dbx.Params{"mrn": "M-1"})
	storeReading(t, app, engine, gatewaySubmission(patient, withPulse(bloodPressure(185, 80), 115)))
	irregular := bloodPressure(120, 80)
	irregular.SetQualifier(vitals.IrregularHeartbeat, vitals.Yes)
	storeReading(t, app, engine, gatewaySubmission(patient, irregular)) // informative only
	storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(190, 80), now.Add(-time.Second))))
	const alert1, alert2, alert3, escalation = "alert 000000000000001", "alert 000000000000002", "alert 000000000000004", "escalation 000000000000001"
	want := []string{
		"alert_raised critical " + alert1 + ": Ada Lovelace (M-1): Systolic 185 mmHg is at or above the critical limit 180.",
		"alert_raised warning " + alert2 + ": Ada Lovelace (M-1): Pulse 115 bpm is at or above the warning limit 110.",
		"escalation_opened critical " + escalation + ": Ada Lovelace (M-1), stat: Systolic 185 mmHg is at or above the critical limit 180.",
		"alert_raised critical " + alert3 + ": Ada Lovelace (M-1): Systolic 190 mmHg is at or above the critical limit 180.",
	}
	if diff := cmp.Diff(want, announced(t, app)); diff != "" {
		t.Error(diff)
	}

	old := collections.FormatInstant(now.Add(-30 * time.Minute))
	if _, err := app.DB().Update(collections.Escalations, dbx.Params{"notified_at": old}, nil).Execute(); err != nil {
		t.Fatal(err)
	}
	storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(191, 80), now)))
	list := announced(t, app)[len(want):]
	if len(list) != 2 || list[1] != "escalation_opened critical "+escalation+" joined "+collections.FormatInstant(now)+": Ada Lovelace (M-1), stat: A further critical reading." {
		t.Errorf("after half an hour: %v", list)
	}
	check(t, find(t, app, collections.Escalations, ""), map[string]any{"notified_at": collections.FormatInstant(now)})
}

// A snoozed breach is stored and counted, and not announced.
func TestSnoozedAlerts(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	snooze := func(kind string, critical bool, until time.Time) {
		id, err := collections.NextID(app, collections.Snoozes)
		if err != nil {
			t.Fatal(err)
		}
		row := dbx.Params{
			"id": id, "patient": patient, "type": kind, "include_critical": critical, "ends_at": collections.FormatInstant(until), "ended_at": "",
		}
		if _, err := app.DB().Insert(collections.Snoozes, row).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	snooze("blood_pressure", false, now.Add(time.Hour))
	snooze("weight", false, now) // ended
	steps := []struct {
		name           string
		systolic       float64
		snoozed        bool
		announcements  int
		escalations    int
		critical, open float64
	}{
		{"a warning", 150, true, 0, 0, 0, 1},
		{"a critical one is not covered", 185, false, 2, 1, 1, 2},
	}
	for i, step := range steps {
		before := vigiltest.RowCounts(t, app)
		outcome := storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(step.systolic, 80), now.Add(time.Duration(i-10)*time.Minute))))
		added := vigiltest.RowsAdded(t, app, before)
		if added["alerts"] != 1 || added["announcements"] != step.announcements || added["escalations"] != step.escalations {
			t.Errorf("%s adds %v", step.name, added)
		}
		check(t, find(t, app, collections.Alerts, outcome.Alerts[0].ID), map[string]any{"snoozed": step.snoozed, "status": "active"})
		check(t, find(t, app, collections.TriageScores, ""), map[string]any{"unacknowledged_alerts": step.open, "unacknowledged_critical": step.critical})
	}

	// While its kind is snoozed, a critical reading joins an open escalation and opens none.
	other := vigiltest.Patient(t, app, nil)
	patient = other
	snooze("pulse", true, now.Add(time.Hour))
	before := vigiltest.RowCounts(t, app)
	outcome := storeReading(t, app, engine, gatewaySubmission(patient, withPulse(bloodPressure(120, 80), 140)))
	if added := vigiltest.RowsAdded(t, app, before); added["alerts"] != 1 || added["announcements"]+added["escalations"] != 0 {
		t.Errorf("a snoozed critical reading adds %v", added)
	}
	check(t, find(t, app, collections.Alerts, outcome.Alerts[0].ID), map[string]any{"snoozed": true, "escalation": "", "level": "critical"})
	outcome = storeReading(t, app, engine, gatewaySubmission(patient, at(withPulse(bloodPressure(185, 80), 141), now)))
	for i, snoozed := range []bool{false, true} {
		check(t, find(t, app, collections.Alerts, outcome.Alerts[i].ID), map[string]any{"snoozed": snoozed, "escalation": outcome.EscalationID})
	}
	check(t, find(t, app, collections.Escalations, outcome.EscalationID), map[string]any{"alert": outcome.Alerts[0].ID})
}
