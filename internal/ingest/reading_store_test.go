package ingest_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A reading adds exactly these rows in all tables.
func TestIngestAddsRows(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	before := vigiltest.RowCounts(t, app)
	steps := []struct {
		name    string
		reading vitals.Reading
		want    map[string]int
	}{
		{"calm", bloodPressure(120, 80), map[string]int{"observations": 1, "transmissions": 1, "reading_days": 1, "daily_counts": 1, "audit_log": 1, "sequences": 1, "processing_times": 1, "transmission_totals": 1}},
		{"warning, and the calm one was measured since", at(bloodPressure(150, 80), now.Add(-3*time.Hour)), map[string]int{"observations": 1, "transmissions": 1, "alerts": 1, "announcements": 1, "audit_log": 3, "sequences": 1, "alert_totals": 1}},
		{"critical, twice over", withPulse(bloodPressure(185, 80), 135), map[string]int{
			"observations": 1, "transmissions": 1, "alerts": 2,
			"escalations": 1, "announcements": 3, "audit_log": 4, "sequences": 1, "alert_totals": 2,
		}},
		{"critical again", at(bloodPressure(190, 80), now), map[string]int{"observations": 1, "transmissions": 1, "alerts": 1, "announcements": 1, "audit_log": 3}},
		{"another kind", weight(80), map[string]int{"observations": 1, "transmissions": 1, "reading_days": 1, "daily_counts": 1, "audit_log": 1}},
	}
	for _, step := range steps {
		storeReading(t, app, engine, gatewaySubmission(patient, step.reading))
		if diff := cmp.Diff(step.want, vigiltest.RowsAdded(t, app, before)); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
		before = vigiltest.RowCounts(t, app)
	}
	if result, err := audit.Verify(app, nil); err != nil || !result.Valid {
		t.Errorf("audit chain: %+v (%v)", result, err)
	}
}

func TestIngestStoresEverything(t *testing.T) {
	app, engine := newApp(t, rules)
	provider := vigiltest.User(t, app, authz.Provider, vigiltest.Email("provider@vigil.test"))
	patient := vigiltest.Patient(t, app, dbx.Params{"primary_provider": provider.Id, "time_zone": "America/Los_Angeles"})
	vigiltest.Assign(t, app, "BP-1", patient, now.AddDate(-1, 0, 0))
	measured := time.Date(2026, 1, 15, 5, 30, 0, 123456000, time.UTC) // still the 14th in Los Angeles
	s := gatewaySubmission(patient, at(from("BP-1", withPulse(bloodPressure(150, 80), 135)), measured))
	s.GatewayKey, s.ReceivedAt = "BP-1|1|blood_pressure", now.Add(-1500*time.Microsecond)
	outcome := storeReading(t, app, engine, s)

	record := find(t, app, collections.Observations, outcome.Observation.ID)
	check(t, record, map[string]any{
		"patient": patient, "observation_type": "blood_pressure", "systolic": 150.0, "diastolic": 80.0, "pulse": 135.0,
		"weight_kg": nil, "device_id": "BP-1", "source": "gateway", "status": "final", "fhir_status": "pending", "fhir_version": 1.0,
		"measured_at": "2026-01-15T05:30:00.123456Z", "created_at": collections.FormatInstant(now), "transformed_at": collections.FormatInstant(now),
		"gateway_key": "BP-1|1|blood_pressure", "processing_ms": 1.5,
	})
	if len(outcome.Alerts) != 2 || outcome.Alerts[0].Level != "warning" || outcome.Alerts[1].Level != "critical" {
		t.Fatalf("alerts: %+v", outcome.Alerts)
	}
	warning, critical := find(t, app, collections.Alerts, outcome.Alerts[0].ID), find(t, app, collections.Alerts, outcome.Alerts[1].ID)
	check(t, warning, map[string]any{"type": "blood_pressure", "escalation": "", "observation": outcome.Observation.ID})
	check(t, critical, map[string]any{"type": "pulse", "escalation": outcome.EscalationID, "observation": outcome.Observation.ID})
	check(t, find(t, app, collections.Escalations, outcome.EscalationID), map[string]any{
		"priority": "stat", "status": "open", "created_by": "system",
		"alert": critical.Id, "assigned_to": "provider@vigil.test", "reason": "Pulse 135 bpm is at or above the critical limit 130.",
	})
	check(t, find(t, app, collections.Transmissions, outcome.TransmissionID), map[string]any{
		"observation": outcome.Observation.ID, "patient": patient,
		"observation_type": "blood_pressure", "status": "pending", "attempt_count": 0.0,
	})
	if outcome.TransmissionID != "TXN-2026-000001" {
		t.Errorf("transmission %s", outcome.TransmissionID)
	}
	if diff := cmp.Diff([]string{"2026-01-14 blood_pressure 1 1"}, texts(t, app,
		`SELECT day || ' ' || observation_type || ' ' || readings || ' ' || device_readings FROM reading_days`)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"2026-01-15 blood_pressure final 1"}, texts(t, app,
		`SELECT day || ' ' || observation_type || ' ' || status || ' ' || readings FROM daily_counts`)); diff != "" {
		t.Error(diff)
	}
	check(t, find(t, app, collections.TriageScores, ""), map[string]any{
		"risk_level": "critical", "unacknowledged_alerts": 2.0,
		"unacknowledged_critical": 1.0, "active_escalations": 1.0, "last_reading_at": "2026-01-15T05:30:00.123456Z", "needs_review": true,
	})
	want := []string{
		"observation.create gateway Observation " + outcome.Observation.ID, "alert.create system Alert 1", "alert.create system Alert 2",
		"escalation.create system Escalation 1",
	}
	if diff := cmp.Diff(want, trail(t, app, patient)); diff != "" {
		t.Error(diff)
	}
}

