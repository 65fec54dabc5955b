package main

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/transmissions"
)

// seedPending stores readings that wait for their delivery.
func seedPending(app core.App, known people, count int) error {
	since := time.Now().Add(-time.Hour)
	return inChunks(app, count, func(tx core.App, i int) error {
		id, patient := collections.NewUUID(), known.patients[i%len(known.patients)]
		at := since.Add(time.Duration(i) * time.Millisecond)
		stamp := collections.Instant(at)
		err := insertRow(tx, collections.Observations, dbx.Params{
			"id": id, "patient": patient, "observation_type": "weight", "measured_at": stamp, "source": "gateway", "weight_kg": 80,
			"status": "final", "fhir_status": "pending", "fhir_version": 1, "created_at": stamp, "updated_at": stamp,
		})
		if err == nil {
			_, err = transmissions.Queue(tx, transmissions.Draft{ObservationID: id, PatientID: patient, ObservationType: "weight"}, at)
		}
		return err
	})
}

// seedBillable gives every patient what device billing asks for: a consent and twenty days with data in the thirty days
// that ended three days ago.
func seedBillable(app core.App) error {
	today := time.Now().UTC()
	day := func(before int) string { return today.AddDate(0, 0, -before).Format(time.DateOnly) }
	return runAll(app, dbx.Params{
		"consented": collections.Instant(today.AddDate(-1, 0, 0)), "assigned": collections.Instant(today.AddDate(0, 0, -33)),
		"from": day(32), "until": day(13),
	},
		`INSERT INTO consents (patient, type, method, granted_at) SELECT id, 'rpm', 'written', {:consented} FROM patients`,
		`WITH RECURSIVE d(day) AS (SELECT {:from} UNION ALL SELECT date(day, '+1 day') FROM d WHERE day < {:until})
			INSERT OR IGNORE INTO reading_days SELECT id, day, 'weight', 'seeded', 1, 1 FROM patients CROSS JOIN d`,
		`UPDATE device_assignments SET assigned_at = {:assigned}`) // so that the period begins with the first of those days
}

// seedEntries stores billing entries of the last two years by codes, providers and payers, with the sums that the
// database keeps of them.
func seedEntries(app core.App, count int) error {
	if count == 0 {
		return nil
	}
	now := time.Now().UTC()
	return runAll(app, dbx.Params{"count": count, "now": collections.Instant(now), "today": now.Format(time.DateOnly)},
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {:count}),
			ids AS MATERIALIZED (SELECT id, ROW_NUMBER() OVER () AS k FROM patients)
		INSERT INTO billing_entries (id, claim_id, patient, cpt_code, service_date, duration_minutes, units, amount_cents, lifecycle_status, source,
			created_by, payer, icd10_codes, billing_period_start, billing_period_end, submitted_at, payment_cents, payment_date, created_at, updated_at)
		SELECT printf('00000000-0000-7000-8000-%012d', i), 'CLM-2024-' || i, ids.id,
			CASE i % 4 WHEN 0 THEN '99454' WHEN 1 THEN '99457' WHEN 2 THEN '99458' ELSE '99453' END,
			date({:today}, '-' || (i % 700) || ' days'), 20, 1, 4500 + i % 900,
			CASE i % 5 WHEN 0 THEN 'submitted' WHEN 1 THEN 'pending_review' WHEN 2 THEN 'denied' ELSE 'paid' END, 'manual', 'seed',
			CASE WHEN i % 9 = 0 THEN '' ELSE printf('%015d', i % 9) END, '["I10"]', '', '', {:now},
			CASE WHEN i % 5 > 2 THEN 4000 END, CASE WHEN i % 5 > 2 THEN date({:today}, '-' || (i % 700) || ' days') ELSE '' END, {:now}, {:now}
		FROM n CROSS JOIN ids ON ids.k = n.i % (SELECT COUNT(*) FROM patients) + 1`)
}
