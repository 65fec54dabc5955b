package routes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A correction closes the held value also if the new one is suspect, or corroborates a suspect one.
func TestStorySuspectCorrectionClosesHeldValue(t *testing.T) {
	for name, kg := range map[string][]float64{"usual": {88}, "suspect": {62}, "corroborates": {62, 62.3}} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(nil)
			for i := range 4 {
				c.request(authz.Nurse, "POST", "/ingestion/weight/", object{
					"patient_id": patient, "weight_kg": 88.1, "measured_at": c.now.AddDate(0, 0, i-5).Format(time.RFC3339),
				}).want(201)
			}
			portal := c.portalOf(patient)
			weigh := func(kg float64, status int) {
				c.now = c.now.Add(time.Minute)
				c.requestAs(portal, "POST", "/ingestion/weight/", object{"weight_kg": kg, "measured_at": c.now.Format(time.RFC3339)}).want(status)
			}
			for _, before := range kg[:len(kg)-1] {
				weigh(before, 201)
			}
			weigh(880, 400)
			weigh(kg[len(kg)-1], 201)
			if held := c.queryRows(t, `SELECT status FROM gateway_events WHERE implausible = TRUE`); !slices.Equal(held, []string{"discarded"}) {
				t.Errorf("the held value is %q", held)
			}
		})
	}
}
