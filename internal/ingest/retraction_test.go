package ingest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var nurse = audit.User(7, "nurse@vigil.test", "nurse", audit.Origin{Address: "192.0.2.7", RequestID: "request-2"})

// A retracted reading leaves every count and rank as if it had never been stored; the history stays.
func TestRetract(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	vigiltest.Assign(t, app, "BP-1", patient, now.AddDate(-1, 0, 0))
	calm := storeReading(t, app, engine, gatewaySubmission(patient, at(from("BP-1", withPulse(bloodPressure(120, 80), 70)), now.Add(-2*time.Hour))))
	row := texts(t, app, `SELECT risk_score || ' ' || risk_level || ' ' || latest_vitals || ' ' || last_reading_at FROM triage_scores`)
	counts := `SELECT day || ' ' || observation_type || ' ' || status || ' ' || readings FROM daily_counts ORDER BY status`
	days := `SELECT day || ' ' || first_observation || ' ' || readings || ' ' || device_readings FROM reading_days`
	dayBefore := texts(t, app, days)

	wrong := storeReading(t, app, engine, gatewaySubmission(patient, at(from("BP-1", withPulse(bloodPressure(150, 80), 110)), now.Add(-time.Hour))))
	before := vigiltest.RowCounts(t, app)
	o, err := engine.Retract(app, wrong.Observation.ID, "wrong cuff", nurse, now.Add(time.Minute))
	if err != nil || !o.EnteredInError || o.FHIRVersion != 2 || o.FHIRStatus != collections.FHIRFailed {
		t.Fatalf("withdrawn: version %d, FHIR %q, error %v", o.FHIRVersion, o.FHIRStatus, err)
	}
	if form, err := fhir.Observation(o.FHIR(), "").Encode(); err != nil || !strings.Contains(string(form), `"status":"entered-in-error"`) {
		t.Errorf("its FHIR form is %s (%v)", form, err)
	}
	check(t, find(t, app, collections.Observations, o.ID), map[string]any{
		"status": "entered_in_error", "entered_in_error_by": "nurse@vigil.test", "entered_in_error_reason": "wrong cuff",
		"entered_in_error_at": collections.FormatInstant(now.Add(time.Minute)),
	})
	for _, alert := range wrong.Alerts {
		check(t, find(t, app, collections.Alerts, alert.ID), map[string]any{
			"status": "resolved", "acknowledged": true, "resolved_by": "nurse@vigil.test", "outcome": "entered_in_error",
		})
	}
	check(t, find(t, app, collections.Transmissions, wrong.TransmissionID), map[string]any{
		"status": "failed", "next_retry_at": "", "error_code": "entered_in_error",
	})
	if diff := cmp.Diff(row, texts(t, app, `SELECT risk_score || ' ' || risk_level || ' ' || latest_vitals || ' ' || last_reading_at FROM triage_scores`)); diff != "" {
		t.Errorf("place: %s", diff)
	}
	if diff := cmp.Diff(dayBefore, texts(t, app, days)); diff != "" {
		t.Errorf("day: %s", diff)
	}
	day := now.In(newYork).Format(time.DateOnly)
	if diff := cmp.Diff([]string{day + " blood_pressure entered_in_error 1", day + " blood_pressure final 1"}, texts(t, app, counts)); diff != "" {
		t.Errorf("counts: %s", diff)
	}
	added := vigiltest.RowsAdded(t, app, before)
	if diff := cmp.Diff(map[string]int{"audit_log": 1 + len(wrong.Alerts), "daily_counts": 1, "alert_totals": len(wrong.Alerts), "transmission_totals": 1}, added); diff != "" {
		t.Errorf("rows: %s", diff)
	}

	// Repeating the retraction or the reading changes nothing.
	before = vigiltest.RowCounts(t, app)
	again, err := engine.Retract(app, o.ID, "another reason", nurse, now.Add(time.Hour))
	if err != nil || again.UpdatedAt != o.UpdatedAt {
		t.Errorf("again: %v", err)
	}
	if outcome := storeReading(t, app, engine, gatewaySubmission(patient, wrong.Observation.Reading)); !outcome.Duplicate || !outcome.Observation.EnteredInError {
		t.Error("a withdrawn reading came back")
	}
	if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 {
		t.Errorf("again adds %v", added)
	}

	// Retracting the last reading of a day removes the day.
	if _, err := engine.Retract(app, calm.Observation.ID, "not this patient", nurse, now); err != nil {
		t.Fatal(err)
	}
	if remaining := texts(t, app, days); len(remaining) != 0 {
		t.Errorf("days left: %v", remaining)
	}
	check(t, find(t, app, collections.TriageScores, ""), map[string]any{"risk_level": "no_data", "last_reading_at": ""})
	if result, err := audit.Verify(app, nil); err != nil || !result.Valid {
		t.Errorf("audit chain: %+v (%v)", result, err)
	}
}