// An escalation is not assigned to a provider who can no longer sign in.
func TestIngestInactiveProvider(t *testing.T) {
	app, engine := newApp(t, rules)
	provider := vigiltest.User(t, app, authz.Provider)
	patient := vigiltest.Patient(t, app, dbx.Params{"primary_provider": provider.Id})
	if _, err := app.DB().Update(collections.Users, dbx.Params{"is_active": false}, dbx.HashExp{"id": provider.Id}).Execute(); err != nil {
		t.Fatal(err)
	}
	storeReading(t, app, engine, gatewaySubmission(patient, bloodPressure(185, 80)))
	check(t, find(t, app, collections.Escalations, ""), map[string]any{"assigned_to": "", "assigned_at": ""})
}

// trail returns the audit trail of a patient's readings, in order.
func trail(t *testing.T, app core.App, patient string) []string {
	t.Helper()
	return texts(t, app, `SELECT event || ' ' || actor_type || ' ' || resource_type || ' ' || resource_id FROM audit_log
		WHERE patient = '`+patient+`' AND request_id = 'request-1' ORDER BY id`)
}

func texts(t *testing.T, app core.App, query string) (rows []string) {
	t.Helper()
	if err := app.DB().NewQuery(query).Column(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// find returns the record with the id, or the only one.
func find(t *testing.T, app core.App, collection, id string) *core.Record {
	t.Helper()
	query := app.RecordQuery(collection)
	if id != "" {
		query.AndWhere(dbx.HashExp{"id": id})
	}
	var records []*core.Record
	if err := query.All(&records); err != nil || len(records) != 1 {
		t.Fatalf("%s %s: %d records (%v)", collection, id, len(records), err)
	}
	return records[0]
}

func check(t *testing.T, record *core.Record, want map[string]any) {
	t.Helper()
	for column, value := range want {
		if got := record.Get(column); got != value {
			t.Errorf("%s.%s is %v, want %v", record.Collection().Name, column, got, value)
		}
	}
}

func TestIngestJoinsAnOpenEscalation(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	first := storeReading(t, app, engine, gatewaySubmission(patient, bloodPressure(185, 80)))
	if _, err := app.DB().Update(collections.Escalations, dbx.Params{"status": "in_progress", "updated_at": "", "priority": "urgent"},
		dbx.HashExp{"id": first.EscalationID}).Execute(); err != nil {
		t.Fatal(err)
	}
	second := storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(190, 80), now)))
	if second.EscalationID != first.EscalationID {
		t.Fatalf("a second escalation: %s", second.EscalationID)
	}
	check(t, find(t, app, collections.Escalations, ""), map[string]any{
		"alert": first.Alerts[0].ID, "priority": "stat", "status": "in_progress",
		"updated_at": collections.FormatInstant(now),
	})
	check(t, find(t, app, collections.Alerts, second.Alerts[0].ID), map[string]any{"escalation": first.EscalationID})
	events := trail(t, app, patient)
	if diff := cmp.Diff([]string{"alert.create system Alert 2", "escalation.update system Escalation 1"}, events[len(events)-2:]); diff != "" {
		t.Error(diff)
	}
}

