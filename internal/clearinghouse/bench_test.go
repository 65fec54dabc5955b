package clearinghouse_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// BenchmarkSend sends a thousand lines while another writer runs, and measures the longest wait, which readings would have too.
func BenchmarkSend(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		p := newPractice(b)
		entries := p.crowd(1000)
		var stop atomic.Bool
		done := make(chan time.Duration)
		go func() {
			var longest time.Duration
			for !stop.Load() {
				began := time.Now()
				err := p.app.RunInTransaction(func(tx core.App) error {
					_, err := tx.DB().Update("patients", dbx.Params{"active": true}, dbx.HashExp{"mrn": "M1"}).Execute()
					return err
				})
				if err != nil {
					panic(err)
				}
				longest = max(longest, time.Since(began))
			}
			done <- longest
		}()
		b.StartTimer()
		_, err := p.house.SendBatch(p.app, entries, p.by, p.now)
		b.StopTimer()
		stop.Store(true)
		p.must(err)
		b.ReportMetric(float64((<-done).Milliseconds()), "ms-longest-wait")
		b.StartTimer()
	}
}
