package e2e

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The EMR opens Vigil in a real browser: a user without a link, the same user afterwards, two tabs, the back button, and a page for each refusal.
// Source: docs/decisions/authentication.md, "Launch from the EMR".
func TestConsoleLaunch(t *testing.T) {
	emr := vigiltest.NewIdentityProvider(t, time.Now)
	emr.Launch = map[string]any{}
	emr.SignedIn = map[string]any{"sub": "practitioner-1", "fhirUser": emr.URL + "/Practitioner/1"}
	emr.Context = map[string]any{"patient": "emr-patient-1"}
	browser, p := newLocalConsole(t, 5, "VIGIL_SMART_ISSUERS="+emr.URL+"="+vigiltest.SignOnClient, "VIGIL_EMR_FHIR_BASE_URL="+emr.URL)
	nurse := p.signInWith(t, "nurse@vigil.example", sandbox.Password)
	patient := at(t, p.get(t, "/api/v1/patients/", nurse).expect(t, 200), "results.0").(object)
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	p.send(t, "PATCH", "/api/v1/patients/"+patient["id"].(string)+"/", admin, `{"external_id":"emr-patient-1"}`).expect(t, 200)
	browser.run(t, p, "console_launch.mjs", object{
		"password": sandbox.Password, "issuer": emr.URL, "patient": patient["last_name"],
	}, &struct{}{})
}
