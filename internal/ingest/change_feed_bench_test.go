package ingest_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// BenchmarkChangeFeed stores readings as BenchmarkWriter does, from 64 senders at once, alternating between a database with the change
// feed's triggers and one without, and reports the ratio of CPU time: the median of the rounds.
func BenchmarkChangeFeed(b *testing.B) {
	const senders, share = 64, 2560
	plain, notifying := newBenchWriter(b), newBenchWriter(b)
	plain.dropTriggers(b)
	for range 2 { // warm up the connections and the cache
		plain.round(b, senders, share)
		notifying.round(b, senders, share)
	}
	var cpu, elapsed []float64
	b.ResetTimer()
	for i := range b.N {
		without, with := cost{}, cost{}
		if i%2 == 0 {
			without, with = plain.round(b, senders, share), notifying.round(b, senders, share)
		} else {
			with, without = notifying.round(b, senders, share), plain.round(b, senders, share)
		}
		cpu = append(cpu, float64(with.cpu)/float64(without.cpu))
		elapsed = append(elapsed, float64(with.elapsed)/float64(without.elapsed))
	}
	slices.Sort(cpu)
	slices.Sort(elapsed)
	b.ReportMetric(cpu[len(cpu)/2], "cpu-ratio")
	b.ReportMetric(elapsed[len(elapsed)/2], "time-ratio")
}

type cost struct{ cpu, elapsed time.Duration }

// benchWriter is a database with a writer.
type benchWriter struct {
	app      core.App
	submit   func(i int64) error
	patients []string
	next     atomic.Int64
}

func newBenchWriter(b *testing.B) *benchWriter {
	app, engine := newApp(b, rules)
	waitForDisk(b, app)
	p := &benchWriter{app: app, patients: make([]string, 1000)}
	for i := range p.patients {
		p.patients[i] = vigiltest.Patient(b, app, nil)
		vigiltest.Assign(b, app, fmt.Sprint("BP-", i), p.patients[i], now.Add(-400*24*time.Hour))
	}
	w := startWriter(b, app, engine)
	start := now.Add(-365 * 24 * time.Hour)
	p.submit = func(i int64) error {
		systolic := 120.0
		if i%10 == 0 {
			systolic = 150
		}
		r := at(withPulse(bloodPressure(systolic, 80), 70), start.Add(time.Duration(i)*time.Second))
		r.DeviceID = fmt.Sprint("BP-", i%1000)
		_, err := w.Submit(b.Context(), gatewaySubmission(p.patients[i%1000], r))
		return err
	}
	return p
}

// dropTriggers removes the change feed's triggers.
func (w *benchWriter) dropTriggers(b *testing.B) {
	var names []string
	if err := w.app.DB().NewQuery(`SELECT name FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'changes_*'`).Column(&names); err != nil || len(names) < 30 {
		b.Fatalf("%d triggers, %v", len(names), err)
	}
	for _, name := range names {
		if _, err := w.app.NonconcurrentDB().NewQuery("DROP TRIGGER " + name).Execute(); err != nil {
			b.Fatal(err)
		}
	}
}

func (w *benchWriter) round(b *testing.B, senders int, share int64) cost {
	end := w.next.Load() + share
	began, before := time.Now(), processorTime(b)
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			for i := w.next.Add(1); i <= end; i = w.next.Add(1) {
				if err := w.submit(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	w.next.Store(end)
	return cost{processorTime(b) - before, time.Since(began)}
}
