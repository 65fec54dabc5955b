package routes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// BenchmarkList measures the most used lists through the whole server, including the audit entry's commit to disk.
func BenchmarkList(b *testing.B) {
	c := newIngestingClinic(b)
	if _, err := c.app.NonconcurrentDB().NewQuery("PRAGMA synchronous = FULL").Execute(); err != nil {
		b.Fatal(err)
	}
	for i := range 100 {
		c.enroll(object{"gateway_patient_id": fmt.Sprint("gw-", i)})
		for n := range 3 {
			body := []byte(cuffEvent(fmt.Sprint("BP-", i), fmt.Sprint("gw-", i), 110+n*30, c.now.Add(-time.Duration(n)*time.Hour)))
			if rec := c.webhook(body, c.now); rec.Code != http.StatusOK {
				b.Fatal(rec.Code, rec.Body)
			}
		}
	}
	token := "Bearer " + vigiltest.Token(b, c.people[authz.Nurse], c.now)
	for _, path := range []string{"/triage/patients/", "/ingestion/observations/", "/patients/", "/alerts/", "/triage/patients/stats/"} {
		for _, readers := range []int{1, 8} {
			b.Run(fmt.Sprintf("readers=%d%s", readers, path), func(b *testing.B) {
				var next atomic.Int64
				var group sync.WaitGroup
				for range readers {
					group.Go(func() {
						for next.Add(1) <= int64(b.N) {
							r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/api/v1"+path, nil)
							r.Header.Set("Authorization", token)
							rec := httptest.NewRecorder()
							if c.handler.ServeHTTP(rec, r); rec.Code != http.StatusOK {
								b.Error(rec.Code, rec.Body)
							}
						}
					})
				}
				group.Wait()
			})
		}
	}
}
