package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// A nurse sends the report of a month and about an escalation from the patient's page; the first is refused as too large, and is in the chart once
// after it was tried again.
func TestConsoleSendReport(t *testing.T) {
	needsConsole(t)
	browser := newChromium(t)
	p, fakeServer, w := deliveringPractice(t, sandbox.Fault{Match: "POST /fhir/" + practiceCode + "/DocumentReference", Status: http.StatusRequestEntityTooLarge, Times: 1}, noRateLimits...)
	p.user(t, "nurse", object{"first_name": "Nora", "last_name": "Okafor"})
	reading := bloodPressure(w.patient, 204, 90, time.Now().Add(-time.Minute))
	p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), reading).expect(t, 201)
	eventually(t, within, "the EMR's statement is read", func() bool {
		return at(t, p.get(t, "/api/v1/auth/me/", p.Admin(t)), "practice.sends_reports") == true
	})
	nobody := map[string]any{}
	browser.run(t, p, "console_send_report.mjs", object{"email": "nurse@vigil.test", "password": password}, &nobody)
	eventually(t, within, "both documents are delivered", func() bool { return fakeServer.stats(t).Created == 3 })
	wantAt(t, p.get(t, "/api/v1/fhir/transmissions/?status=transmitted", p.Admin(t)).expect(t, 200), object{"count": 3.0})
}
