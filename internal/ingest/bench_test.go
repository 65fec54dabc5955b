package ingest_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// BenchmarkWriter stores readings with all their effects. Every tenth raises an alert that a later one resolves, and each commit is synced
// to disk as in the service. The number of concurrent senders is also the largest group.
func BenchmarkWriter(b *testing.B) {
	for _, senders := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(senders), func(b *testing.B) {
			app, engine := newApp(b, rules)
			waitForDisk(b, app)
			patients := make([]string, 1000)
			for i := range patients {
				patients[i] = vigiltest.Patient(b, app, nil)
			}
			w := startWriter(b, app, engine)
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			before := processorTime(b)
			for range senders {
				group.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						systolic := 120.0
						if i%10 == 0 {
							systolic = 150
						}
						r := at(withPulse(bloodPressure(systolic, 80), 70), now.Add(time.Duration(i-int64(b.N))*time.Minute))
						if _, err := w.Submit(b.Context(), gatewaySubmission(patients[i%int64(len(patients))], r)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "readings/s")
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/reading")
		})
	}
}

// waitForDisk makes the test app's commits as durable as the service's.
func waitForDisk(b *testing.B, app core.App) {
	b.Helper()
	var synchronous int
	if _, err := app.NonconcurrentDB().NewQuery("PRAGMA synchronous = FULL").Execute(); err != nil {
		b.Fatal(err)
	}
	if err := app.NonconcurrentDB().NewQuery("PRAGMA synchronous").Row(&synchronous); err != nil || synchronous != 2 {
		b.Fatalf("synchronous is %d (%v)", synchronous, err)
	}
}

// processorTime is the CPU time of this process, which hardly depends on other load on the machine.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
