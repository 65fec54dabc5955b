package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/emr"
)

var (
	givenNames  = []string{"Alma", "Bea", "Chris", "Dora", "Elena", "Frank", "Georgia", "Hans", "Isabel", "Joan", "Kwame", "Luis", "Maria", "Noah", "Olga", "Pat"}
	familyNames = []string{"Andersson", "Blackwood", "Carpenter", "Donovan", "Everett", "Fitzgerald", "Greenfield", "Hartmann", "Ivanova", "Johansen", "Kowalski", "Lindgren", "Nakamura"}
)

// seedPatients stores patients with sealed names, one device and one triage row each. The temporary table numbered counts
// them from 0, for statements that spread rows over all patients.
func (s *seeder) seedPatients(count int) error {
	const together = 5000 // rows per statement
	began := s.now.AddDate(-1, 0, 0)
	for from := 0; from < count; from += together {
		var rows [][]string
		for i := from; i < min(from+together, count); i++ {
			row, err := patientRow(i, began.Add(time.Duration(i)*time.Second))
			if err != nil {
				return err
			}
			s.patients, s.devices, rows = append(s.patients, row[0]), append(s.devices, fmt.Sprintf("BENCH-%06d", i)), append(rows, row)
		}
		err := s.insertRows(rows, `INSERT INTO patients (id, mrn, external_id, first_name, last_name, date_of_birth, created_at, updated_at, gender, active,
				icd10_codes, version)
			SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 6, 'other', TRUE, '["I10"]', 1
			FROM json_each({:rows})`)
		if err != nil {
			return err
		}
	}
	return s.exec(nil,
		`CREATE TEMP TABLE numbered (k INTEGER PRIMARY KEY, patient TEXT, device TEXT)`,
		`INSERT INTO numbered SELECT CAST(substr(mrn, 5) AS INTEGER), id, 'BENCH-' || substr(mrn, 7) FROM patients`,
		`INSERT INTO devices (device_id, device_type, status, patient, assigned_at, created_at)
			SELECT device, 'blood_pressure', 'assigned', patient, created_at, created_at FROM numbered JOIN patients ON id = patient`,
		`INSERT INTO device_assignments (device_id, patient, assigned_at) SELECT device_id, patient, assigned_at FROM devices`,
		`INSERT INTO triage_scores (patient, listed, risk_score, risk_level, risk_factors, latest_vitals, unacknowledged_alerts, oldest_unacknowledged_at,
				last_reading_at, enrolled_at, scored_at)
			SELECT id, TRUE, score, CASE WHEN score > 75 THEN 'critical' WHEN score > 50 THEN 'warning' WHEN score > 0 THEN 'normal' ELSE 'no_data' END,
				'[]', '{}', score % 5, created_at, created_at, created_at, created_at
			FROM (SELECT id, created_at, k * 7919 % 101 AS score FROM numbered JOIN patients ON id = patient)`)
}

// patientRow returns id, MRN, external id, first name, last name, date of birth and time of creation.
func patientRow(i int, at time.Time) ([]string, error) {
	id := collections.NewUUID()
	row := []string{id, fmt.Sprintf("MRN-%08d", i), fmt.Sprintf("pat-%d", i)}
	for _, field := range []struct{ name, plain string }{
		{"first_name", givenNames[i%len(givenNames)]},
		{"last_name", familyNames[i*7%len(familyNames)] + strings.Repeat("a", i%3)},
		{"date_of_birth", fmt.Sprintf("19%02d-0%d-1%d", 20+i%70, 1+i%9, i%10)},
	} {
		sealed, err := collections.Seal(field.plain, "patients."+field.name, id)
		if err != nil {
			return nil, err
		}
		row = append(row, sealed)
	}
	return append(row, collections.FormatInstant(at)), nil
}

// seedReadings stores readings at fixed intervals, the last an hour ago, patients in rotation, with the totals per UTC day
// but without the patients' reading days, which [seeder.seedBillable] sets.
func (s *seeder) seedReadings(count int) error {
	const every = 7 // seconds
	params := dbx.Params{"every": every, "first": s.now.Add(-time.Hour).Unix() - int64(count)*every, "patients": len(s.patients)}
	err := s.withoutIndexes(collections.Observations, func() error {
		return s.inChunks(count, "readings", `WITH RECURSIVE
				n(i, at) AS (SELECT {:from}, {:first} + {:from} * {:every} UNION ALL SELECT i + 1, at + {:every} FROM n WHERE i < {:until}),
				stamped AS MATERIALIZED (SELECT i, at, strftime('%Y-%m-%dT%H:%M:%S.000000Z', at, 'unixepoch') AS stamp FROM n)
			INSERT INTO observations (id, patient, observation_type, measured_at, device_id, source, systolic, diastolic, pulse, status, fhir_status,
				fhir_version, reading_key, created_at, updated_at)
			SELECT printf('%08x-%04x-7000-8000-%012x', at * 1000 >> 16, at * 1000 & 65535, i), patient, 'blood_pressure', stamp, device, 'gateway',
				110 + i % 40, 70 + i % 15, 60 + i % 30, 'final', 'transmitted', 1, printf('s%011d', i), stamp, stamp
			FROM stamped CROSS JOIN numbered ON k = i % {:patients}`, params)
	})
	if err != nil {
		return err
	}
	return s.exec(nil, `INSERT INTO daily_counts (day, observation_type, status, readings)
		SELECT substr(measured_at, 1, 10), observation_type, status, COUNT(*) FROM observations GROUP BY 1, 2, 3`)
}