func TestIngestResolvesAlerts(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	raised := storeReading(t, app, engine, gatewaySubmission(patient, bloodPressure(185, 80)))
	var status []string
	for minute := range 2 {
		storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(120, 80), now.Add(time.Duration(minute)*time.Minute))))
		status = append(status, find(t, app, collections.Alerts, raised.Alerts[0].ID).GetString("status"))
	}
	if diff := cmp.Diff([]string{"active", "auto_resolved"}, status); diff != "" {
		t.Error(diff)
	}
	check(t, find(t, app, collections.TriageScores, ""), map[string]any{"unacknowledged_alerts": 0.0, "active_escalations": 1.0, "risk_score": 86.0})
	check(t, find(t, app, collections.Escalations, ""), map[string]any{"status": "open"})
	events := trail(t, app, patient)
	if got := events[len(events)-1]; got != "alert.auto_resolve system Alert 1" {
		t.Error(got)
	}
}

// The weights in the window include the reading itself, which is stored already; it must not be compared with itself.
func TestIngestWeights(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	for _, step := range []struct {
		kg     float64
		ago    time.Duration
		alerts int
	}{
		{80, 6 * 24 * time.Hour, 0}, // the first reading
		{82, 24 * time.Hour, 0},
		{82.3, time.Hour, 1},          // 2.3 above the lowest in seven days
		{77.5, 2 * 24 * time.Hour, 1}, // late: 2.5 below the first
		{79.7, 0, 1},                  // 2.6 below the highest
	} {
		outcome := storeReading(t, app, engine, gatewaySubmission(patient, at(weight(step.kg), now.Add(-step.ago))))
		if len(outcome.Alerts) != step.alerts {
			t.Errorf("%v kg: %+v", step.kg, outcome.Alerts)
		}
	}
	check(t, find(t, app, collections.TriageScores, ""), map[string]any{"last_reading_at": collections.FormatInstant(now)})
}

