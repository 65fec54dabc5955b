package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/phi"
)

// chunk bounds the rows of one seeding transaction.
const chunk = 20_000

var (
	givenNames  = []string{"Alma", "Bea", "Chris", "Dora", "Elena", "Frank", "Georgia", "Hans", "Isabel", "Joan", "Kwame", "Luis", "Maria", "Noah", "Olga", "Pat"}
	familyNames = []string{"Andersson", "Blackwood", "Carpenter", "Donovan", "Everett", "Fitzgerald", "Greenfield", "Hartmann", "Ivanova", "Johansen", "Kowalski", "Lindgren", "Nakamura"}
)

// content is what a data folder is filled with.
type content struct {
	patients, readings int
	pending            int  // readings that wait for their delivery to the EMR
	billable           bool // every patient has a month of data, a consent and a diagnosis
	entries            int  // billed in the last two years
}

// people is what the load needs to know of the patients in the database.
type people struct{ patients, devices []string }

// seed fills a data folder whose schema is there, by SQL and as the service would seal it.
func seed(dir string, env []string, c content) (people, error) {
	app, err := openFolder(dir, env)
	if err != nil {
		return people{}, err
	}
	defer func() { _ = app.ClearBootstrap() }() // everything is committed
	known, err := seedPatients(app, c.patients)
	if err == nil {
		err = seedReadings(app, c.readings)
	}
	if err == nil {
		err = seedPending(app, known, c.pending)
	}
	if err == nil && c.billable {
		err = seedBillable(app)
	}
	if err == nil {
		err = seedEntries(app, c.entries)
	}
	return known, err
}

// openFolder opens a data folder as the service does, without waiting for the disk: what is seeded need not outlive a crash.
func openFolder(dir string, env []string) (core.App, error) {
	settings, err := config.Load(env)
	if err != nil {
		return nil, err
	}
	const settingsKey = config.Prefix + "SETTINGS_KEY"
	if err := os.Setenv(settingsKey, settings.SettingsKey.Reveal()); err != nil { // where PocketBase reads it
		return nil, err
	}
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: dir, EncryptionEnv: settingsKey})
	if err := app.Bootstrap(); err != nil {
		return nil, err
	}
	ring, err := phi.NewKeyRing(settings.EncryptionKeys...)
	if err != nil {
		return nil, err
	}
	key, err := collections.LoadIndexKey(app, ring)
	if err != nil {
		return nil, err
	}
	sealer, err := phi.NewSealer(ring, key)
	if err != nil {
		return nil, err
	}
	collections.UseSealer(sealer)
	return app, nil
}

