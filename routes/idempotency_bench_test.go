package routes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// BenchmarkReadingsUnderKeys stores readings of 64 concurrent senders, without and with a key each.
func BenchmarkReadingsUnderKeys(b *testing.B) {
	for _, keyed := range []bool{false, true} {
		b.Run(fmt.Sprintf("keyed=%t", keyed), func(b *testing.B) {
			c := newIngestingClinic(b)
			var patients []string
			for i := range 64 {
				patients = append(patients, c.enroll(object{"mrn": fmt.Sprintf("BENCH-%d", i)}))
			}
			token, first := c.tokenOf(authz.Nurse), c.now.Add(-400*24*time.Hour)
			var sent atomic.Int64
			b.SetParallelism(32)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					n := sent.Add(1)
					body := encoded(b, bp(patients[n%64], first.Add(time.Duration(n)*time.Second), 120, 80))
					r := httptest.NewRequest(http.MethodPost, "/api/v1/ingestion/blood-pressure/", strings.NewReader(body))
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Authorization", "Bearer "+token)
					if keyed {
						r.Header.Set("Idempotency-Key", fmt.Sprintf("8e03978e-40d5-43e8-bc93-%012d", n))
					}
					rec := httptest.NewRecorder()
					if c.handler.ServeHTTP(rec, r); rec.Code != http.StatusCreated {
						b.Errorf("%d %s", rec.Code, rec.Body)
						return
					}
				}
			})
		})
	}
}