// Days with data keep the time zone in which they were, so a later retraction removes the reading from the right day.
func TestRetractAfterZoneChange(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, dbx.Params{"time_zone": "America/New_York"})
	vigiltest.Assign(t, app, "BP-1", patient, now.AddDate(-1, 0, 0))
	days := `SELECT day || ' ' || first_observation || ' ' || readings || ' ' || device_readings FROM reading_days ORDER BY day`
	var stored []string
	for _, day := range []int{5, 6} {
		r := at(from("BP-1", bloodPressure(120, 80)), time.Date(2026, 1, day, 6, 0, 0, 0, time.UTC))
		stored = append(stored, storeReading(t, app, engine, gatewaySubmission(patient, r)).Observation.ID)
	}
	if diff := cmp.Diff([]string{"2026-01-05 " + stored[0] + " 1 1", "2026-01-06 " + stored[1] + " 1 1"}, texts(t, app, days)); diff != "" {
		t.Error(diff)
	}
	record := find(t, app, collections.Patients, patient)
	record.Set("time_zone", "America/Los_Angeles")
	if err := app.Save(record); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2026-01-05 " + stored[0] + " 1 1", "2026-01-06 " + stored[1] + " 1 1"}, texts(t, app, days)); diff != "" {
		t.Errorf("moved: %s", diff)
	}
	if _, err := engine.Retract(app, stored[1], "wrong cuff", nurse, now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2026-01-05 " + stored[0] + " 1 1"}, texts(t, app, days)); diff != "" {
		t.Errorf("withdrawn: %s", diff)
	}
	if _, wrong := recount(t, app, engine); wrong != 0 {
		t.Errorf("the recount reports %d wrong days", wrong)
	}
}

// A queued delivery is canceled. If the EMR has or may have the reading, its copy is updated once, and no manual task is opened unless the
// EMR rejects the update.
func TestRetractDelivered(t *testing.T) {
	for status, want := range map[string]string{
		"pending": "failed 0 failed", "failed": "failed 0 failed", "processing": "processing 1 processing", "transmitted": "pending 1 pending",
	} {
		app, engine := newApp(t, rules)
		patient := vigiltest.Patient(t, app, nil)
		outcome := storeReading(t, app, engine, gatewaySubmission(patient, bloodPressure(120, 80)))
		for table, changed := range map[string]dbx.Params{collections.Transmissions: {"status": status}, collections.Observations: {"fhir_status": status}} {
			id := map[string]string{collections.Transmissions: outcome.TransmissionID, collections.Observations: outcome.Observation.ID}[table]
			if _, err := app.DB().Update(table, changed, dbx.HashExp{"id": id}).Execute(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, err := engine.Retract(app, outcome.Observation.ID, "wrong", nurse, now); err != nil {
				t.Fatal(err)
			}
		}
		got := texts(t, app, `SELECT t.status || ' ' || t.corrections || ' ' || o.fhir_status FROM transmissions t JOIN observations o ON o.id = t.observation`)
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v, want %s", status, got, want)
		}
		if notified := texts(t, app, `SELECT kind FROM announcements`); len(notified) != 0 {
			t.Errorf("%s: announced %v", status, notified)
		}
	}
}

func TestRetractUnknown(t *testing.T) {
	app, engine := newApp(t, rules)
	if _, err := engine.Retract(app, collections.NewUUID(), "x", nurse, now); vigiltest.Code(err) != "not_found" {
		t.Errorf("unknown: %v", err)
	}
}

// Throughput counts by the time of storage, not of measurement.
func TestLoadThroughput(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	midnight := time.Date(2026, 1, 15, 0, 0, 0, 0, newYork)
	if n, err := ingest.LoadThroughput(app, midnight, now); err != nil || n != (ingest.Throughput{}) {
		t.Errorf("empty: %+v, %v", n, err)
	}
	for i, age := range []time.Duration{time.Minute, 14 * time.Minute, 59 * time.Minute, 61 * time.Minute, now.Sub(midnight), now.Sub(midnight) + time.Second} {
		o := storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(120, 80), now.AddDate(0, 0, -i))))
		changed := dbx.Params{"created_at": collections.FormatInstant(now.Add(-age))}
		if _, err := app.DB().Update(collections.Observations, changed, dbx.HashExp{"id": o.Observation.ID}).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	n, err := ingest.LoadThroughput(app, midnight, now)
	want := ingest.Throughput{Today: 5, LastHour: 3, PerMinute: 2.0 / 15, LastAt: now.Add(-time.Minute)}
	if diff := cmp.Diff(want, n); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	// Just after midnight the last hour is longer than the day.
	if n, err = ingest.LoadThroughput(app, now.Add(-time.Second), now); err != nil || n.Today != 0 || n.LastHour != 3 {
		t.Errorf("after midnight: %+v, %v", n, err)
	}
}

// With the setting on, a pulse is delivered as an observation of its own, once per reading, also if it arrives later.
func TestHeartRateIsQueued(t *testing.T) {
	on := rules
	on.SendHeartRate = true
	for _, test := range []struct {
		name    string
		rules   ingest.Rules
		reading vitals.Reading
		want    int
	}{
		{"off", rules, bloodPressure(120, 80).With(vitals.Pulse, 60), 0},
		{"pulse", on, bloodPressure(120, 80).With(vitals.Pulse, 60), 1},
		{"no pulse", on, bloodPressure(120, 80), 0},
		{"oximeter", on, vitals.Reading{Kind: vitals.PulseOximetry, MeasuredAt: now}.With(vitals.SpO2, 97).With(vitals.Pulse, 60), 1},
	} {
		app, engine := newApp(t, test.rules)
		storeReading(t, app, engine, gatewaySubmission(vigiltest.Patient(t, app, nil), test.reading))
		forms := texts(t, app, `SELECT form || ' ' || status FROM transmissions WHERE form != ''`)
		if len(forms) != test.want || test.want == 1 && forms[0] != "heart_rate pending" {
			t.Errorf("%s: %v", test.name, forms)
		}
	}
}
