package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// Latency of storing a reading, without other load and during many concurrent sign-ins. Run it with go test -run '^$' -bench
// LoginStorm .
func BenchmarkLoginStorm(b *testing.B) {
	p := newPractice(b).serve(b, "")
	admin := p.Admin(b)
	patient := p.patient(b, object{})
	measuredAt := time.Now().UTC().Add(-24 * time.Hour)
	for _, storm := range []struct {
		name   string
		people int
	}{{"alone", 0}, {"storm", 64}} {
		b.Run(storm.name, func(b *testing.B) {
			over := make(chan struct{})
			var people sync.WaitGroup
			for i := range storm.people {
				people.Go(func() {
					for try := 0; ; try++ {
						select {
						case <-over:
							return
						default:
							body := encode(b, object{"email": fmt.Sprintf("%d-%d@practice.test", i, try), "password": "Wrong-Password-1"})
							p.send(b, "POST", "/api/v1/auth/login/", "", body)
						}
					}
				})
			}
			var took []time.Duration
			for b.Loop() {
				measuredAt = measuredAt.Add(time.Second)
				started := time.Now()
				p.post(b, "/api/v1/ingestion/blood-pressure/", admin, bloodPressure(patient, 121, 79, measuredAt)).expect(b, 201)
				took = append(took, time.Since(started))
			}
			close(over)
			people.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "ms-p95")
		})
	}
}
