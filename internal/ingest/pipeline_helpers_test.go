package ingest_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var (
	pipelineNow    = time.Date(2026, time.January, 15, 13, 45, 0, 0, time.UTC)
	easternTime, _ = time.LoadLocation("America/New_York")
	pipelineRules  = ingest.Rules{
		PracticeZone: easternTime, NormalReadingsNeeded: alerts.NormalReadingsRequired{Warning: 1, Critical: 2},
		AutoTransform: true, MaxFuture: 5 * time.Minute, LateAfter: 24 * time.Hour,
	}
	gatewayActor = audit.Gateway(audit.Origin{Address: "192.0.2.1", RequestID: "request-1"})
	nurseActor   = audit.User(7, "nurse@vigil.test", "nurse", audit.Origin{Address: "192.0.2.7", RequestID: "request-2"})
)

func pipelineClock() time.Time { return pipelineNow }

// newPipelineApp returns an app with its hooks, and a pipeline for the contract's gateway. No writer runs.
func newPipelineApp(t testing.TB) (*tests.TestApp, *ingest.Pipeline) {
	t.Helper()
	app, readings := vigiltest.NewApp(t), ingest.NewReadingStore(pipelineRules)
	hooks.Bind(app, hooks.Engines{
		ReadingStore: readings, Directory: patients.NewDirectory(), Zone: easternTime,
		Clock: pipelineClock, EvictUser: func(string) {}, Wake: func() {}, WakeMailer: func() {},
	})
	return app, ingest.NewPipeline(ingest.PipelineOptions{
		Adapters: gateway.Adapters{gateway.Contract: parser}, Readings: readings, Devices: devices.NewEngine(devices.Rules{PracticeZone: easternTime}),
		Log: slog.New(slog.DiscardHandler),
	})
}

// ingestEvent stores a reading in a transaction of its own.
func ingestEvent(t testing.TB, app core.App, engine *ingest.Pipeline, s ingest.Submission) {
	t.Helper()
	err := app.RunInTransaction(func(tx core.App) error {
		_, err := engine.Readings.Ingest(tx, s, pipelineNow)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func pressureEvent(systolic, diastolic float64, at time.Time) vitals.Reading {
	return vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: at}.With(vitals.Systolic, systolic).With(vitals.Diastolic, diastolic)
}

func alertTexts(t *testing.T, app core.App, query string) (rows []string) {
	t.Helper()
	if err := app.DB().NewQuery(query).Column(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// stored returns the event with the id.
func storedInstant(t *testing.T, app core.App, id string) *core.Record {
	t.Helper()
	record, err := app.FindRecordById(collections.GatewayEvents, id)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func checkEvent(t *testing.T, record *core.Record, want map[string]any) {
	t.Helper()
	for column, value := range want {
		if got := record.Get(column); got != value {
			t.Errorf("%s.%s is %v, want %v", record.Collection().Name, column, got, value)
		}
	}
}
