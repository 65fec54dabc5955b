package observations_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
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

// newPatient stores a patient with the given columns.
func newPatient(t testing.TB, app core.App, columns dbx.Params) string {
	t.Helper()
	record, err := collections.New(app, collections.Patients)
	if err != nil {
		t.Fatal(err)
	}
	record.Load(map[string]any{"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1950-12-10", "gender": "female", "active": true})
	record.Load(columns)
	if err := app.Save(record); err != nil {
		t.Fatalf("store a patient: %v", err)
	}
	return record.Id
}

// assign gives a patient a device, from a year ago on.
func assign(t testing.TB, app core.App, device, patient string) {
	t.Helper()
	row := dbx.Params{"device_id": device, "patient": patient, "assigned_at": collections.Instant(now.AddDate(-1, 0, 0))}
	if _, err := app.DB().Insert(collections.DeviceAssignments, row).Execute(); err != nil {
		t.Fatal(err)
	}
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

// code is the contract's code of a fault, "" for anything else.
func code(err error) string {
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		return refused.Code
	}
	return ""
}
