package e2e

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// failures are delivery errors as stored: one for each remedy.
var failures = [][2]string{
	{"patient_not_found", "Patient has no EMR id"},
	{"patient_not_found", "Patient deleted in EMR"},
	{"patient_not_found", "Patient not found in EMR"},
	{"patient_merged", "Patient merged or inactive in EMR"},
	{"auth_error", "EMR authorization failed (403: insufficient scope)"},
	{"auth_error", "EMR authorization failed (not connected)"},
	{"auth_error", "EMR authorization failed (401)"},
	{"update_refused", "Update refused by EMR (405)"},
	{"search_outdated", "EMR search may be out of date"},
	{"invalid_resource", "Invalid FHIR resource: multiple-matches"},
	{"invalid_resource", "Observation not found in EMR"},
	{"invalid_resource", "The observation has no FHIR form"},
	{"invalid_resource", "Invalid FHIR resource: invariant"},
	{"rate_limited", "EMR rate limit exceeded"},
	{"emr_unavailable", "EMR unavailable (certificate not trusted)"},
	{"emr_unavailable", "EMR unavailable (503)"},
	{"timeout", "Delivery was interrupted"},
	{"not_configured", "EMR is not configured"},
}

// A new administrator finds the dead letters, reads the remedy of each, and requeues them: one error first, then the rest.
func TestConsoleDeliveries(t *testing.T) {
	needsConsole(t)
	browser := newChromium(t)
	p, fakeServer, w := deliveringPractice(t, sandbox.Fault{Match: createAtEMR, Status: 422}, append(noRateLimits,
		"VIGIL_EMR_RETRY_DELAYS=50ms,50ms,50ms,50ms,50ms", "VIGIL_EMR_RATE_LIMIT_PER_SECOND=0")...)
	type told struct {
		ID   string `json:"id"`
		What string `json:"what"`
		Todo string `json:"todo"`
	}
	var expected []told
	for i, failure := range failures {
		reading := bloodPressure(w.patient, 120, 80, time.Now().Add(-time.Duration(i+1)*time.Hour))
		id := text(t, p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), reading).expect(t, 201), "id")
		var list answer
		eventually(t, within, "the delivery is given up", func() bool {
			list = p.get(t, "/api/v1/fhir/transmissions/?given_up=true", p.Admin(t)).expect(t, 200)
			return at(t, list, "count") == float64(i+1)
		})
		wantAt(t, list, object{"results.0.observation_id": id})
		remedy, _ := emr.RemedyFor(failure[0], failure[1], true)
		number := text(t, list, "results.0.id")
		p.amend(t, "transmissions", number, object{"error_code": failure[0], "error_message": failure[1]})
		expected = append(expected, told{number, failure[1], remedy.Text})
	}
	fakeServer.clearFaults(t)
	nobody := map[string]any{}
	browser.run(t, p, "console_deliveries.mjs", object{"email": adminEmail, "password": password, "failures": expected, "ofAuth": 3}, &nobody)
	eventually(t, within, "everything is delivered", func() bool {
		return at(t, p.get(t, "/api/v1/fhir/transmissions/?status=transmitted", p.Admin(t)).expect(t, 200), "count") == float64(len(failures))
	})
	if stats := fakeServer.stats(t); stats.Observations != len(failures) || stats.MostPerIdentifier != 1 {
		t.Errorf("the EMR holds %d observations, one of them %d times", stats.Observations, stats.MostPerIdentifier)
	}
	wantAt(t, p.get(t, "/api/v1/fhir/status/", p.Admin(t)).expect(t, 200), object{"queue.given_up": 0.0})
	wantAt(t, p.get(t, "/api/v1/audit/events/?event=emr.requeue", p.Admin(t)).expect(t, 200), object{"count": 2.0, "results.0.actor_email": adminEmail})
}
