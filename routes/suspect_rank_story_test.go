package routes_test

import (
	"fmt"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A suspect weight waits for confirmation: the patient ranks among the warnings until then, and by the weight once it is
// confirmed.
func TestStorySuspectRanksAmongWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		kg     float64
		answer func(c *clinic, patient string, id any)
		then   string // the level after the answer
	}{
		"11 kg more, confirmed": {99, func(c *clinic, _ string, id any) { c.confirmReading(authz.Nurse, id).want(200) }, "critical"},
		"11 kg more, entered in error": {99, func(c *clinic, _ string, id any) {
			c.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", id), object{"reason": "The spouse's."}).want(200)
		}, "normal"},
		"26 kg less, acknowledged": {62, func(c *clinic, patient string, _ any) {
			question := c.alertsOf(patient, "suspect_reading")[0]["id"]
			c.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%v/acknowledge/", question), object{"notes": "Asked."}).want(200)
		}, "normal"},
		"in pounds, confirmed": {194, func(c *clinic, _ string, id any) { c.confirmReading(authz.Provider, id).want(200) }, "critical"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient, at := c.weighedDaily(88.2, 87.9, 88, 88.1, 88.3, 87.8, 88)
			row := func() object { return c.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0] }
			wantIn(t, row(), object{"risk_level": "normal"})
			doubted := c.sendWeight("GW-1", test.kg, at).wantAt(object{"review_state": "suspect"}).at("id")
			wantIn(t, row(), object{"risk_level": "warning", "risk_score": 52.0, "handling": nil, "latest_vitals.weight.weight_kg": nil})
			test.answer(c, patient, doubted)
			if got := row()["risk_level"]; got != test.then {
				t.Errorf("answered: %v, want %s", got, test.then)
			}
		})
	}
}
