package ingest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const patientID = "0194c5a8-0000-7000-8000-000000000001"

// A reading created as a record leaves the same rows as the same reading stored by the writer.
func TestCreateFromRecordEqualsIngest(t *testing.T) {
	first := withPulse(bloodPressure(185, 95), 135)
	first.DeviceID = "BP-1"
	readings := []vitals.Reading{
		first, irregular(at(bloodPressure(150, 80), now.Add(-30*time.Second))), at(bloodPressure(120, 80), now),
		at(weight(80), now.Add(-time.Hour)), weight(85.12),
	}
	var dumps [2]string
	for i := range dumps {
		app, engine := newApp(t, rules)
		vigiltest.Patient(t, app, dbx.Params{"id": patientID, "mrn": "M-1"})
		vigiltest.Assign(t, app, "BP-1", patientID, now.AddDate(-1, 0, 0))
		for _, r := range readings {
			if i == 0 {
				s := gatewaySubmission(patientID, r)
				s.Source, s.By = vitals.SourceAPI, audit.System()
				storeReading(t, app, engine, s)
			} else if err := app.Save(record(t, app, r)); err != nil {
				t.Fatal(err)
			}
		}
		dumps[i] = dump(t, app)
		if result, err := audit.Verify(app, nil); err != nil || !result.Valid {
			t.Errorf("audit chain: %+v (%v)", result, err)
		}
	}
	if diff := cmp.Diff(dumps[0], dumps[1]); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"observation.create", "alert.auto_resolve", "escalation.update", "Weight gain of 5.12 kg", "irregular heartbeat"} {
		if !strings.Contains(dumps[0], text) {
			t.Errorf("the readings did not lead to %q", text)
		}
	}
}

// record is a reading as filled in through the dashboard.
func record(t *testing.T, app core.App, r vitals.Reading) *core.Record {
	t.Helper()
	record, err := collections.NewRecord(app, collections.Observations)
	if err != nil {
		t.Fatal(err)
	}
	record.Load(map[string]any{
		"patient": patientID, "observation_type": string(r.Kind), "device_id": r.DeviceID,
		"measured_at": collections.FormatInstant(r.MeasuredAt),
	})
	for _, p := range vitals.Parameters {
		if value := r.Value(p); value != nil {
			record.Set(p.Column, *value)
		}
	}
	if r.Qualifier(vitals.IrregularHeartbeat) != "" {
		record.Set("irregular_heartbeat", "yes")
	}
	return record
}

// dump returns every row that readings lead to, decrypted, without random values: observation ids become their order of storage.
func dump(t *testing.T, app core.App) string {
	t.Helper()
	var ids []string
	if err := app.DB().NewQuery("SELECT id FROM observations ORDER BY rowid").Column(&ids); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range []string{
		collections.Observations, collections.Alerts, collections.Escalations, collections.Transmissions,
		collections.TriageScores, collections.AuditLog,
	} {
		var records []*core.Record
		if err := app.RecordQuery(name).OrderBy("rowid").All(&records); err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			for _, field := range record.Collection().Fields {
				random := strings.HasSuffix(field.GetName(), "hash") || (name == collections.TriageScores && field.GetName() == "id")
				if !random {
					fmt.Fprintf(&text, "%s.%s = %v\n", name, field.GetName(), record.Get(field.GetName()))
				}
			}
		}
	}
	for _, query := range []string{
		"SELECT patient || day || observation_type || first_observation || readings || device_readings FROM reading_days",
		"SELECT day || observation_type || status || readings FROM daily_counts", "SELECT name || value FROM sequences",
	} {
		text.WriteString(strings.Join(texts(t, app, query), "\n") + "\n")
	}
	clear := text.String()
	for i, id := range ids {
		clear = strings.ReplaceAll(clear, id, fmt.Sprintf("observation %d", i))
	}
	return clear
}

func TestCreateFromRecordChecks(t *testing.T) {
	app, engine := newApp(t, rules)
	vigiltest.Patient(t, app, dbx.Params{"id": patientID})
	other := vigiltest.Patient(t, app, nil)
	vigiltest.Assign(t, app, "BP-2", other, now.AddDate(-1, 0, 0))
	storeReading(t, app, engine, gatewaySubmission(patientID, bloodPressure(120, 80)))
	before := vigiltest.RowCounts(t, app)
	tests := []struct {
		name   string
		change map[string]any
		column string
	}{
		{"nobody's", map[string]any{"patient": "0194c5a8-0000-7000-8000-00000000dead"}, "patient"},
		{"no time", map[string]any{"measured_at": ""}, "measured_at"},
		{"the future", map[string]any{"measured_at": collections.FormatInstant(now.Add(6 * time.Minute))}, "measured_at"},
		{"no kind", map[string]any{"observation_type": ""}, "observation_type"},
		{"another kind's value", map[string]any{"weight_kg": 80}, "weight_kg"},
		{"a value missing", map[string]any{"diastolic": nil}, "diastolic"},
		{"out of range", map[string]any{"systolic": 301}, "systolic"},
		{"the wrong way round", map[string]any{"diastolic": 130}, "diastolic"},
		{"another patient's device", map[string]any{"device_id": "BP-2"}, "patient"},
		{"stored already", map[string]any{}, "measured_at"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := record(t, app, bloodPressure(120, 80))
			r.Load(test.change)
			var wrong validation.Errors
			if err := app.Save(r); !errors.As(err, &wrong) || wrong[test.column] == nil {
				t.Errorf("%v", err)
			}
		})
	}
	if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 {
		t.Errorf("refusals left rows: %v", added)
	}
}

// Columns other than the reading's are set by the service, and values are stored with two decimals.
func TestCreateFromRecordFillsIn(t *testing.T) {
	app, _ := newApp(t, rules)
	vigiltest.Patient(t, app, dbx.Params{"id": patientID})
	r := record(t, app, weight(80.125))
	r.Load(map[string]any{
		"fhir_status": "transmitted", "status": "entered_in_error", "emr_resource_id": "", "created_at": "2020-01-01T00:00:00.000000Z",
		"reading_key": "mine", "source": "patient_portal",
	})
	if err := app.Save(r); err != nil {
		t.Fatal(err)
	}
	check(t, find(t, app, collections.Observations, r.Id), map[string]any{
		"weight_kg": 80.13, "fhir_status": "pending", "status": "final",
		"created_at": collections.FormatInstant(now), "source": "patient_portal",
	})
	duplicate := record(t, app, weight(80.125))
	if err := app.Save(duplicate); err == nil {
		t.Error("the key was the writer's own")
	}
	stored, err := ingest.FindObservation(app, r.Id)
	if err != nil || *stored.Reading.Value(vitals.WeightKg) != 80.13 {
		t.Errorf("%v (%v)", stored.Reading.Value(vitals.WeightKg), err)
	}
}
