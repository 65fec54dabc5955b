package observations_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var (
	quiet  = slog.New(slog.DiscardHandler)
	sender = audit.Gateway(audit.Origin{Address: "192.0.2.1", RequestID: "request-1"})
)

// newApp is an app with its hooks, and the engine they call.
func newApp(t testing.TB, rules observations.Rules) (*tests.TestApp, *observations.Engine) {
	t.Helper()
	app, engine := vigiltest.NewApp(t), observations.NewEngine(rules)
	hooks.Bind(app, hooks.Engines{
		Observations: engine, Directory: patients.NewDirectory(), Zone: newYork,
		Clock: func() time.Time { return now }, Forget: func(string) {}, Wake: func() {}, WakeMailer: func() {},
	})
	return app, engine
}

func submission(patient string, r vitals.Reading) observations.Submission {
	return observations.Submission{PatientID: patient, Reading: r, Source: vitals.SourceGateway, By: sender, ReceivedAt: now}
}

// ingest stores a reading in a transaction of its own.
func ingest(t testing.TB, app core.App, engine *observations.Engine, s observations.Submission) observations.Outcome {
	t.Helper()
	outcome, err := tryIngest(app, engine, s)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func tryIngest(app core.App, engine *observations.Engine, s observations.Submission) (outcome observations.Outcome, err error) {
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