func TestIngestDuplicates(t *testing.T) {
	app, engine := newApp(t, rules)
	patient, other := vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)
	base := at(from("BP-1", bloodPressure(185, 80)), now.Add(-90*time.Second))
	first := gatewaySubmission(patient, base)
	first.GatewayKey = "key"
	stored := storeReading(t, app, engine, first)
	before := vigiltest.RowCounts(t, app)

	change := func(f func(*ingest.Submission)) ingest.Submission {
		s := first
		f(&s)
		return s
	}
	flagged := func(irregular bool) vitals.Reading {
		r := base
		r.SetQualifier(vitals.IrregularHeartbeat, map[bool]string{true: vitals.Yes, false: vitals.No}[irregular])
		return r
	}
	tests := []struct {
		name                string
		submission          ingest.Submission
		duplicate, conflict bool
	}{
		{"the same event again", first, true, false},
		{"the same reading by API", change(func(s *ingest.Submission) { s.GatewayKey, s.Source = "", vitals.SourceAPI }), true, false},
		{"within the second", change(func(s *ingest.Submission) { s.Reading = at(base, base.MeasuredAt.Add(999*time.Millisecond)) }), true, false},
		{"a missing flag equals no", change(func(s *ingest.Submission) { s.Reading = flagged(false) }), true, false},
		{"and by API", change(func(s *ingest.Submission) { s.GatewayKey, s.Reading = "", flagged(false) }), true, false},
		{"other values under the same key", change(func(s *ingest.Submission) { s.Reading = from("BP-1", bloodPressure(186, 80)) }), false, true},
		{"another patient under the same key", change(func(s *ingest.Submission) { s.PatientID = other }), false, true},
	}
	for _, test := range tests {
		outcome := storeReading(t, app, engine, test.submission)
		if outcome.Duplicate != test.duplicate || outcome.Conflict != test.conflict || outcome.Observation.ID != stored.Observation.ID {
			t.Errorf("%s: duplicate %t, conflict %t of %s", test.name, outcome.Duplicate, outcome.Conflict, outcome.Observation.ID)
		}
	}
	if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 {
		t.Errorf("repeats left rows: %v", added)
	}

	different := []ingest.Submission{
		change(func(s *ingest.Submission) {
			s.GatewayKey, s.Reading = "", from("BP-1", at(bloodPressure(186, 80), base.MeasuredAt))
		}),
		change(func(s *ingest.Submission) { s.GatewayKey, s.Reading = "", from("", base) }),
		change(func(s *ingest.Submission) {
			s.GatewayKey, s.Reading = "", at(base, base.MeasuredAt.Add(time.Second))
		}),
		change(func(s *ingest.Submission) { s.GatewayKey, s.Reading = "", flagged(true) }),
		change(func(s *ingest.Submission) { s.GatewayKey, s.PatientID = "", other }),
		change(func(s *ingest.Submission) { s.AllowDuplicates = true }),
		change(func(s *ingest.Submission) { s.AllowDuplicates = true }),
	}
	for i, s := range different {
		if outcome := storeReading(t, app, engine, s); outcome.Duplicate || outcome.Conflict {
			t.Errorf("%d is a reading of its own: %+v", i, outcome)
		}
	}
}

// A gateway event that repeats a reading from the API adds the gateway's key to it: other values under this key conflict.
func TestIngestRepeatAdoptsGatewayKey(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	reading := at(from("BP-1", bloodPressure(120, 80)), now.Add(-time.Hour))
	byAPI, repeat, other := gatewaySubmission(patient, reading), gatewaySubmission(patient, reading), gatewaySubmission(patient, from("BP-1", at(bloodPressure(130, 80), reading.MeasuredAt)))
	byAPI.Source, repeat.GatewayKey, other.GatewayKey = vitals.SourceAPI, "key", "key"
	stored := storeReading(t, app, engine, byAPI)
	for i, s := range []ingest.Submission{repeat, repeat, other} {
		outcome := storeReading(t, app, engine, s)
		if outcome.Observation.ID != stored.Observation.ID || outcome.Duplicate != (i < 2) || outcome.Conflict != (i == 2) {
			t.Errorf("event %d: duplicate %t, conflict %t", i, outcome.Duplicate, outcome.Conflict)
		}
	}
}

