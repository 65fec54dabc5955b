package routes_test

import (
	"net/http/httptest"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// FHIR paths answer errors with an OperationOutcome; other paths answer as the contract states.
func TestFHIRFaults(t *testing.T) {
	c := newClinic(t)
	const fhirType, jsonType = "application/fhir+json", "application/json"
	ask := func(method, path, accept string, role authz.Role) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "/api/v1"+path, nil)
		if role != "" {
			r.Header.Set("Authorization", "Bearer "+vigiltest.Token(t, c.people[role], c.now))
		}
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		rec := httptest.NewRecorder()
		c.handler.ServeHTTP(rec, r)
		return rec
	}
	unknown := collections.NewUUID()
	for _, test := range []struct {
		method, path, accept string
		role                 authz.Role
		status               int
		kind, code           string // FHIR's code, or Vigil's
	}{
		{"GET", "/fhir/observations/" + unknown + "/", fhirType, authz.Nurse, 404, fhirType, "not-found"},
		{"GET", "/fhir/observations/x/", fhirType + ", application/json;q=0.5", authz.Nurse, 404, fhirType, "not-found"},
		{"GET", "/fhir/observations/" + unknown + "/", "", authz.Nurse, 404, jsonType, "not_found"},
		{"GET", "/fhir/observations/" + unknown + "/", "*/*", authz.Nurse, 404, jsonType, "not_found"},
		{"GET", "/fhir/observations/" + unknown + "/", jsonType + ", " + fhirType, authz.Nurse, 404, jsonType, "not_found"},
		{"GET", "/fhir/observations/" + unknown + "/", "text/html", authz.Nurse, 406, jsonType, "not_acceptable"},
		{"GET", "/fhir/patients/" + unknown + "/", fhirType, authz.Nurse, 404, fhirType, "not-found"},
		{"GET", "/fhir/patients/" + unknown + "/", fhirType, authz.DataMonitor, 403, fhirType, "forbidden"},
		{"GET", "/fhir/patients/" + unknown + "/", fhirType, "", 401, fhirType, "login"},
		{"GET", "/fhir/Observation/1", fhirType, authz.Nurse, 404, fhirType, "not-found"},
		{"GET", "/fhir/metadata", fhirType, "", 404, fhirType, "not-found"},
		{"GET", "/fhir/metadata", "text/html", "", 404, jsonType, "not_found"},
		{"GET", "/fhir/metadata", "", "", 404, jsonType, "not_found"},
		{"DELETE", "/fhir/observations/" + unknown + "/", fhirType, authz.Nurse, 405, fhirType, "not-supported"},
		{"GET", "/fhir/status/", fhirType, authz.Nurse, 406, jsonType, "not_acceptable"},
		{"GET", "/nothing/", fhirType, authz.Nurse, 404, jsonType, "not_found"},
	} {
		rec := ask(test.method, test.path, test.accept, test.role)
		answer := reply{t, test.method + " " + test.path, rec.Code, rec.Body.String()}
		if rec.Header().Get("Content-Type") != test.kind || rec.Code != test.status {
			t.Errorf("%s for %q: %d %s", test.path, test.accept, rec.Code, rec.Header().Get("Content-Type"))
			continue
		}
		code := answer.at("code")
		if test.kind == fhirType {
			issues, _ := answer.at("issue").([]any)
			if len(issues) == 0 || answer.at("resourceType") != "OperationOutcome" {
				t.Errorf("%s: %s", test.path, rec.Body)
				continue
			}
			code = issues[0].(object)["code"]
		}
		if code != test.code {
			t.Errorf("%s for %q: %v, want %s", test.path, test.accept, code, test.code)
		}
	}
	c.request(authz.Nurse, "GET", "/fhir/observations/"+unknown+"/", nil, "Accept", fhirType).want(404)
}
