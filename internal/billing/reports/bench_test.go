package reports_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// load fills a practice by SQL: a hundredth as many patients as entries, each billed for two years as the engine would, twelve providers and eight
// payers; unbilled days with data before the first period and in the last month. The nightly count computes the sums afterwards.
func load(b *testing.B, app core.App, entries int) {
	b.Helper()
	execute := func(statement string) {
		statement = strings.NewReplacer("{entries}", strconv.Itoa(entries), "{patients}", strconv.Itoa(entries/100)).Replace(statement)
		if _, err := app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
			b.Fatal(err)
		}
	}
	const patient = "printf('00000000-0000-7000-8000-%012d', i)"
	for _, statement := range []string{
		"CREATE TEMP TABLE numbers AS WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < {entries} - 1) SELECT i FROM c",
		"INSERT INTO payers (id, name, payer_code, is_active) SELECT printf('%015d', i), 'Payer ' || i, 'P' || i, TRUE FROM numbers WHERE i BETWEEN 1 AND 8",
		"INSERT INTO patients (id, mrn, active, gender, icd10_codes) SELECT " + patient + `, 'M' || i, TRUE, 'other', '["I10"]' FROM numbers WHERE i < {patients}`,
		"INSERT INTO device_assignments (device_id, patient, assigned_at) SELECT 'D' || i, " + patient + ", '2023-12-31T12:00:00.000000Z' FROM numbers WHERE i < {patients}",
		`WITH RECURSIVE d(day) AS (SELECT '2024-01-01' UNION ALL SELECT CASE day WHEN '2024-01-01' THEN '2025-12-01' ELSE date(day, '+1 day') END FROM d WHERE day < '2025-12-31')
			INSERT INTO reading_days SELECT ` + patient + ", day, 'weight', 'x', 1, 1 FROM numbers CROSS JOIN d WHERE i < {patients}",
	} {
		execute(statement)
	}
	restore := bare(b, app)
	// Of four entries one is for a period of 30 days, three for a month. A claim is paid a month after submission, unless denied (one of ten); those of
	// the last two months are undecided.
	execute(`WITH e AS (SELECT i, i % {patients} AS p, min(i / {patients}, 95) / 4 AS m, CASE WHEN i / {patients} > 95 THEN 4 ELSE i / {patients} % 4 END AS k,
				(i * 104729) % 100 AS dice FROM numbers),
			f AS (SELECT *, CASE k WHEN 0 THEN date('2024-01-01', (30 * m) || ' days') ELSE date('2024-01-01', m || ' months') END AS first FROM e),
			g AS (SELECT *, CASE k WHEN 0 THEN date(first, '29 days') ELSE date(first, '1 month', '-1 day') END AS last,
				CASE k WHEN 0 THEN date(first, '29 days') ELSE date(first, (p % 28) || ' days') END AS day FROM f),
			s AS (SELECT *, CASE WHEN dice < 2 THEN 'voided' WHEN day > '2025-12-26' THEN 'pending_review' WHEN day > '2025-12-21' THEN 'reviewed' WHEN dice < 9 THEN 'denied'
				WHEN dice < 11 THEN 'appealed' WHEN day > '2025-11-01' THEN 'submitted' ELSE 'paid' END AS state FROM g)
		INSERT INTO billing_entries (id, claim_id, patient, cpt_code, service_date, units, amount_cents, lifecycle_status, source, payer, payer_name,
			rendering_provider, billing_period_start, billing_period_end, submitted_at, payment_cents, payment_date, denial_code, denial_description, denial_date,
			created_at, reviewed_at, warnings)
		SELECT printf('10000000-0000-7000-8000-%012d', i), 'C' || i, printf('00000000-0000-7000-8000-%012d', p),
			CASE k WHEN 0 THEN '99454' WHEN 1 THEN '99457' WHEN 2 THEN '99458' WHEN 3 THEN '99091' ELSE '99453' END, day, 1, 1900 + dice * 31, state,
			CASE k WHEN 0 THEN 'automatic_device' WHEN 1 THEN 'automatic_time' WHEN 2 THEN 'automatic_time' ELSE 'manual' END,
			printf('%015d', 1 + (i / 5) % 8), 'Payer', printf('%015d', 1 + (i / 40) % 12), first, last,
			CASE WHEN state IN ('voided', 'pending_review', 'reviewed') THEN '' ELSE date(day, '3 days') || 'T15:00:00.000000Z' END,
			CASE state WHEN 'paid' THEN 1800 END, CASE state WHEN 'paid' THEN date(day, '33 days') ELSE '' END,
			CASE WHEN state IN ('denied', 'appealed') THEN 'CO-' || (dice + i % 7) ELSE '' END, CASE WHEN state IN ('denied', 'appealed') THEN 'Denied' ELSE '' END,
			CASE WHEN state IN ('denied', 'appealed') THEN date(day, '20 days') ELSE '' END, day || 'T12:00:00.000000Z', day || 'T13:00:00.000000Z',
			CASE WHEN state = 'pending_review' AND i % 3 = 0 THEN '["attest_interaction"]' ELSE '[]' END FROM s`)
	restore()
	execute(`INSERT INTO time_entries (patient, category, source, started_at, ended_at, duration_seconds, notes, billing_entry)
		SELECT patient, 'interactive', 'manual', service_date || 'T15:00:00.000000Z', service_date || 'T15:20:00.000000Z', 1200, 'sealed', id
		FROM billing_entries WHERE cpt_code IN ('99457', '99458')`)
	start := time.Now()
	months, _, err := billing.RecountTotals(b.Context(), app)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d entries in %d months recounted in %.1f s", entries, months, time.Since(start).Seconds())
}

// bare drops indexes and triggers of the entries while a million are inserted, and returns a function that restores the indexes.
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

// BenchmarkReports makes every report over VIGIL_BENCH_ENTRIES entries (default 20000) without the cache: without dates, over partial months, and
// over everything; then from the cache.
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
					if _, err := e.Build(app, name, reports.Query{From: span.from, To: span.to, Limit: 20}, "admin", false, now); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	b.Run("breakdown by week/2 years", func(b *testing.B) {
		for b.Loop() {
			if _, err := engine(0).Breakdown(app, "2024-01-01", "2025-12-31", reports.ByWeek); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("self-audit/a month", func(b *testing.B) {
		month, _ := billing.MonthSpan("2025-11")
		for b.Loop() {
			facts, err := reports.GatherAuditFacts(app, time.UTC, month)
			if err != nil || len(reports.FindPatterns(facts)) == 0 {
				b.Fatal("nothing is found", err)
			}
		}
	})
	b.Run("one provider/10 months", func(b *testing.B) {
		provider := "000000000000003"
		for b.Loop() {
			if _, err := engine(0).Build(app, reports.Revenue, reports.Query{From: "2025-01-17", To: "2025-11-20", Provider: &provider}, "admin", false, now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cached", func(b *testing.B) {
		e := engine(time.Hour)
		for b.Loop() {
			if _, err := e.Build(app, reports.PayerPerformance, reports.Query{}, "admin", false, now); err != nil {
				b.Fatal(err)
			}
		}
	})
}