// A gateway event with the values of one reading and the key of another is a conflict, unless a person stored that reading separately.
func TestIngestDuplicateOfTwo(t *testing.T) {
	for source, duplicate := range map[vitals.Source]bool{vitals.SourceAPI: false, vitals.SourcePortal: false, vitals.SourceGateway: true} {
		app, engine := newApp(t, rules)
		patient := vigiltest.Patient(t, app, nil)
		first := gatewaySubmission(patient, from("BP-1", bloodPressure(130, 80)))
		first.GatewayKey = "key"
		readingSnapshot, event := gatewaySubmission(patient, from("BP-1", bloodPressure(120, 80))), first
		readingSnapshot.Source, event.Reading = source, readingSnapshot.Reading
		want := storeReading(t, app, engine, first).Observation.ID
		if other := storeReading(t, app, engine, readingSnapshot).Observation.ID; duplicate {
			want = other
		}
		for range 2 {
			outcome := storeReading(t, app, engine, event)
			if outcome.Duplicate != duplicate || outcome.Conflict == duplicate || outcome.Observation.ID != want {
				t.Errorf("%s: duplicate %t, conflict %t of %s, want %s", source, outcome.Duplicate, outcome.Conflict, outcome.Observation.ID, want)
			}
		}
	}
}

func TestIngestRefusals(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	archived, deleted := vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)
	change := func(id string, columns dbx.Params) {
		if _, err := app.DB().Update(collections.Patients, columns, dbx.HashExp{"id": id}).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	change(archived, dbx.Params{"active": false})
	change(deleted, dbx.Params{"deleted_at": collections.FormatInstant(now), "active": false})
	vigiltest.Assign(t, app, "BP-2", vigiltest.Patient(t, app, nil), now.AddDate(-1, 0, 0))
	before := vigiltest.RowCounts(t, app)
	tests := []struct {
		name       string
		submission ingest.Submission
		code       string
		field      string
	}{
		{"nobody", gatewaySubmission("0194c5a8-0000-7000-8000-00000000dead", bloodPressure(120, 80)), "not_found", ""},
		{"deleted", gatewaySubmission(deleted, bloodPressure(120, 80)), "not_found", ""},
		{"archived", gatewaySubmission(archived, bloodPressure(120, 80)), "validation_error", "patient_id"},
		{"another patient's device", gatewaySubmission(patient, from("BP-2", bloodPressure(120, 80))), "device_patient_mismatch", ""},
		{"before birth", gatewaySubmission(patient, at(bloodPressure(120, 80), time.Date(1950, 12, 10, 4, 59, 59, 0, time.UTC))), "validation_error", "measured_at"},
	}
	for _, test := range tests {
		_, err := tryIngest(app, engine, test.submission)
		var refused *fault.Error
		if !errors.As(err, &refused) || refused.Code != test.code || (test.field != "" && refused.Fields[test.field] == nil) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 {
		t.Errorf("refusals left rows: %v", added)
	}
	born := at(bloodPressure(120, 80), time.Date(1950, 12, 10, 5, 0, 0, 0, time.UTC)) // midnight in New York
	storeReading(t, app, engine, gatewaySubmission(patient, born))
	early := at(from("BP-2", bloodPressure(120, 80)), now.AddDate(-1, 0, -1)) // before the device was assigned to them
	storeReading(t, app, engine, gatewaySubmission(patient, early))
	change(patient, dbx.Params{"date_of_birth": "damaged"})
	storeReading(t, app, engine, gatewaySubmission(patient, at(weight(80), now)))
}

// Without automatic transforms there is no FHIR form and no delivery.
func TestIngestWithoutTransform(t *testing.T) {
	manual := rules
	manual.AutoTransform = false
	app, engine := newApp(t, manual)
	outcome := storeReading(t, app, engine, gatewaySubmission(vigiltest.Patient(t, app, nil), bloodPressure(120, 80)))
	if outcome.TransmissionID != "" {
		t.Errorf("transmission %s", outcome.TransmissionID)
	}
	check(t, find(t, app, collections.Observations, ""), map[string]any{"fhir_status": "", "fhir_version": 0.0, "transformed_at": ""})
	if n := vigiltest.RowCounts(t, app)[collections.Transmissions]; n != 0 {
		t.Errorf("%d transmissions", n)
	}
}

// A reading is stored once for any fraction of its second; any other difference makes another reading.
func TestIngestOncePerSecond(t *testing.T) {
	app, engine := newApp(t, rules)
	patient, other := vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)
	second := now.Add(-time.Hour).Truncate(time.Second)
	first := storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(120, 80), second.Add(250*time.Millisecond)))).Observation.ID
	again := func(version string) {
		t.Helper()
		for _, fraction := range []time.Duration{0, time.Microsecond, 250 * time.Millisecond, time.Second - time.Microsecond, time.Second - time.Nanosecond} {
			outcome := storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(120, 80), second.Add(fraction))))
			if !outcome.Duplicate || outcome.Observation.ID != first {
				t.Errorf("%s, %s later: duplicate %t of %s, want %s", version, fraction, outcome.Duplicate, outcome.Observation.ID, first)
			}
		}
	}
	again("as stored today")
	if _, err := app.DB().NewQuery("UPDATE observations SET reading_key = reading_key || 'zz-_09AZ_zz-_09AZ_zz'").Execute(); err != nil {
		t.Fatal(err)
	}
	again("as stored by an earlier version, with a longer key")
	for name, s := range map[string]ingest.Submission{
		"the second before": gatewaySubmission(patient, at(bloodPressure(120, 80), second.Add(-time.Microsecond))),
		"the second after":  gatewaySubmission(patient, at(bloodPressure(120, 80), second.Add(time.Second))),
		"other values":      gatewaySubmission(patient, at(bloodPressure(120, 81), second.Add(250*time.Millisecond))),
		"another kind":      gatewaySubmission(patient, at(weight(80), second.Add(250*time.Millisecond))),
		"another device":    gatewaySubmission(patient, at(from("BP-9", bloodPressure(120, 80)), second.Add(250*time.Millisecond))),
		"another patient's": gatewaySubmission(other, at(bloodPressure(120, 80), second.Add(250*time.Millisecond))),
	} {
		if storeReading(t, app, engine, s).Duplicate {
			t.Errorf("%s is a duplicate", name)
		}
	}
	repeatable := gatewaySubmission(patient, at(bloodPressure(120, 80), second))
	repeatable.AllowDuplicates = true
	for range 2 {
		if storeReading(t, app, engine, repeatable).Duplicate {
			t.Error("a repeatable reading is a duplicate")
		}
	}
}

