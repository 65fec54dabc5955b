package main

import (
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// seedBillable gives every patient what device billing asks for: a consent and twenty days with data in the thirty days
// that ended three days ago.
func (s *seeder) seedBillable(int) error {
	day := func(before int) string { return s.now.AddDate(0, 0, -before).Format(time.DateOnly) }
	return s.run(dbx.Params{
		"consented": collections.Instant(s.now.AddDate(-1, 0, 0)), "assigned": collections.Instant(s.now.AddDate(0, 0, -33)),
		"from": day(32), "until": day(13),
	},
		`INSERT INTO consents (patient, type, method, granted_at) SELECT id, 'rpm', 'written', {:consented} FROM patients`,
		`WITH RECURSIVE d(day) AS (SELECT {:from} UNION ALL SELECT date(day, '+1 day') FROM d WHERE day < {:until})
			INSERT OR IGNORE INTO reading_days SELECT id, day, 'weight', 'seeded', 1, 1 FROM patients CROSS JOIN d`,
		`UPDATE device_assignments SET assigned_at = {:assigned}`) // so that the period begins with the first of those days
}

// seedEntries stores billing entries of the last two years, the oldest first, by codes and payers, and the sums that are
// kept of them.
func (s *seeder) seedEntries(count int) error {
	if err := s.bare(collections.BillingEntries, func() error { return s.insertEntries(count) }); err != nil {
		return err
	}
	_, _, err := billing.Recount(s.ctx, s.app)
	return err
}

func (s *seeder) insertEntries(count int) error {
	params := dbx.Params{"now": collections.Instant(s.now), "today": s.now.Format(time.DateOnly), "patients": len(s.patients), "count": count}
	return s.inChunks(count, "entries", `WITH RECURSIVE n(i) AS (SELECT {:from} UNION ALL SELECT i + 1 FROM n WHERE i < {:until}),
			dated AS MATERIALIZED (SELECT i, date({:today}, (i * 700 / {:count} - 700) || ' days') AS day FROM n)
		INSERT INTO billing_entries (id, claim_id, patient, cpt_code, service_date, duration_minutes, units, amount_cents, lifecycle_status, source,
			created_by, payer, icd10_codes, billing_period_start, billing_period_end, submitted_at, payment_cents, payment_date, created_at, updated_at)
		SELECT printf('00000000-0000-7000-8000-%012d', i), 'CLM-2024-' || i, patient,
			CASE i % 4 WHEN 0 THEN '99454' WHEN 1 THEN '99457' WHEN 2 THEN '99458' ELSE '99453' END, day, 20, 1, 4500 + i % 900,
			CASE i % 5 WHEN 0 THEN 'submitted' WHEN 1 THEN 'pending_review' WHEN 2 THEN 'denied' ELSE 'paid' END, 'manual', 'seed',
			CASE WHEN i % 9 = 0 THEN '' ELSE printf('%015d', i % 9) END, '["I10"]', '', '', {:now},
			CASE WHEN i % 5 > 2 THEN 4000 END, CASE WHEN i % 5 > 2 THEN day ELSE '' END, {:now}, {:now}
		FROM dated CROSS JOIN numbered ON k = i % {:patients}`, params)
}
