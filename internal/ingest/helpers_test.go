package ingest_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var (
	quiet  = slog.New(slog.DiscardHandler)
	sender = audit.Gateway(audit.Origin{Address: "192.0.2.1", RequestID: "request-1"})
)

// newApp returns an app with its hooks, and the evaluator that they call.
func newApp(t testing.TB, rules ingest.Rules) (*tests.TestApp, *ingest.ReadingStore) {
	t.Helper()
	app, engine := vigiltest.NewApp(t), ingest.NewReadingStore(rules)
	hooks.Bind(app, hooks.Engines{
		ReadingStore: engine, Directory: patients.NewDirectory(), Zone: newYork,
		Clock: func() time.Time { return now }, EvictUser: func(string) {}, Wake: func() {}, WakeMailer: func() {},
	})
	return app, engine
}

func gatewaySubmission(patient string, r vitals.Reading) ingest.Submission {
	return ingest.Submission{PatientID: patient, Reading: r, Source: vitals.SourceGateway, By: sender, ReceivedAt: now}
}

// storeReading stores a reading in a transaction of its own.
func storeReading(t testing.TB, app core.App, engine *ingest.ReadingStore, s ingest.Submission) ingest.Outcome {
	t.Helper()
	outcome, err := tryIngest(app, engine, s)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func tryIngest(app core.App, engine *ingest.ReadingStore, s ingest.Submission) (outcome ingest.Outcome, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		outcome, err = engine.Ingest(tx, s, now)
		return err
	})
	return outcome, err
}

func from(device string, r vitals.Reading) vitals.Reading {
	r.DeviceID = device
	return r
}
