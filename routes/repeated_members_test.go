package routes_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A body with two members of one name is refused, since senders may disagree on which one counts.
func TestRepeatedMembersAreRefused(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(nil)
	before := vigiltest.RowCounts(t, c.app)
	at := c.now.Add(-time.Hour).Format(time.RFC3339)
	for _, test := range []struct{ method, path, body, field string }{
		{"POST", "/ingestion/blood-pressure/", `{"patient_id":"` + id + `","systolic":190,"diastolic":80,"measured_at":"` + at + `","systolic":120}`, "systolic"},
		{"POST", "/ingestion/weight/", `{"patient_id":"` + unknownPatient + `","patient_id":"` + id + `","weight_kg":80,"measured_at":"` + at + `"}`, "patient_id"},
		{"POST", "/patients/", `{"first_name":"A","last_name":"B","date_of_birth":"1955-12-10","gender":"female","address":{"line1":"1 Main St","city":"X","city":"Y"}}`, "address.city"},
		{"PUT", "/patients/" + id + "/", `{"first_name":"A","first_name":"B"}`, "first_name"},
		{"PUT", "/patients/" + id + "/vital-config/", `{"pulse":{"high":100,"high":200},"reason":"x"}`, "pulse.high"},
		{"PUT", "/patients/" + id + "/care-team/", `{"members":[{"user_id":1},{"user_id":1,"user_id":2}]}`, "members.1.user_id"},
		{"PATCH", "/users/me/notification-preferences/", `{"channels":{"alerts":{"push":true,"push":false}}}`, "channels.alerts.push"},
		{"POST", "/auth/register/", `{"role":"nurse","role":"admin"}`, "role"},
		{"POST", "/auth/logout/", `{"refresh":"a","refresh":"b"}`, "refresh"},
		{"POST", "/triage/patients/" + id + "/review/", `{"unknown":1,"unknown":1}`, "unknown"},
	} {
		c.request(authz.Admin, test.method, test.path, test.body).wantFields(test.field)
	}
	for _, path := range []string{"/auth/login/", "/auth/token/refresh/", "/auth/password-reset/", "/auth/password-reset/confirm/"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1"+path, strings.NewReader(`{"email":"a@vigil.test","email":"b@vigil.test"}`))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		c.handler.ServeHTTP(rec, r)
		reply{t, path, rec.Code, rec.Body.String()}.wantFields("email")
	}
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) > 0 {
		t.Errorf("refused bodies left %v", added)
	}
	c.request(authz.Admin, "PATCH", "/users/me/notification-preferences/", `{"channels":{"alerts":{"push":true,"PUSH":false}}}`).want(200).
		wantAt(object{"channels.alerts.push": true})
}

// Every route that reads its body refuses a repeated member by name, or does not read the body, or finds no record.
func TestEveryRouteRefusesRepeatedMembers(t *testing.T) {
	c := newIngestingClinic(t)
	named := 0
	for _, route := range rowsByEffect() {
		if route.Method == http.MethodGet || route.Gateway || !strings.HasPrefix(route.Path, "/api/v1/") { // FHIR's bodies are forms
			continue
		}
		path := strings.TrimPrefix(pathParameter.ReplaceAllString(route.Path, "999999"), "/api/v1")
		for _, role := range authz.Roles {
			if answer := c.request(role, route.Method, path, `{"twice":1,"twice":{"a":2}}`); answer.status == 400 && answer.at("field_errors.twice") != nil {
				named++
			} else if answer.status == 201 || answer.status == 400 && answer.at("code") == "validation_error" {
				t.Errorf("%s %s as %s: %d %s", route.Method, route.Path, role, answer.status, answer.body)
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d bodies were refused", named)
	}
}

// A signed event with a repeated member is refused and quarantined.
func TestRepeatedMembersFromGateway(t *testing.T) {
	c := newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	good := cuffEvent("BP-1", "GW-1", 121, c.now)
	for field, twice := range map[string]string{
		"values.systolic": strings.Replace(good, `"diastolic"`, `"systolic":190,"diastolic"`, 1),
		"patient_id":      strings.Replace(good, `"patient_id"`, `"patient_id":"GW-2","patient_id"`, 1),
		"vendor.a":        strings.Replace(good, `"patient_id"`, `"vendor":{"a":1,"a":1},"patient_id"`, 1),
	} {
		before := vigiltest.RowCounts(t, c.app)
		c.postEvent(t, twice).wantFields(field)
		if added := vigiltest.RowsAdded(t, c.app, before); added["observations"] != 0 || added["gateway_events"] != 1 {
			t.Errorf("%s twice left %v", field, added)
		}
	}
	if kept := c.request(authz.MA, http.MethodGet, "/ingestion/quarantine/?status=rejected", nil).results(); len(kept) != 3 {
		t.Errorf("kept: %v", kept)
	}
	c.postEvent(t, good).want(200).wantAt(object{"status": "accepted"})
}

// A dangerous value of an event that repeats a member raises the alert and its stat escalation, though the event is refused.
func TestStoryDangerInRepeatedMembers(t *testing.T) {
	for name, repeated := range map[string]string{
		"a battery": `"battery_level":80,"battery_level":81,`, "an equal battery": `"battery_level":80,"battery_level":80,`,
		"an unknown member": `"vendor":{"a":1,"a":2},`, "equal values": `"values":{"systolic":212,"systolic":212,"diastolic":126},`,
		"one value": `"values":{"systolic":212,"diastolic":126,"diastolic":80},`, "no dangerous one": `"values":{"systolic":121,"diastolic":80,"pulse":70,"pulse":71},`,
		"half a surrogate": `"values":{"systolic":212,"diastolic":126,"x\ud800":1},`,
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		body := `{"event_type":"measurement.created","device_id":"BP-1","patient_id":"GW-1","measurement_type":"blood_pressure","unit":"mmHg",` + repeated +
			`"timestamp":"` + c.now.Add(-time.Minute).Format(time.RFC3339) + `"`
		if !strings.Contains(repeated, "values") {
			body += `,"values":{"systolic":212,"diastolic":126,"pulse":70}`
		}
		status, want := 400, 1
		switch name {
		case "half a surrogate":
			status = 200
		case "no dangerous one":
			want = 0
		}
		c.postEvent(t, body+"}").want(status)
		stats := c.request(authz.Nurse, "GET", "/escalations/?priority=stat&patient_id="+patient, nil).want(200).results()
		critical := c.request(authz.Nurse, "GET", "/alerts/?level=critical&patient_id="+patient, nil).want(200).results()
		if len(stats) != want || len(critical) != want {
			t.Errorf("%s: %d stat escalations, %d critical alerts, want %d", name, len(stats), len(critical), want)
		}
	}
}
