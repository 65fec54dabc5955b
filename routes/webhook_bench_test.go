package routes_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkWebhook measures from a signed request to its 200 through the whole server, including each commit to disk:
// several numbers of senders, without repeats and with one event in ten sent twice.
func BenchmarkWebhook(b *testing.B) {
	for _, repeats := range []int{0, 10} {
		for _, senders := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("senders=%d/repeats=%d%%", senders, repeats), func(b *testing.B) {
				c := newIngestingClinic(b)
				if _, err := c.app.NonconcurrentDB().NewQuery("PRAGMA synchronous = FULL").Execute(); err != nil {
					b.Fatal(err)
				}
				for i := range 50 {
					c.enroll(object{"gateway_patient_id": fmt.Sprint("gw-", i)})
				}
				bodies := make([][]byte, b.N)
				for i := range bodies {
					n := i
					if repeats > 0 && i%repeats == repeats-1 {
						n = i - 1
					}
					bodies[i] = []byte(cuffEvent(fmt.Sprint("BP-", n%50), fmt.Sprint("gw-", n%50), 110+n%30, c.now.Add(-time.Duration(n)*time.Second)))
				}
				took := make([]time.Duration, b.N)
				var next atomic.Int64
				var group sync.WaitGroup
				b.ResetTimer()
				for range senders {
					group.Go(func() {
						for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
							began := time.Now()
							if rec := c.webhook(bodies[i], c.now); rec.Code != http.StatusOK {
								b.Errorf("answered %d: %s", rec.Code, rec.Body)
							}
							took[i] = time.Since(began)
						}
					})
				}
				group.Wait()
				b.StopTimer()
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}