// seedPending stores readings with a queued EMR delivery.
func (s *seeder) seedPending(count int) error {
	return s.app.RunInTransaction(func(tx core.App) error {
		var rows [][]string
		var queue emr.Batch
		for i := range count {
			at, row := s.now.Add(time.Duration(i)*time.Millisecond-time.Hour), []string{collections.NewUUID(), s.patients[i%len(s.patients)]}
			rows = append(rows, append(row, collections.FormatInstant(at)))
			if _, err := queue.Add(tx, emr.Draft{ObservationID: row[0], PatientID: row[1], ObservationType: "weight"}, at); err != nil {
				return err
			}
		}
		if err := queue.Store(tx); err != nil {
			return err
		}
		return loader{s.ctx, tx}.insertRows(rows, `INSERT INTO observations (id, patient, observation_type, measured_at, source, weight_kg, status, fhir_status,
				fhir_version, created_at, updated_at)
			SELECT value ->> 0, value ->> 1, 'weight', value ->> 2, 'gateway', 80, 'final', 'pending', 1, value ->> 2, value ->> 2 FROM json_each({:rows})`)
	})
}

// seedBillable gives every patient what device billing requires: a consent, and twenty days with data in the thirty days
// that ended three days ago.
func (s *seeder) seedBillable(int) error {
	day := func(before int) string { return s.now.AddDate(0, 0, -before).Format(time.DateOnly) }
	return s.exec(dbx.Params{
		"consented": collections.FormatInstant(s.now.AddDate(-1, 0, 0)), "assigned": collections.FormatInstant(s.now.AddDate(0, 0, -33)),
		"from": day(32), "until": day(13),
	},
		`INSERT INTO consents (patient, type, method, granted_at) SELECT id, 'rpm', 'written', {:consented} FROM patients`,
		`WITH RECURSIVE d(day) AS (SELECT {:from} UNION ALL SELECT date(day, '+1 day') FROM d WHERE day < {:until})
			INSERT OR IGNORE INTO reading_days SELECT id, day, 'weight', 'seeded', 1, 1 FROM patients CROSS JOIN d`,
		`UPDATE device_assignments SET assigned_at = {:assigned}`) // so that the period begins with the first of those days
}

// seedEntries stores billing entries of the last two years, oldest first, spread over codes and payers, and rebuilds their
// totals.
func (s *seeder) seedEntries(count int) error {
	if err := s.withoutIndexes(collections.BillingEntries, func() error { return s.insertEntries(count) }); err != nil {
		return err
	}
	_, _, err := billing.RecountTotals(s.ctx, s.app)
	return err
}

func (s *seeder) insertEntries(count int) error {
	params := dbx.Params{"now": collections.FormatInstant(s.now), "today": s.now.Format(time.DateOnly), "patients": len(s.patients), "count": count}
	return s.inChunks(count, "entries", `WITH RECURSIVE n(i) AS (SELECT {:from} UNION ALL SELECT i + 1 FROM n WHERE i < {:until}),
			dated AS MATERIALIZED (SELECT i, date({:today}, (i * 700 / {:count} - 700) || ' days') AS day FROM n)
		INSERT INTO billing_entries (id, claim_id, patient, cpt_code, service_date, duration_minutes, units, amount_cents, charge_cents, lifecycle_status, source,
			created_by, payer, icd10_codes, billing_period_start, billing_period_end, submitted_at, payment_cents, payment_date, created_at, updated_at)
		SELECT printf('00000000-0000-7000-8000-%012d', i), 'CLM-2024-' || i, patient,
			CASE i % 4 WHEN 0 THEN '99454' WHEN 1 THEN '99457' WHEN 2 THEN '99458' ELSE '99453' END, day, 20, 1, 4500 + i % 900, 4500 + i % 900,
			CASE i % 5 WHEN 0 THEN 'submitted' WHEN 1 THEN 'pending_review' WHEN 2 THEN 'denied' ELSE 'paid' END, 'manual', 'seed',
			CASE WHEN i % 9 = 0 THEN '' ELSE printf('%015d', i % 9) END, '["I10"]', '', '', {:now},
			CASE WHEN i % 5 > 2 THEN 4000 END, CASE WHEN i % 5 > 2 THEN day ELSE '' END, {:now}, {:now}
		FROM dated CROSS JOIN numbered ON k = i % {:patients}`, params)
}
