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

// BenchmarkNightlyRun bills a practice in which every patient (VIGIL_BENCH_PATIENTS, default 2000) has 30 days with data; the second figure is the
// next run, which finds nothing to do.
func BenchmarkNightlyRun(b *testing.B) {
	n := 2000
	if asked, err := strconv.Atoi(os.Getenv("VIGIL_BENCH_PATIENTS")); err == nil {
		n = asked
	}
	for b.Loop() {
		b.StopTimer()
		app := vigiltest.NewApp(b)
		plantHolders(b, app, n)
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
