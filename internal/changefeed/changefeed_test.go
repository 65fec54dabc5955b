package changefeed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/changefeed"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func run(t testing.TB, app core.App, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// after returns the changes after a position as lines.
func after(t testing.TB, app core.App, seq int64) (lines []string) {
	t.Helper()
	found, err := changefeed.After(app, seq, nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %v %s %s %s", c.Type, c.ID(), c.Kind, c.Patient, c.Event)))
	}
	return lines
}

func last(t testing.TB, app core.App) int64 {
	t.Helper()
	seq, err := changefeed.LastSeq(app)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

const reading = `INSERT INTO observations (id, patient, status, observation_type, reading_key, gateway_key, created_at)
	VALUES ('o1', 'p1', 'final', 'weight', 'k', '', '2026-01-15T13:45:00.000000Z')`

// Each step changes the tables; want lists the changes it records.
func TestRecordedChanges(t *testing.T) {
	app := vigiltest.NewApp(t)
	run(t, app,
		reading,
		`INSERT INTO patients (id, mrn, active, deleted_at) VALUES ('p1', 'M1', TRUE, '')`,
		`INSERT INTO alerts (id, patient, status, level, type) VALUES ('000000000000012', 'p1', 'active', 'warning', 'pulse')`,
		`INSERT INTO escalations (id, patient, status, priority) VALUES ('000000000000003', 'p1', 'open', 'stat')`,
		`INSERT INTO devices (id, device_id, status, patient, battery_state) VALUES ('d1', 'BP-1', 'assigned', 'p1', 'normal')`,
		`INSERT INTO transmissions (id, patient, observation, status, next_retry_at, error_code, waits_for) VALUES ('TXN-2026-000001', 'p1', 'o1', 'pending', '', '', '')`,
		`INSERT INTO billing_entries (id, patient, lifecycle_status, service_date) VALUES ('b1', 'p1', 'pending_review', '2026-01-01')`,
		`INSERT INTO time_entries (id, patient, user) VALUES ('000000000000007', 'p1', 'u1')`,
		`INSERT INTO snoozes (id, patient) VALUES ('000000000000008', 'p1')`,
	)
	for _, step := range []struct {
		sql  string
		want string // lines joined by " | "
	}{
		{`UPDATE observations SET weight_kg = 81`, "observation o1 updated p1"},
		{`UPDATE observations SET weight_kg = 81`, ""},
		{`UPDATE observations SET fhir_status = 'transformed', fhir_version = 1, transformed_at = 'x', processing_ms = 3, updated_at = 'x', gateway_key = 'k',
			transform_error = 'x', emr_resource_id = 'x'`, ""},
		{`UPDATE observations SET status = 'entered_in_error', entered_in_error_by = 'x', entered_in_error_at = 'x'`, "observation o1 updated p1 observation.withdrawn"},
		{`UPDATE observations SET entered_in_error_by = 'y'`, "observation o1 updated p1"},
		{`UPDATE observations SET entered_in_error_reason = 'sealed' WHERE id = 'another'`, ""},

		{`UPDATE patients SET first_name = 'sealed', version = 2, updated_at = 'x'`, "patient p1 updated p1 patient.updated"},
		{`UPDATE patients SET updated_at = 'y', version = 3, email_index = 'x'`, ""},
		{`UPDATE patients SET active = FALSE, archived_at = 'x'`, "patient p1 updated p1 patient.archived"},
		{`UPDATE patients SET active = TRUE`, "patient p1 updated p1 patient.updated"},
		{`UPDATE patients SET deleted_at = 'x'`, "patient p1 deleted p1 patient.archived"},
		{`UPDATE patients SET deleted_at = ''`, "patient p1 created p1 patient.updated"},
		{`INSERT INTO patients (id, mrn, active, deleted_at) VALUES ('p2', 'M2', TRUE, '')`, "patient p2 created p2 patient.created"},

		{`UPDATE alerts SET status = 'acknowledged', acknowledged = TRUE`, "alert 12 updated p1"},
		{`UPDATE alerts SET normal_readings = 2, updated_at = 'x', held_until = 'x', follow_up_told = TRUE`, ""},
		{`UPDATE alerts SET status = 'resolved'`, "alert 12 updated p1 alert.resolved"},
		{`UPDATE alerts SET notes = 'sealed'`, "alert 12 updated p1"},
		{`UPDATE alerts SET status = 'active'`, "alert 12 updated p1 alert.raised"},
		{`UPDATE alerts SET status = 'auto_resolved'`, "alert 12 updated p1 alert.resolved"},
		{
			`INSERT INTO alerts (id, patient, status) VALUES ('000000000000100', 'p2', 'auto_resolved')`,
			"alert 100 created p2 alert.raised | alert 100 updated p2 alert.resolved",
		},
		{
			`INSERT INTO alerts (id, patient, status) VALUES ('000000000000101', 'p2', 'active'), ('000000000000102', 'p1', 'active')`,
			"alert 101 created p2 alert.raised | alert 102 created p1 alert.raised",
		},
		{`DELETE FROM alerts WHERE id > '000000000000100'`, "alert 101 deleted p2 | alert 102 deleted p1"},

		{`UPDATE escalations SET assigned_to = 'somebody'`, "escalation 3 updated p1 escalation.updated"},
		{`UPDATE escalations SET updated_at = 'x'`, "escalation 3 updated p1 escalation.updated"},
		{`UPDATE escalations SET noted_at = 'x', tier_at = 'x', waits_since = 'x', notified_at = 'x'`, ""},
		{`UPDATE escalations SET status = 'cancelled'`, "escalation 3 updated p1 escalation.resolved"},
		{`UPDATE escalations SET status = 'resolved'`, "escalation 3 updated p1 escalation.updated"},
		{`INSERT INTO escalations (id, patient, status) VALUES ('000000000000004', 'p1', 'open')`, "escalation 4 created p1 escalation.opened"},

		{`UPDATE devices SET last_seen_at = 'x', last_reading_at = 'x', battery_level = 80, battery_at = 'x', signal_strength = 3, state_at = 'x',
			clock_wrong_at = 'x', battery_told = 'low', status = 'assigned'`, ""},
		{`UPDATE devices SET status = 'connected'`, "device BP-1 updated p1 device.status"},
		{`UPDATE devices SET battery_state = 'low'`, "device BP-1 updated p1 device.status"},
		{`UPDATE devices SET flagged = TRUE, flag_reason = 'silent'`, "device BP-1 updated p1 device.status"},
		{`UPDATE devices SET firmware_version = '2'`, "device BP-1 updated p1"},
		{`UPDATE devices SET patient = '', status = 'inventory'`, "device BP-1 updated p1 device.status"},
		{`UPDATE devices SET patient = 'p2', status = 'assigned'`, "device BP-1 updated p2 device.status"},
		{`INSERT INTO devices (id, device_id, status, patient) VALUES ('d2', '0012', 'discovered', '')`, "device 0012 created"},

		{`UPDATE transmissions SET status = 'processing', claimed_at = 'x', updated_at = 'x'`, ""},
		{`UPDATE transmissions SET status = 'pending', attempt_count = 1`, ""},
		{`UPDATE transmissions SET status = 'processing'`, ""},
		{`UPDATE transmissions SET status = 'failed', next_retry_at = 'x', error_code = 'timeout'`, "transmission TXN-2026-000001 updated p1"},
		{`UPDATE transmissions SET status = 'processing'`, "transmission TXN-2026-000001 updated p1"},
		{`UPDATE transmissions SET status = 'failed', next_retry_at = '', error_code = 'timeout'`, "transmission TXN-2026-000001 updated p1 transmission.failed"},
		{`UPDATE transmissions SET correction_due_at = 'x'`, "transmission TXN-2026-000001 updated p1"},
		{`UPDATE transmissions SET status = 'pending', error_code = ''`, "transmission TXN-2026-000001 updated p1"},
		{`UPDATE transmissions SET status = 'failed', waits_for = 'link', error_code = 'unlinked'`, "transmission TXN-2026-000001 updated p1"},
		{`UPDATE transmissions SET waits_for = '', error_code = 'entered_in_error'`, "transmission TXN-2026-000001 updated p1"},
		{`UPDATE transmissions SET status = 'transmitted', emr_resource_id = 'e1', error_code = ''`, "transmission TXN-2026-000001 updated p1"},
		{`DELETE FROM transmissions`, "transmission TXN-2026-000001 deleted p1"},

		{`UPDATE billing_entries SET lifecycle_status = 'submitted'`, "claim b1 updated p1 claim.updated"},
		{`UPDATE billing_entries SET facts_checked_at = 'x', updated_at = 'x'`, ""},
		{`INSERT INTO billing_entries (id, patient, lifecycle_status, service_date, claim_id) VALUES ('b2', 'p2', 'pending_review', '2026-01-01', 'c2')`, "claim b2 created p2 claim.updated"},
		{`DELETE FROM billing_entries WHERE id = 'b1'`, "claim b1 deleted p1"},

		{`INSERT INTO care_team_members (id, patient, user, role) VALUES ('c1', 'p1', 'u1', 'nurse')`, "care_team p1 updated p1"},
		{`DELETE FROM care_team_members`, "care_team p1 updated p1"},
		{`INSERT INTO consents (id, patient, type) VALUES ('000000000000005', 'p1', 'monitoring')`, "consent 5 created p1"},
		{`UPDATE consents SET revoked_at = 'x'`, "consent 5 updated p1"},
		{`INSERT INTO orders (id, patient, kind) VALUES ('000000000000006', 'p1', 'monitoring')`, "order 6 created p1"},
		{`UPDATE time_entries SET notes = 'sealed'`, "time_entry 7 updated p1"},
		{`DELETE FROM time_entries`, "time_entry 7 deleted p1"},
		{`UPDATE snoozes SET known = '[]', quiet_since = 'x', critical_since = 'x'`, ""},
		{`UPDATE snoozes SET ended_at = 'x'`, "snooze 8 updated p1"},
		{`INSERT INTO thresholds (id, patient, bounds) VALUES ('t1', 'p1', '{}')`, "vital_config p1 updated p1"},
		{`UPDATE thresholds SET bounds = '{"weight":1}' WHERE patient = 'p1'`, "vital_config p1 updated p1"},
		{`UPDATE thresholds SET bounds = '{"weight":1}' WHERE patient = ''`, ""},
		{`DELETE FROM observations`, "observation o1 deleted p1"},
		// Tables that are not part of the feed.
		{`UPDATE triage_scores SET risk_score = 5`, ""},
		{`UPDATE users SET last_login_at = 'x'`, ""},
	} {
		seq := last(t, app)
		run(t, app, step.sql)
		if diff := cmp.Diff(step.want, strings.Join(after(t, app, seq), " | ")); diff != "" {
			t.Errorf("%s: %s", step.sql, diff)
		}
	}
}

// A rolled-back transaction records no change and leaves no gap.
func TestRollbackRecordsNothing(t *testing.T) {
	app := vigiltest.NewApp(t)
	seq := last(t, app)
	_ = app.RunInTransaction(func(tx core.App) error {
		run(t, tx, reading)
		return fmt.Errorf("no")
	})
	if found := after(t, app, seq); len(found) != 0 {
		t.Errorf("recorded %v", found)
	}
	run(t, app, reading)
	if got := last(t, app); got != seq+1 {
		t.Errorf("from %d to %d", seq, got)
	}
}

// Encrypting the same values under another key is not a change; the next write is.
func TestReencryptionIsNotAChange(t *testing.T) {
	app := vigiltest.NewApp(t)
	run(t, app, reading, `INSERT INTO patients (id, mrn, first_name) VALUES ('p1', 'M1', 'a')`)
	seq := last(t, app)
	err := app.RunInTransaction(func(tx core.App) error {
		run(t, tx, `UPDATE observations SET weight_kg = 5`)
		return collections.WithoutChanges(tx, func() error {
			run(t, tx, `UPDATE patients SET first_name = 'b'`)
			return nil
		})
	})
	run(t, app, `UPDATE observations SET weight_kg = 6`)
	if got := after(t, app, seq); err != nil || cmp.Diff([]string{"observation o1 updated p1", "observation o1 updated p1"}, got) != "" {
		t.Errorf("recorded %q, %v", got, err)
	}
}

// The time of a change is when it was written, in the stored format; that of a new reading is its stored creation time.
func TestChangeTime(t *testing.T) {
	app := vigiltest.NewApp(t)
	seq, before := last(t, app), time.Now().Truncate(time.Millisecond)
	run(t, app, reading, `UPDATE observations SET weight_kg = 5`)
	found, err := changefeed.After(app, seq, []string{"observation"}, 2)
	if err != nil || len(found) != 2 || !found[0].At.Equal(vigiltest.Clock) || found[1].At.Before(before) || found[1].At.After(time.Now()) || found[1].Seq != seq+2 {
		t.Errorf("%v, %v", found, err)
	}
	if found, err := changefeed.After(app, seq, []string{"alert"}, 1); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// Missing and outdated triggers are installed again; current ones stay.
func TestTriggersAreReinstalled(t *testing.T) {
	app := vigiltest.NewApp(t)
	schema := func() (version int) {
		if err := app.NonconcurrentDB().NewQuery(`PRAGMA schema_version`).Row(&version); err != nil {
			t.Fatal(err)
		}
		return version
	}
	before := schema()
	if err := collections.InstallChangeTriggers(app); err != nil || schema() != before {
		t.Fatalf("current triggers were rewritten (%v)", err)
	}
	run(t, app, `DROP TRIGGER changes_observations_insert`, `DROP TRIGGER changes_alerts_update`,
		`CREATE TRIGGER changes_alerts_update AFTER UPDATE ON alerts BEGIN SELECT 1; END`,
		`CREATE TRIGGER changes_of_old AFTER INSERT ON alerts BEGIN SELECT RAISE(ABORT, 'old'); END`,
		`ALTER TABLE observations ADD COLUMN glucose_ketone REAL`)
	if err := collections.InstallChangeTriggers(app); err != nil {
		t.Fatal(err)
	}
	seq := last(t, app)
	run(t, app, reading, `UPDATE observations SET glucose_ketone = 1`, `INSERT INTO alerts (id, patient, status) VALUES ('000000000000001', 'p1', 'active')`)
	want := []string{"observation o1 created p1 observation.created", "observation o1 updated p1", "alert 1 created p1 alert.raised"}
	if diff := cmp.Diff(want, after(t, app, seq)); diff != "" {
		t.Error(diff)
	}
}

// PocketBase changes a collection by altering its table, or by renaming it and back.
func TestTriggersSurviveCollectionChange(t *testing.T) {
	app := vigiltest.NewApp(t)
	collection, err := app.FindCollectionByNameOrId(collections.Observations)
	if err != nil {
		t.Fatal(err)
	}
	collection.Fields.Add(&core.TextField{Name: "ward"})
	if err := app.Save(collection); err != nil {
		t.Fatal(err)
	}
	seq := last(t, app)
	run(t, app, reading, `UPDATE observations SET weight_kg = 7`)
	want := []string{"observation o1 created p1 observation.created", "observation o1 updated p1"}
	if diff := cmp.Diff(want, after(t, app, seq)); diff != "" {
		t.Error(diff)
	}
}
