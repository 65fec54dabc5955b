package e2e

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// A suspect weight is delivered to the EMR only after it is confirmed; the tolerance is a setting.
func TestSuspectReadingAtTheEMR(t *testing.T) {
	t.Parallel()
	p, emr, w := deliveringPractice(t, sandbox.Fault{}, "VIGIL_SUSPECT_WEIGHT_PERCENT=2.5", "VIGIL_SUSPECT_WEIGHT_KG=2.5")
	when := time.Now().Add(-10 * 24 * time.Hour).Truncate(time.Second)
	weigh := func(day int, kg float64) answer {
		return p.post(t, "/api/v1/ingestion/weight/", p.Admin(t), object{
			"patient_id": w.patient, "weight_kg": kg, "measured_at": when.AddDate(0, 0, day).UTC().Format(time.RFC3339),
		}).expect(t, 201)
	}
	for day, kg := range []float64{80, 80.2, 79.9, 82.5} { // the largest tolerated change
		wantAt(t, weigh(day, kg), object{"review_state": "accepted"})
	}
	suspect := weigh(5, 83)
	wantAt(t, suspect, object{"review_state": "suspect", "fhir_status": nil, "alert_details.level": "warning"})
	holds := func(n int) func() bool { return func() bool { return emr.stats(t).Observations == n } }
	eventually(t, within, "the others are at the EMR", holds(4))
	id := text(t, suspect, "id")
	p.post(t, "/api/v1/fhir/observations/"+id+"/transform/", p.Admin(t), object{}).expect(t, 400)
	wantAt(t, p.post(t, "/api/v1/ingestion/observations/"+id+"/confirm/", p.Admin(t), object{"notes": ""}).expect(t, 200), object{"review_state": "confirmed"})
	eventually(t, within, "the confirmed one is, too", holds(5))
	eventually(t, within, "it is known to be there", func() bool {
		return text(t, p.get(t, "/api/v1/ingestion/observations/"+id+"/", p.Admin(t)), "fhir_status") == "transmitted"
	})
}
