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

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) patient(columns dbx.Params) string {
	f.Helper()
	record, err := collections.NewRecord(f.app, collections.Patients)
	f.ok(err)
	record.Load(map[string]any{"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1950-12-10", "gender": "female", "active": true})
	record.Load(columns)
	f.ok(f.app.Save(record))
	return record.Id
}

// assign assigns a device to the patient at a given time, or now.
func (f *fixture) assign(device, patient, deviceType string, at time.Time) {
	f.Helper()
	parsed, kind, _ := devices.ParseType(deviceType)
	_, err := f.engine.Assign(f.app, devices.Assignment{DeviceID: device, PatientID: patient, Type: parsed, Kind: kind, At: at}, nurse, f.now)
	f.ok(err)
}

func (f *fixture) handle(event gateway.Event) {
	f.Helper()
	f.ok(f.app.RunInTransaction(func(tx core.App) error { return f.engine.Handle(tx, event, f.now) }))
}

// measure stores a weight from the gateway and checks the device, as the webhook does.
func (f *fixture) measure(patient, device string, kg float64, at time.Time, report devices.GatewayReport) (attended bool) {
	f.Helper()
	report.ByGateway = true
	err := f.app.RunInTransaction(func(tx core.App) error {
		outcome, err := f.readings.Ingest(tx, ingest.Submission{
			PatientID: patient, Source: vitals.SourceGateway, ReceivedAt: f.now, Device: report, By: audit.Gateway(audit.Origin{}),
			Reading: vitals.Reading{Kind: vitals.Weight, MeasuredAt: at, DeviceID: device}.With(vitals.WeightKg, kg),
		}, f.now)
		attended = outcome.CheckDevice
		return err
	})
	f.ok(err)
	if attended {
		f.ok(f.engine.CheckDevice(f.app, device, f.now))
	}
	return attended
}

func (f *fixture) device(id string) *collections.Device {
	f.Helper()
	device, err := collections.FindDevice(f.app, id)
	f.ok(err)
	return device
}

func (f *fixture) hub(id string) string {
	f.Helper()
	hub, found, err := collections.FindHub(f.app, id)
	f.ok(err)
	if !found {
		return ""
	}
	return hub.Status
}

// alerts returns the alerts in order, as "type level status".
func (f *fixture) wantAlerts(what string, want ...string) {
	f.Helper()
	var rows []struct {
		Type   string `db:"type"`
		Level  string `db:"level"`
		Status string `db:"status"`
	}
	f.ok(f.app.DB().NewQuery(`SELECT type, level, status FROM alerts ORDER BY id`).All(&rows))
	var got []string
	for _, row := range rows {
		got = append(got, fmt.Sprintf("%s %s %s", row.Type, row.Level, row.Status))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s: %s", what, diff)
	}
}

func (f *fixture) count(table, where string) (n int) {
	f.Helper()
	f.ok(f.app.DB().NewQuery(`SELECT COUNT(*) FROM ` + table + ` WHERE ` + where).Row(&n))
	return n
}

func (f *fixture) wantCount(table, where string, want int) {
	f.Helper()
	if got := f.count(table, where); got != want {
		f.Errorf("%d rows of %s where %s, want %d", got, table, where, want)
	}
}

func level(n int64) *int64 { return &n }

func weightReading(device string, kg *float64, at time.Time) vitals.Reading {
	return measured(vitals.Reading{Kind: vitals.Weight, MeasuredAt: at, DeviceID: device}, vitals.WeightKg, kg)
}

func archivePatient(w *fixture, id string) (*collections.Patient, error) {
	return patients.Archive(w.app, id, patients.ArchiveDraft{Reason: "Moved away"}, nurse, w.now)
}
