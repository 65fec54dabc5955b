package routes_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// BenchmarkReadingsOfPatient lists the newest readings of one patient who has 1,000.
func BenchmarkReadingsOfPatient(b *testing.B) {
	c := newIngestingClinic(b)
	id := c.enroll(nil)
	for i := range 200 {
		c.request(authz.Nurse, http.MethodPost, "/ingestion/blood-pressure/", bp(id, c.now.Add(-time.Duration(i)*time.Hour), 120, 80)).want(http.StatusCreated)
	}
	token := c.tokenOf(authz.Nurse)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/ingestion/observations/?patient_id="+id, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		rec := httptest.NewRecorder()
		if c.handler.ServeHTTP(rec, r); rec.Code != http.StatusOK {
			b.Fatal(rec.Code, rec.Body)
		}
	}
}
