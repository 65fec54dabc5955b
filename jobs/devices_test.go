package jobs

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// rowOf returns the row of a job.
func rowOf(t *testing.T, name string) job {
	t.Helper()
	for _, row := range table {
		if row.name == name {
			return row
		}
	}
	t.Fatalf("there is no job %q", name)
	return job{}
}

// Days missed while the service was down are evaluated after its return, once; a failed run is caught up.
func TestDeviceChecksCatchUp(t *testing.T) {
	app, clock := vigiltest.NewApp(t), clockwork.NewFakeClockAt(vigiltest.Clock)
	e := Engines{
		Devices: devices.NewEngine(devices.Rules{PracticeZone: time.UTC, MissedDaysBeforeEscalation: 3}),
		Clock:   clock, Log: slog.New(slog.DiscardHandler), started: clock.Now(),
	}
	patient := collections.NewUUID()
	insert := func(table string, columns dbx.Params) {
		t.Helper()
		if _, err := app.DB().Insert(table, columns).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	long := collections.FormatInstant(clock.Now().AddDate(0, -1, 0))
	insert(collections.Patients, dbx.Params{"id": patient, "mrn": "M-1", "active": true, "created_at": long})
	insert(collections.Devices, dbx.Params{
		"device_id": "S-1", "status": "assigned", "patient": patient, "kind": "weight", "assigned_at": long,
		"last_reading_at": collections.FormatInstant(clock.Now()), "last_seen_at": collections.FormatInstant(clock.Now()),
	})
	insert("reading_days", dbx.Params{"patient": patient, "day": "2026-01-14", "observation_type": "weight", "first_observation": "x", "readings": 1, "device_readings": 1})
	if err := app.RunInTransaction(func(tx core.App) error { return triage.AddRow(tx, patient, clock.Now()) }); err != nil {
		t.Fatal(err)
	}
	missed, silent := rowOf(t, missedReadings), rowOf(t, "silent devices")
	step := func(what string, row job, want string) {
		t.Helper()
		run(t.Context(), app, e, row)
		var counts string
		err := app.DB().NewQuery(`SELECT counts FROM job_runs WHERE job = {:job} ORDER BY rowid DESC LIMIT 1`).Bind(dbx.Params{"job": row.name}).Row(&counts)
		if err != nil || !strings.Contains(counts, want) {
			t.Errorf("%s: %s, want %s (%v)", what, counts, want, err)
		}
	}
	step("measured yesterday", missed, `"raised":0`)
	clock.Advance(72 * time.Hour)
	insert(collections.JobRuns, dbx.Params{"job": missedReadings, "status": "failed", "started_at": collections.FormatInstant(clock.Now())})
	step("three days later", missed, `"raised":3`)
	step("again", missed, `"raised":0`)
	step("a missed_reading alert already covers it", silent, `"flagged":1,"raised":0`)
	for _, name := range []string{"hub check", staleReadings} {
		step(name, rowOf(t, name), "{")
	}
	var escalations int
	if err := app.DB().NewQuery(`SELECT COUNT(*) FROM escalations WHERE priority = 'urgent'`).Row(&escalations); err != nil || escalations != 1 {
		t.Errorf("%d escalations (%v)", escalations, err)
	}
}
