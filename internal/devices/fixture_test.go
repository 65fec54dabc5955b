package devices_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var nurse = audit.Actor{Type: audit.ByUser, Email: "nurse@vigil.test"}

// fixture is an app with its hooks, the engines and a clock.
type fixture struct {
	*testing.T
	app      *tests.TestApp
	engine   *devices.Engine
	readings *ingest.ReadingStore
	now      time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	newYork := zone(t, "America/New_York")
	w := &fixture{T: t, app: vigiltest.NewApp(t), now: vigiltest.Clock}
	w.engine = devices.NewEngine(devices.Rules{PracticeZone: newYork, ManagedMode: true, DeliveryWorkingDays: 5, MissedDaysBeforeEscalation: 3})
	w.readings = ingest.NewReadingStore(ingest.Rules{PracticeZone: newYork})
	hooks.Bind(w.app, hooks.Engines{
		ReadingStore: w.readings, Directory: patients.NewDirectory(), Zone: newYork, Clock: func() time.Time { return w.now },
		EvictUser: func(string) {}, Wake: func() {}, WakeMailer: func() {},
	})
	return w
}

func (w *fixture) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) patient(columns dbx.Params) string {
	w.Helper()
	record, err := collections.New(w.app, collections.Patients)
	w.ok(err)
	record.Load(map[string]any{"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1950-12-10", "gender": "female", "active": true})
	record.Load(columns)
	w.ok(w.app.Save(record))
	return record.Id
}

// assign assigns a device to the patient at a given time, or now.
func (w *fixture) assign(device, patient, deviceType string, at time.Time) {
	w.Helper()
	parsed, kind, _ := devices.ParseType(deviceType)
	_, err := w.engine.Assign(w.app, devices.Assignment{DeviceID: device, PatientID: patient, Type: parsed, Kind: kind, At: at}, nurse, w.now)
	w.ok(err)
}

func (w *fixture) handle(event gateway.Event) {
	w.Helper()
	w.ok(w.app.RunInTransaction(func(tx core.App) error { return w.engine.Handle(tx, event, w.now) }))
}

// measure stores a weight from the gateway and checks the device, as the webhook does.
func (w *fixture) measure(patient, device string, kg float64, at time.Time, report devices.GatewayReport) (attended bool) {
	w.Helper()
	report.ByGateway = true
	err := w.app.RunInTransaction(func(tx core.App) error {
		outcome, err := w.readings.Ingest(tx, ingest.Submission{
			PatientID: patient, Source: vitals.SourceGateway, ReceivedAt: w.now, Device: report, By: audit.Gateway(audit.Origin{}),
			Reading: vitals.Reading{Kind: vitals.Weight, MeasuredAt: at, DeviceID: device}.With(vitals.WeightKg, kg),
		}, w.now)
		attended = outcome.CheckDevice
		return err
	})
	w.ok(err)
	if attended {
		w.ok(w.engine.CheckDevice(w.app, device, w.now))
	}
	return attended
}

func (w *fixture) device(id string) *collections.Device {
	w.Helper()
	device, err := collections.FindDevice(w.app, id)
	w.ok(err)
	return device
}

func (w *fixture) hub(id string) string {
	w.Helper()
	hub, found, err := collections.FindHub(w.app, id)
	w.ok(err)
	if !found {
		return ""
	}
	return hub.Status
}

// alerts returns the alerts in order, as "type level status".
func (w *fixture) wantAlerts(what string, want ...string) {
	w.Helper()
	var rows []struct {
		Type   string `db:"type"`
		Level  string `db:"level"`
		Status string `db:"status"`
	}
	w.ok(w.app.DB().NewQuery(`SELECT type, level, status FROM alerts ORDER BY id`).All(&rows))
	var got []string
	for _, row := range rows {
		got = append(got, fmt.Sprintf("%s %s %s", row.Type, row.Level, row.Status))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("%s: %s", what, diff)
	}
}

func (w *fixture) count(table, where string) (n int) {
	w.Helper()
	w.ok(w.app.DB().NewQuery(`SELECT COUNT(*) FROM ` + table + ` WHERE ` + where).Row(&n))
	return n
}

func (w *fixture) wantCount(table, where string, want int) {
	w.Helper()
	if got := w.count(table, where); got != want {
		w.Errorf("%d rows of %s where %s, want %d", got, table, where, want)
	}
}

func level(n int64) *int64 { return &n }

func weightReading(device string, kg *float64, at time.Time) vitals.Reading {
	return measured(vitals.Reading{Kind: vitals.Weight, MeasuredAt: at, DeviceID: device}, vitals.WeightKg, kg)
}

func archivePatient(w *fixture, id string) (*collections.Patient, error) {
	return patients.Archive(w.app, id, patients.ArchiveDraft{Reason: "Moved away"}, nurse, w.now)
}
