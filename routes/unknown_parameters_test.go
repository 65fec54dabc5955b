package routes_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A misspelled filter must not show everything, and of a repeated one none is chosen.
func TestUnknownParameters(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	for _, path := range []string{
		"/patients/?serach=Doe", "/patients/?page=1&pagesize=5", "/alerts/?severity=critical", "/ingestion/observations/?patient=" + patient, "/triage/patients/?Page=1",
		"/patients/" + patient + "/?expand=all", "/auth/profile/?x", "/billing/entries/?cpt=99457", "/audit/events/?when=today", "/schema/?version=2", "/users/?role%20=nurse",
	} {
		name, _, _ := strings.Cut(path[strings.LastIndexAny(path, "?&")+1:], "=")
		answer := c.request(authz.Admin, "GET", path, nil).want(400, "validation_error")
		if got := answer.fieldErrors(strings.ReplaceAll(name, "%20", " ")); got != "Unknown parameter." {
			t.Errorf("%s: %s", path, answer.body)
		}
	}
	c.request(authz.Nurse, "POST", "/patients/?dry_run=true", object{}).want(400, "validation_error")
	c.request(authz.Patient, "GET", "/audit/events/?when=today", nil).want(403) // who may not read learns nothing about the filters
	c.send("", "GET", "/patients/?serach=Doe", nil).want(401)

	for _, path := range []string{"/auth/oidc/?iss=https://idp.example", "/emr/auth/callback/?state=x&code=y&iss=https://emr.example&session_state=z"} {
		if answer := c.send("", "GET", path, nil); strings.Contains(answer.body, "Unknown parameter") {
			t.Errorf("%s: %s", path, answer.body)
		}
	}
	for path, name := range map[string]string{
		"/patients/?page=1&page=2": "page", "/alerts/?level=critical&level=critical": "level", "/changes/?limit=1&limit=2": "limit",
		"/ingestion/observations/?patient_id=" + patient + "&patient_id=" + unknownPatient: "patient_id", "/schema/?format=json&format=yaml": "format",
		"/devices/?hub_id=&hub_id=H1": "hub_id",
	} {
		if answer := c.request(authz.Admin, "GET", path, nil).want(400, "validation_error"); answer.fieldErrors(name) != "Send this parameter once." {
			t.Errorf("%s: %s", path, answer.body)
		}
	}
	c.request(authz.Admin, "GET", "/patients/?search=Doe&page=1&page_size=5&active=true&ordering=last_name", nil).want(200)
}
