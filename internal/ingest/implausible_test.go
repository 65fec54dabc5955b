package ingest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/types"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const alertRows = `SELECT type || ' ' || level || ' ' || status || ' ' || late || ' ' || origin || ' ' || parameter || ' ' || CAST(value AS INTEGER) FROM alerts ORDER BY id`

func wantTexts(t *testing.T, app core.App, query string, want ...string) {
	t.Helper()
	if got := alertTexts(t, app, query); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// An implausible import line raises one alert, however often the file is imported; a dry run raises none.
func TestImportOfImplausibleLines(t *testing.T) {
	app, engine := newPipelineApp(t)
	patient := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
	load := func(dryRun bool) (refused []string) {
		t.Helper()
		lines, err := gateway.OpenCSV(strings.NewReader(`patient_id,device_id,measurement_type,timestamp,systolic,diastolic,spo2,unit
gw-1,BP-1,bp,2026-01-15T08:00:00-05:00,55,34,,
gw-1,OX-1,spo2,2026-01-15T08:40:00-05:00,,,48,
gw-1,BP-1,bp,2024-01-15T08:00:00-05:00,500,90,,
gw-1,BP-1,bp,2024-01-16T08:00:00-05:00,120,80,,
nobody,BP-2,bp,2026-01-15T08:00:00-05:00,55,34,,
gw-1,BP-1,bp,2026-01-15T08:01:00-05:00,HI,34,,
`), gateway.CSVOptions{MaxFuture: 5 * time.Minute, Zone: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.Import(t.Context(), app, lines, ingest.ImportOptions{
			DryRun: dryRun, Clock: pipelineClock, OnLeftOut: func(string) {}, OnProgress: func(int) {}, OnRejected: func(line int, reason string) { refused = append(refused, fmt.Sprint(line, " ", reason)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return refused
	}
	want := []string{
		"2 systolic: Must be between 60 and 300 mmHg.", "3 spo2: Must be between 50 and 100 %.", "4 systolic: Must be between 60 and 300 mmHg.",
		"6 systolic: Must be between 60 and 300 mmHg.", "7 systolic: A valid number is required.",
	}
	before := vigiltest.RowCounts(t, app)
	if got := load(true); !slices.Equal(got, want) || len(vigiltest.RowsAdded(t, app, before)) != 0 {
		t.Errorf("a dry run reports %q", got)
	}
	for range 2 {
		if got := load(false); !slices.Equal(got, want) {
			t.Errorf("refused are %q", got)
		}
		wantTexts(t, app, alertRows, "implausible_reading critical active 0 import systolic 55", "implausible_reading critical active 0 import spo2 48",
			"implausible_reading critical auto_resolved 1 import systolic 500")
		wantTexts(t, app, `SELECT source || ' ' || status FROM gateway_events`, "import rejected", "import rejected", "import rejected")
		wantTexts(t, app, `SELECT priority || ' ' || status FROM escalations`, "stat open")
	}
	id := alertTexts(t, app, `SELECT quarantine_id FROM alerts ORDER BY id LIMIT 1`)[0]
	outcome, err := engine.ConfirmImplausible(app, id, "Confirmed by the ward.", nurseActor, pipelineNow)
	if o := outcome.Observation; err != nil || o.PatientID != patient || o.Origin != vitals.OriginImport || *o.Reading.Value(vitals.Systolic) != 55 {
		t.Errorf("confirmed: %+v (%v)", o.Review, err)
	}
}

// A replay that identifies the patient of an implausible event raises its alert, also for events that an earlier version stored.
func TestReplayAlertsImplausible(t *testing.T) {
	app, engine := newPipelineApp(t)
	quarantined(t, app, []byte(strings.Replace(string(cuff("BP-1", "gw-1", 104, 1)), `"diastolic":80`, `"diastolic":58,"pulse":28`, 1)), "")
	if _, err := app.DB().NewQuery(`UPDATE gateway_events SET implausible = FALSE`).Execute(); err != nil {
		t.Fatal(err)
	}
	replay := func(want ingest.ReplayResult) {
		t.Helper()
		if done, err := engine.Replay(t.Context(), app, pipelineClock, func(int, int) {}); err != nil || done != want {
			t.Errorf("%+v (%v)", done, err)
		}
	}
	replay(ingest.ReplayResult{Pending: 1})
	wantTexts(t, app, alertRows)
	vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
	for range 2 {
		replay(ingest.ReplayResult{Pending: 1})
		wantTexts(t, app, alertRows, "implausible_reading critical active 0 device pulse 28")
		wantTexts(t, app, `SELECT status || ' ' || reason || ' ' || implausible FROM gateway_events`, "rejected validation_error 1")
	}
}

// A dashboard record rejected for implausible values raises an alert; the record itself is rolled back.
func TestRejectedRecordIsReported(t *testing.T) {
	app, engine := vigiltest.NewApp(t), (*ingest.Pipeline)(nil)
	_, other := newPipelineApp(t)
	engine = other
	hooks.Bind(app, hooks.Engines{
		ReadingStore: other.Readings, Directory: patients.NewDirectory(), Zone: easternTime, Clock: pipelineClock,
		ReportImplausible: func(app core.App, record *core.Record, by audit.Actor, at time.Time) error {
			return engine.ReportImplausibleRecord(app, record, by, at)
		},
		EvictUser: func(string) {}, Wake: func() {}, WakeMailer: func() {},
	})
	patient := vigiltest.Patient(t, app, nil)
	create := func(columns map[string]any) {
		t.Helper()
		record, err := collections.NewRecord(app, collections.Observations)
		if err != nil {
			t.Fatal(err)
		}
		record.Load(map[string]any{"patient": patient, "observation_type": "blood_pressure", "measured_at": collections.FormatInstant(pipelineNow), "systolic": 104.0, "diastolic": 58.0})
		record.Load(columns)
		if app.Save(record) == nil {
			t.Error("it was stored")
		}
	}
	create(map[string]any{"diastolic": 120.0})
	create(map[string]any{"patient": collections.NewUUID(), "pulse": 28.0})
	create(map[string]any{"observation_type": "weight", "pulse": 28.0})
	wantTexts(t, app, alertRows)
	create(map[string]any{"pulse": 28.0, "measured_at": "yesterday"})
	create(map[string]any{"pulse": 28.0, "measured_at": "2026-01-15T15:45:00Z"}) // in the future
	wantTexts(t, app, alertRows)
	// One measurement, its time in each form that people, scripts and PocketBase clients write.
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05.000Z07:00", types.DefaultDateLayout, "2006-01-02T15:04:05.000000Z07:00"} {
		create(map[string]any{"pulse": 28.0, "measured_at": pipelineNow.Format(layout)})
		wantTexts(t, app, alertRows, "implausible_reading critical active 0 staff pulse 28")
	}
	wantTexts(t, app, `SELECT source || ' ' || status || ' ' || field_errors FROM gateway_events`, `dashboard rejected {"pulse":["Must be between 30 and 250 bpm."]}`)
	wantTexts(t, app, `SELECT id FROM observations`)
	outcome, err := engine.ConfirmImplausible(app, alertTexts(t, app, `SELECT id FROM gateway_events`)[0], "Felt it.", nurseActor, pipelineNow)
	if o := outcome.Observation; err != nil || o.Source != vitals.SourceAPI || o.Origin != vitals.OriginStaff || *o.Reading.Value(vitals.Pulse) != 28 {
		t.Errorf("confirmed: %+v (%v)", o.Review, err)
	}
}

// Contradictory values and closed events cannot be confirmed.
func TestConfirmImplausibleRejects(t *testing.T) {
	app, engine := newPipelineApp(t)
	patient := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
	body := []byte(strings.Replace(string(cuff("BP-1", "gw-1", 55, 1)), `"diastolic":80`, `"diastolic":60`, 1))
	id := quarantined(t, app, body, "")
	if _, err := engine.ConfirmImplausible(app, id, "x", nurseActor, pipelineNow); vigiltest.Code(err) != "invalid_state" {
		t.Errorf("of no patient: %v", err)
	}
	if _, err := engine.Release(app, id, patient, nurseActor, pipelineNow); err != nil {
		t.Fatal(err)
	}
	before := vigiltest.RowCounts(t, app)
	if _, err := engine.ConfirmImplausible(app, id, "x", nurseActor, pipelineNow); vigiltest.Code(err) != "validation_error" || len(vigiltest.RowsAdded(t, app, before)) != 0 {
		t.Errorf("55 over 60: %v", err)
	}
	wantTexts(t, app, alertRows, "implausible_reading critical active 0 device systolic 55")
	if _, err := engine.ConfirmImplausible(app, quarantined(t, app, cuff("BP-1", "gw-1", 120, 1), ingest.ReasonConflict), "x", nurseActor, pipelineNow); vigiltest.Code(err) != "invalid_state" {
		t.Errorf("nothing implausible: %v", err)
	}
	if _, err := engine.ConfirmImplausible(app, collections.NewUUID(), "x", nurseActor, pipelineNow); vigiltest.Code(err) != "not_found" {
		t.Errorf("unknown: %v", err)
	}
}

// The gateway has corrected itself: the confirmed reading is stored separately.
func TestConfirmImplausibleAfterCorrection(t *testing.T) {
	app, engine := newPipelineApp(t)
	patient := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
	id := quarantined(t, app, cuff("BP-1", "gw-1", 310, 1), "")
	if _, err := engine.Release(app, id, patient, nurseActor, pipelineNow); err != nil {
		t.Fatal(err)
	}
	corrected, err := parser.Parse(cuff("BP-1", "gw-1", 130, 1), pipelineNow)
	if err != nil {
		t.Fatal(err)
	}
	ingestEvent(t, app, engine, ingest.NewSubmission(corrected, patient, gatewayActor, pipelineNow))
	if _, err := engine.ConfirmImplausible(app, id, "Both are true.", nurseActor, pipelineNow); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, app, `SELECT CAST(systolic AS INTEGER) || ' ' || review_state || ' ' || (gateway_key != '') FROM observations ORDER BY systolic`, "130  1", "310 confirmed 0")
}
