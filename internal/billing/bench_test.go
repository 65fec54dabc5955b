package billing_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// BenchmarkNightlyRun bills a practice whose patients (VIGIL_BENCH_PATIENTS, 2000 unless told) all have 30 days with data; the second figure is
// the run after it, which finds everything done.
func BenchmarkNightlyRun(b *testing.B) {
	n := 2000
	if asked, err := strconv.Atoi(os.Getenv("VIGIL_BENCH_PATIENTS")); err == nil {
		n = asked
	}
	for b.Loop() {
		b.StopTimer()
		app := vigiltest.NewApp(b)
		count := strconv.Itoa(n)
		for _, statement := range []string{
			`CREATE TEMP TABLE numbers AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ` + count + `) SELECT i FROM c`,
			`INSERT INTO patients (id, mrn, active, gender, icd10_codes) SELECT printf('00000000-0000-7000-8000-%012d', i), 'M' || i, TRUE, 'other', '["I10"]' FROM numbers`,
			`INSERT INTO consents (id, patient, type, method, granted_at) SELECT printf('%015d', i), printf('00000000-0000-7000-8000-%012d', i), 'rpm', 'written',
				'2025-12-01T12:00:00.000000Z' FROM numbers`,
			`INSERT INTO device_assignments (device_id, patient, assigned_at) SELECT 'D' || i, printf('00000000-0000-7000-8000-%012d', i),
				'2026-01-01T12:00:00.000000Z' FROM numbers`,
			`WITH RECURSIVE d(day) AS (SELECT '2026-01-02' UNION ALL SELECT date(day, '+1 day') FROM d WHERE day < '2026-01-31')
				INSERT INTO reading_days SELECT printf('00000000-0000-7000-8000-%012d', i), day, 'weight', 'x', 1, 1 FROM numbers CROSS JOIN d`,
		} {
			if _, err := app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
				b.Fatal(err)
			}
		}
		now := func() time.Time { return time.Date(2026, 2, 2, 7, 0, 0, 0, time.UTC) }
		b.StartTimer()
		result, err := newEngine().Run(b.Context(), app, billing.DeviceJob, audit.System(), now)
		if err != nil || len(result.Created) != n {
			b.Fatalf("%d entries: %v", len(result.Created), err)
		}
		b.StopTimer()
		start := time.Now()
		if again, err := newEngine().Run(b.Context(), app, billing.DeviceJob, audit.System(), now); err != nil || len(again.Created) != 0 {
			b.Fatalf("a second run made %d entries: %v", len(again.Created), err)
		}
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/again")
		b.ReportMetric(float64(memory.Sys>>20), "MiB")
		b.StartTimer()
	}
}
