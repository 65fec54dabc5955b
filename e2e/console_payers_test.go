package e2e

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// Every setting of a payer is seen and changed in the console.
func TestConsolePayers(t *testing.T) {
	browser, p := newConsole(t, 2)
	none := map[string]any{}
	browser.run(t, p, "console_payers.mjs", object{"password": sandbox.Password}, &none)
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	for _, row := range at(t, p.get(t, "/api/v1/billing/payers/?page_size=100", admin).expect(t, 200), "results").([]any) {
		payer := row.(object)
		if payer["name"] != "Lakeside Health" {
			continue
		}
		stored := object{
			"filing_limit_days": 180.0, "appeal_limit_days": 60.0, "corrected_claims": "new_claim", "minutes_rule": "care_management", "device_days": 16.0,
			"send_ordering_provider": true,
		}
		for name, want := range stored {
			if payer[name] != want {
				t.Errorf("%s is %v, want %v", name, payer[name], want)
			}
		}
		return
	}
	t.Error("the payer is not stored")
}
