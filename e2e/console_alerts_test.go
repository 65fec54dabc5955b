package e2e

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// The boards of alerts and escalations, in a real browser. Answering 28 alerts with a note took two clicks each and two turns of the page, 58 without
// the letters of the notes; giving an escalation to a colleague took two clicks and the 22 letters of an address. Both take less than half of that.
func TestConsoleAlerts(t *testing.T) {
	browser, p := newConsole(t, 12)
	var alerts struct{ Day struct{ Keys, Clicks int } }
	browser.run(t, p, "console_alerts.mjs", object{"password": sandbox.Password}, &alerts)
	if took := alerts.Day.Keys + alerts.Day.Clicks; took > 28 {
		t.Errorf("28 alerts took %d keys and clicks: %+v", took, alerts.Day)
	}
	var given struct{ Keys, Clicks int }
	browser.run(t, p, "console_escalations.mjs", object{"password": sandbox.Password}, &given)
	if took := given.Keys + given.Clicks; took > 12 {
		t.Errorf("giving an escalation to a colleague took %d keys and clicks", took)
	}
	t.Logf("28 alerts: %+v, an escalation given: %+v", alerts.Day, given)
}
