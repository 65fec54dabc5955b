package e2e

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// The patient portal on a phone, in both languages, and a caregiver of two patients; see console_portal.mjs. The caregiver is a portal account,
// which has a password, without a patient of its own.
func TestConsolePortal(t *testing.T) {
	browser, p := newConsole(t, 6, "VIGIL_PORTAL_ADVICE=Call Rosa at 518-555-0100.")
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	const caregiver = "helper@family.example"
	p.post(t, "/api/v1/auth/register/", admin, object{
		"email": caregiver, "password": sandbox.Password, "first_name": "Rosa", "last_name": "Alvarez", "role": "patient", "must_change_password": false,
	}).expect(t, 201)
	patients := at(t, p.get(t, "/api/v1/patients/?page_size=2", admin).expect(t, 200), "results").([]any)
	for i, scope := range []string{"enter", "read"} {
		id := patients[i].(object)["id"].(string)
		p.post(t, "/api/v1/patients/"+id+"/caregivers/", admin, object{"email": caregiver, "relationship": "child", "scope": scope}).expect(t, 201)
	}
	browser.run(t, p, "console_portal.mjs", object{"password": sandbox.Password, "caregiver": caregiver, "patient": patients[0].(object)["id"]}, &map[string]any{})
}
