package reports_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// load fills a practice by SQL: entries over two years, of a hundredth as many patients, twelve providers, eight payers and five codes. The sums
// are made afterwards, by the nightly count.
func load(b *testing.B, app core.App, entries int) {
	b.Helper()
	for _, statement := range []string{
		`CREATE TEMP TABLE numbers AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ` + strconv.Itoa(entries) + `) SELECT i FROM c`,
		`INSERT INTO payers (id, name, payer_code, is_active) SELECT printf('%015d', i), 'Payer ' || i, 'P' || i, TRUE FROM numbers WHERE i <= 8`,
		`INSERT INTO patients (id, mrn, active, gender, icd10_codes) SELECT printf('00000000-0000-7000-8000-%012d', i), 'M' || i, TRUE, 'other', '["I10"]'
			FROM numbers WHERE i <= ` + strconv.Itoa(entries/100),
		`INSERT INTO device_assignments (device_id, patient, assigned_at) SELECT 'D' || i, printf('00000000-0000-7000-8000-%012d', i),
			'2025-12-01T12:00:00.000000Z' FROM numbers WHERE i <= ` + strconv.Itoa(entries/100),
		`WITH RECURSIVE d(day) AS (SELECT '2025-12-01' UNION ALL SELECT date(day, '+1 day') FROM d WHERE day < '2025-12-31')
			INSERT INTO reading_days SELECT printf('00000000-0000-7000-8000-%012d', i), day, 'weight', 'x', 1, 1 FROM numbers CROSS JOIN d WHERE i <= ` + strconv.Itoa(entries/100),
	} {
		if _, err := app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
			b.Fatal(err)
		}
	}
	restore := bare(b, app)
	// A claim is paid a month after it was sent, unless one of ten was denied; those of the last two months are on their way.
	_, err := app.NonconcurrentDB().NewQuery(`WITH e AS (SELECT i, (i * 7919) % 730 AS n, (i * 104729) % 100 AS dice FROM numbers),
			s AS (SELECT *, CASE WHEN dice < 2 THEN 'voided' WHEN n > 725 THEN 'pending_review' WHEN n > 720 THEN 'reviewed' WHEN dice < 9 THEN 'denied'
				WHEN dice < 11 THEN 'appealed' WHEN n > 670 THEN 'submitted' ELSE 'paid' END AS state, date('2024-01-01', n || ' days') AS day FROM e)
		INSERT INTO billing_entries (id, claim_id, patient, cpt_code, service_date, units, amount_cents, lifecycle_status, source, payer, payer_name,
			rendering_provider, submitted_at, payment_cents, payment_date, denial_code, denial_description, denial_date, created_at, reviewed_at, warnings)
		SELECT printf('10000000-0000-7000-8000-%012d', i), 'C' || i, printf('00000000-0000-7000-8000-%012d', 1 + (i * 31) % ` + strconv.Itoa(entries/100) + `),
			CASE i % 5 WHEN 0 THEN '99453' WHEN 1 THEN '99454' WHEN 2 THEN '99457' WHEN 3 THEN '99458' ELSE '99091' END, day, 1, 1900 + dice * 31, state, 'manual',
			printf('%015d', 1 + (i / 5) % 8), 'Payer', printf('%015d', 1 + (i / 40) % 12),
			CASE WHEN state IN ('voided', 'pending_review', 'reviewed') THEN '' ELSE date(day, '3 days') || 'T15:00:00.000000Z' END,
			CASE state WHEN 'paid' THEN 1800 END, CASE state WHEN 'paid' THEN date(day, '33 days') ELSE '' END,
			CASE WHEN state IN ('denied', 'appealed') THEN 'CO-' || (dice + i % 7) ELSE '' END, CASE WHEN state IN ('denied', 'appealed') THEN 'Denied' ELSE '' END,
			CASE WHEN state IN ('denied', 'appealed') THEN date(day, '20 days') ELSE '' END, day || 'T12:00:00.000000Z', day || 'T13:00:00.000000Z',
			CASE WHEN state = 'pending_review' AND i % 3 = 0 THEN '["attest_interaction"]' ELSE '[]' END FROM s`).Execute()
	if err != nil {
		b.Fatal(err)
	}
	restore()
	start := time.Now()
	months, _, err := billing.Recount(b.Context(), app)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d entries in %d months counted anew in %.1f s", entries, months, time.Since(start).Seconds())
}

// bare takes indexes and triggers off the entries while a million of them are written, and returns what puts the indexes back.
func bare(b *testing.B, app core.App) (restore func()) {
	b.Helper()
	execute := func(sql string) {
		if _, err := app.NonconcurrentDB().NewQuery(sql).Execute(); err != nil {
			b.Fatal(err)
		}
	}
	var parts []struct {
		Type string `db:"type"`
		Name string `db:"name"`
		SQL  string `db:"sql"`
	}
	err := app.DB().NewQuery("SELECT type, name, sql FROM sqlite_master WHERE tbl_name = 'billing_entries' AND type IN ('index', 'trigger') AND sql != ''").All(&parts)
	if err != nil {
		b.Fatal(err)
	}
	for _, part := range parts {
		execute("DROP " + part.Type + " " + part.Name)
	}
	return func() {
		for _, part := range parts {
			if part.Type == "index" {
				execute(part.SQL)
			}
		}
	}
}

// BenchmarkReports makes every report over VIGIL_BENCH_ENTRIES entries (20000 unless told) without the cache: as it comes without dates, over dates
// that are no whole months, and over everything; then from the cache.
func BenchmarkReports(b *testing.B) {
	n := 20000
	if asked, err := strconv.Atoi(os.Getenv("VIGIL_BENCH_ENTRIES")); err == nil {
		n = asked
	}
	app := vigiltest.NewApp(b)
	load(b, app, n)
	now := time.Date(2025, 12, 31, 17, 0, 0, 0, time.UTC)
	for _, span := range []struct{ name, from, to string }{{"usual", "", ""}, {"10 months", "2025-01-17", "2025-11-20"}, {"2 years", "2024-01-01", "2025-12-31"}} {
		for _, name := range reports.Names() {
			b.Run(fmt.Sprintf("%s/%s", span.name, name), func(b *testing.B) {
				e := engine(0)
				for b.Loop() {
					if _, err := e.Make(app, name, reports.Query{From: span.from, To: span.to, Limit: 20}, "admin", false, now); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	b.Run("breakdown by week/2 years", func(b *testing.B) {
		for b.Loop() {
			if _, err := engine(0).Break(app, "2024-01-01", "2025-12-31", reports.ByWeek); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one provider/10 months", func(b *testing.B) {
		provider := "000000000000003"
		for b.Loop() {
			if _, err := engine(0).Make(app, reports.Revenue, reports.Query{From: "2025-01-17", To: "2025-11-20", Provider: &provider}, "admin", false, now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cached", func(b *testing.B) {
		e := engine(time.Hour)
		for b.Loop() {
			if _, err := e.Make(app, reports.PayerPerformance, reports.Query{}, "admin", false, now); err != nil {
				b.Fatal(err)
			}
		}
	})
}