// inChunks calls insert for 0 to count-1 in transactions of bounded size, with prepared statements.
func inChunks(app core.App, count int, insert func(tx core.App, i int) error) error {
	for from := 0; from < count; from += chunk {
		err := app.RunInTransaction(func(tx core.App) error {
			tx = collections.Prepared(tx)
			for i := from; i < min(from+chunk, count); i++ {
				if err := insert(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func seedPatients(app core.App, count int) (people, error) {
	known := people{}
	began := time.Now().AddDate(-1, 0, 0)
	err := inChunks(app, count, func(tx core.App, i int) error {
		id := collections.NewUUID()
		known.patients, known.devices = append(known.patients, id), append(known.devices, fmt.Sprintf("BENCH-%06d", i))
		at := collections.Instant(began.Add(time.Duration(i) * time.Second))
		row := dbx.Params{
			"id": id, "mrn": fmt.Sprintf("MRN-%08d", i), "gender": "other", "active": true, "icd10_codes": `["I10"]`,
			"external_id": fmt.Sprintf("pat-%d", i), "version": 1, "created_at": at, "updated_at": at,
		}
		for column, plain := range map[string]string{
			"first_name": givenNames[i%len(givenNames)], "last_name": familyNames[i*7%len(familyNames)] + strings.Repeat("a", i%3),
			"date_of_birth": fmt.Sprintf("19%02d-0%d-1%d", 20+i%70, 1+i%9, i%10),
		} {
			sealed, err := collections.Seal(plain, "patients."+column, id)
			if err != nil {
				return err
			}
			row[column] = sealed
		}
		return insertRow(tx, collections.Patients, row)
	})
	if err != nil {
		return known, err
	}
	return known, runAll(app, dbx.Params{},
		`INSERT INTO devices (device_id, device_type, status, patient, assigned_at, created_at)
			SELECT `+deviceOfPatient+`, 'blood_pressure', 'assigned', id, created_at, created_at FROM patients`,
		`INSERT INTO device_assignments (device_id, patient, assigned_at) SELECT `+deviceOfPatient+`, id, created_at FROM patients`,
		`INSERT INTO triage_scores (patient, listed, risk_score, risk_level, risk_factors, latest_vitals, unacknowledged_alerts, oldest_unacknowledged_at,
				last_reading_at, enrolled_at, scored_at)
			SELECT id, TRUE, score, CASE WHEN score > 75 THEN 'critical' WHEN score > 50 THEN 'warning' WHEN score > 0 THEN 'normal' ELSE 'no_data' END,
				'[]', '{}', score % 5, created_at, created_at, created_at, created_at
			FROM (SELECT id, created_at, CAST(substr(mrn, 5) AS INTEGER) * 7919 % 101 AS score FROM patients)`)
}

// deviceOfPatient is the number in the MRN once more.
const deviceOfPatient = `'BENCH-' || substr(mrn, 7)`

// seedReadings stores readings back in time, the last an hour ago, each patient's in turn.
func seedReadings(app core.App, count int) error {
	if count == 0 {
		return nil
	}
	const every = 7 // seconds
	first := time.Now().Add(-time.Hour).Unix() - int64(count)*every
	return runAll(app, dbx.Params{"count": count, "first": first, "every": every},
		`WITH RECURSIVE n(i, at) AS (SELECT 1, {:first} UNION ALL SELECT i + 1, at + {:every} FROM n WHERE i < {:count}),
				ids AS MATERIALIZED (SELECT id, `+deviceOfPatient+` AS device, ROW_NUMBER() OVER () AS k FROM patients)
			INSERT INTO observations (id, patient, observation_type, measured_at, device_id, source, systolic, diastolic, pulse, status, fhir_status,
				fhir_version, reading_key, created_at, updated_at)
			SELECT printf('%08x-%04x-7000-8000-%012x', at * 1000 >> 16, at * 1000 & 65535, i), ids.id, 'blood_pressure',
				strftime('%Y-%m-%dT%H:%M:%S.000000Z', at, 'unixepoch'), ids.device, 'gateway', 110 + i % 40, 70 + i % 15, 60 + i % 30, 'final',
				'transmitted', 1, 'seed-' || i, strftime('%Y-%m-%dT%H:%M:%S.000000Z', at, 'unixepoch'), strftime('%Y-%m-%dT%H:%M:%S.000000Z', at, 'unixepoch')
			FROM n CROSS JOIN ids ON ids.k = n.i % (SELECT COUNT(*) FROM patients) + 1`,
		`INSERT INTO daily_counts (day, observation_type, status, readings)
			SELECT substr(measured_at, 1, 10), observation_type, status, COUNT(*) FROM observations GROUP BY 1, 2, 3`)
}

// runAll runs statements one after the other; each may use any of the parameters.
func runAll(app core.App, params dbx.Params, statements ...string) error {
	for _, statement := range statements {
		used := dbx.Params{}
		for name, value := range params {
			if strings.Contains(statement, "{:"+name+"}") {
				used[name] = value
			}
		}
		if _, err := app.NonconcurrentDB().NewQuery(statement).Bind(used).Execute(); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	return nil
}

func insertRow(tx core.App, table string, values dbx.Params) error {
	if _, err := tx.NonconcurrentDB().Insert(table, values).Execute(); err != nil {
		return fmt.Errorf("seed %s: %w", table, err)
	}
	return nil
}
