package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// The EMR fails and recovers, and the service is killed in between: everything is delivered once, without intervention, and
// no delivery uses more than its first attempt. Users see that the EMR is unavailable, and then that it is available.
// Source: docs/decisions/transmissions.md, "An outage".
func TestOutage(t *testing.T) {
	t.Parallel()
	p, emr, w := deliveringPractice(t, sandbox.Fault{}, "VIGIL_EMR_QUICK_RETRY_DELAYS=1ms,1ms,1ms", "VIGIL_EMR_PROBE_INTERVAL=250ms")
	other := p.patient(t, object{"external_id": "pat-1002"})
	read := func(patient string, ago time.Duration) {
		t.Helper()
		p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), bloodPressure(patient, 120, 80, time.Now().Add(-ago))).expect(t, 201)
	}
	statuses := func(want object) bool {
		for status, count := range want {
			if at(t, p.get(t, "/api/v1/fhir/transmissions/?status="+status, p.Admin(t)).expect(t, 200), "count") != count {
				return false
			}
		}
		return true
	}
	read(w.patient, 9*time.Hour)
	eventually(t, within, "the first is delivered", func() bool { return statuses(object{"transmitted": 1.0}) })

	for _, fault := range []sandbox.Fault{{Match: "/fhir", Drop: sandbox.DropBefore}, {Match: "/oauth", Status: http.StatusServiceUnavailable}} {
		emr.addFault(t, fault)
	}
	read(w.patient, 8*time.Hour)
	eventually(t, within, "the outage is met", func() bool { return statuses(object{"failed": 1.0}) })
	for i := range 6 {
		read([]string{w.patient, other}[i%2], time.Duration(7-i)*time.Hour)
	}
	away := func(pending, failed float64) {
		t.Helper()
		eventually(t, within, "the EMR is said to be away", func() bool {
			return at(t, p.get(t, "/api/v1/fhir/status/", p.Admin(t)).expect(t, 200), "emr_connection") == "disconnected"
		})
		wantAt(t, p.get(t, "/api/v1/fhir/status/", p.Admin(t)), object{"status": "down", "queue.pending": pending, "queue.failed_awaiting_retry": failed})
	}
	away(6, 1)
	wantAt(t, p.post(t, "/api/v1/fhir/process-pending/", p.Admin(t), object{}).expect(t, 200), object{"processed": 1.0, "succeeded": 0.0, "failed": 1.0, "skipped": 5.0})
	away(5, 2)
	p.Kill()
	p.serve(t, strings.TrimPrefix(p.URL, "http://"))
	read(other, time.Minute)
	away(6, 2)

	emr.clearFaults(t)
	eventually(t, within, "all is delivered", func() bool { return statuses(object{"transmitted": 9.0, "pending": 0.0, "failed": 0.0}) })
	wantAt(t, p.get(t, "/api/v1/fhir/status/", p.Admin(t)), object{"queue.pending": 0.0, "queue.failed_awaiting_retry": 0.0})
	eventually(t, within, "the EMR is said to be back", func() bool {
		return at(t, p.get(t, "/api/v1/fhir/status/", p.Admin(t)).expect(t, 200), "emr_connection") == "connected"
	})
	if stats := emr.stats(t); stats.Observations != 9 || stats.MostPerIdentifier != 1 {
		t.Errorf("the EMR saw %+v, want nine observations", stats)
	}
	if most := number(t, p.database(t), `SELECT MAX(attempt_count) FROM transmissions`); most != 1 {
		t.Errorf("up to %d attempts", most)
	}
}
