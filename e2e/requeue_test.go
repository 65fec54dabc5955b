package e2e

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// Dead letters are requeued from the command line while the service runs, and delivered once.
func TestRetryCommand(t *testing.T) {
	t.Parallel()
	p, emr, w := deliveringPractice(t, sandbox.Fault{Match: createAtEMR, Status: 422}, "VIGIL_EMR_RETRY_DELAYS=100ms,100ms,100ms,100ms,100ms")
	w.id = text(t, p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), bloodPressure(w.patient, 120, 80, time.Now().Add(-time.Hour))).expect(t, 201), "id")
	eventually(t, within, "the delivery is given up", func() bool {
		return at(t, p.get(t, "/api/v1/fhir/status/", p.Admin(t)).expect(t, 200), "queue.given_up") == 1.0
	})
	wantAt(t, p.get(t, "/api/v1/fhir/transmissions/?given_up=true&error_code=invalid_resource", p.Admin(t)), object{
		"count": 1.0, "results.0.remedy.code": "agree_on_profile", "results.0.given_up": true,
	})
	emr.clearFaults(t)
	retry := func(want string, args ...string) {
		t.Helper()
		status, out, errOut := vigil(t, p.Env, "", append([]string{"transmissions", "retry", "--dir", p.Dir}, args...)...)
		if status != 0 || out != want {
			t.Errorf("retry %v ended with %d, %q\n%s", args, status, out, errOut)
		}
	}
	retry("1 would be queued again\n", "--since", "36h", "--dry-run")
	retry("0 queued again\n", "--since", "36h", "--code", "timeout")
	retry("1 queued again\n", "--since", "36h", "--code", "invalid_resource")
	retry("0 queued again\n", "--since", "36h")
	wantAt(t, p.post(t, "/api/v1/fhir/process-pending/", p.Admin(t), object{}).expect(t, 200), object{"succeeded": 1.0})
	wantDeliveredOnce(t, p, emr, w)
	wantAt(t, p.get(t, "/api/v1/audit/events/?event=emr.requeue", p.Admin(t)).expect(t, 200), object{"count": 1.0, "results.0.actor_type": "system"})
}
