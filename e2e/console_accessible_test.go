package e2e

import (
	"os"
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// accessibleDialogs must be among the tested dialogs, by the start of their titles.
var accessibleDialogs = []string{
	"Acknowledge ", "Acknowledge with an outcome", "Resolve the alert", "Escalate the alert", "Escalate ", "Snooze alerts", "Note and time", "Log a phone call",
	"Edit patient", "Find a patient", "Keyboard shortcuts", "Care team", "Record consent", "Assign a device", "Enter a reading", "Export claims", "Run billing", "Add a shift",
}

// Every view of the router with its tabs and dialogs passes axe in both color schemes, on a desktop, at 200 % and on a
// phone, does not scroll sideways, and can be operated, with visible focus and accessible names, by keyboard alone. The
// sizes alternate; `make test-looks` runs all.
func TestConsoleAccessible(t *testing.T) {
	browser, p := newConsole(t, 12)
	biller := p.signInWith(t, "billing@vigil.example", sandbox.Password)
	p.post(t, "/api/v1/billing/run/", biller, object{}).expect(t, 200)
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	patient := text(t, p.get(t, "/api/v1/triage/patients/?page_size=1", admin).expect(t, 200), "results.0.patient_id")
	p.post(t, "/api/v1/escalations/", admin, object{"patient_id": patient, "priority": "urgent", "reason": "Rising since Friday."}).expect(t, 201)
	var saw struct{ Views, Dialogs, States int }
	browser.run(t, p, "console_accessible.mjs", object{
		"password": sandbox.Password, "all": os.Getenv("VIGIL_TEST_LOOKS") == "all", "dialogs": accessibleDialogs, "patient": patient,
		"entry":      text(t, p.get(t, "/api/v1/billing/entries/?page_size=1", biller).expect(t, 200), "results.0.id"),
		"unfinished": text(t, p.get(t, "/api/v1/enrolments/?page_size=1", admin).expect(t, 200), "results.0.patient_id"),
	}, &saw)
	t.Logf("%d views and %d dialogs, in %d states", saw.Views, saw.Dialogs, saw.States)
}
