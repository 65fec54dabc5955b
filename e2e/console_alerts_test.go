package e2e

import (
	"testing"
	"time"
)

// The alert and escalation boards in a real browser, in a practice changed only by the scripts. Acknowledging 28 alerts with
// a note took 58 clicks besides the note text; reassigning an escalation took two clicks and 22 typed characters. Both take
// less than half of that.
func TestConsoleAlerts(t *testing.T) {
	needsConsole(t)
	browser := newChromium(t)
	p := newPractice(t, append([]string{"VIGIL_EARLY_WARNING=false"}, noRateLimits...)...).serve(t, "")
	p.user(t, "nurse", object{"first_name": "Noah", "last_name": "Okafor"})
	p.user(t, "provider", object{"first_name": "Priya", "last_name": "Raman"})
	p.user(t, "clinical_manager", object{"first_name": "Maria", "last_name": "Lindqvist"})
	for _, name := range []string{"Hall", "Tanaka", "O’Neill", "Walsh", "Silva", "Andersen", "Mbeki", "Carter"} {
		p.patient(t, object{"last_name": name})
	}
	whose := p.patient(t, object{"first_name": "Ingrid", "last_name": "Kim", "gateway_patient_id": "GW-KIM"})
	p.post(t, "/api/v1/devices/assign/", p.Admin(t), object{"device_id": "CUFF-1", "patient_id": whose, "device_type": "blood_pressure"}).expect(t, 200)
	p.signed(t, object{"event_type": "device.connected", "device_id": "CUFF-1", "hub_id": "HUB-1", "timestamp": time.Now().UTC().Format(time.RFC3339)}).expect(t, 200)

	t.Run("alerts", func(t *testing.T) {
		var took struct{ Keys, Clicks int }
		browser.run(t, p, "console_alerts.mjs", object{"password": password}, &took)
		if took.Keys+took.Clicks > 28 {
			t.Errorf("28 alerts took %+v", took)
		}
		t.Logf("28 alerts: %+v", took)
	})
	t.Run("escalations", func(t *testing.T) {
		var took struct{ Keys, Clicks int }
		browser.run(t, p, "console_escalations.mjs", object{"password": password}, &took)
		if took.Keys+took.Clicks > 12 {
			t.Errorf("giving an escalation to a colleague took %+v", took)
		}
		t.Logf("an escalation given: %+v", took)
	})
}