// The lookup by key reads only its indexes.
func TestFindByKeyUsesItsIndex(t *testing.T) {
	app, _ := newApp(t, rules)
	var plan []string
	app.ConcurrentDB().(*dbx.DB).QueryLogFunc = func(_ context.Context, _ time.Duration, query string, _ *sql.Rows, _ error) {
		plan = append(plan, query)
	}
	for _, find := range []func() error{
		func() error {
			_, err := collections.FindObservationByReading(app, collections.ReadingKey{PatientID: "p", Kind: "weight", MeasuredAt: now, Key: "k"})
			return err
		},
		func() error { _, err := collections.FindObservationByGatewayKey(app, "k"); return err },
	} {
		if err := find(); !collections.IsNotFound(err) {
			t.Error(err)
		}
	}
	app.ConcurrentDB().(*dbx.DB).QueryLogFunc = nil
	plan = slices.DeleteFunc(plan, func(query string) bool { return !strings.Contains(query, "`observations`") })
	for i, want := range []string{
		"idx_observations_patient_kind (patient=? AND observation_type=? AND measured_at>? AND measured_at<?)", "idx_observations_gateway_key (gateway_key=?)",
	} {
		var steps []struct {
			Detail string `db:"detail"`
		}
		if err := app.DB().NewQuery("EXPLAIN QUERY PLAN " + plan[i]).All(&steps); err != nil || len(steps) != 1 || !strings.HasSuffix(steps[0].Detail, want) {
			t.Errorf("%v (%v), want %s", steps, err, want)
		}
	}
}
