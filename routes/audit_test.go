package routes_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func (c *clinic) entry(e audit.Entry, after time.Duration) {
	c.t.Helper()
	if err := audit.Append(c.app, e, c.now.Add(after)); err != nil {
		c.t.Fatal(err)
	}
}

func TestAuditEvents(t *testing.T) {
	c := newClinic(t)
	const patient = "0196b0c0-0000-7000-8000-000000000001"
	from := audit.Origin{Address: "192.0.2.7", Client: "=cmd()", RequestID: "request-1"}
	nurse := audit.User(4, "nurse@vigil.test", "nurse", from)
	c.entry(audit.Entry{
		Event: audit.PatientUpdate, Actor: nurse, ResourceType: audit.ResourcePatient, ResourceID: patient, PatientID: patient,
		Reason: "moved", Changes: audit.Changes{"phone": {Old: phi.Text("555 0100"), New: phi.Text("555 0101")}},
	}, -48*time.Hour)
	c.entry(audit.Entry{Event: audit.LoginFailed, Outcome: audit.MinorFailure, Actor: audit.Anonymous(from), ResourceType: audit.ResourceUser, ResourceID: "4"}, -time.Hour)
	c.entry(audit.Entry{Event: audit.BillingRun, Actor: audit.System()}, -time.Minute)

	for query, want := range map[string]string{
		"?event=patient.update": "[patient.update]", "?actor=nurse@vigil.test": "[patient.update]", "?actor=4": "[patient.update]",
		"?patient_id=" + strings.ToUpper(patient): "[patient.update]", "?resource_type=User&resource_id=4": "[auth.login_failed]",
		"?outcome=4": "[auth.login_failed]", "?date_from=2026-01-13&date_to=2026-01-13": "[patient.update]",
		"?date_to=2026-01-15T13:44:30Z": "[billing.run auth.login_failed patient.update]", "?event=billing.run&outcome=8": "[]",
	} {
		var events []string
		for _, item := range c.request(authz.Admin, "GET", "/audit/events/"+query, nil).results() {
			events = append(events, item["event"].(string))
		}
		if got := fmt.Sprint(events); got != want {
			t.Errorf("%s lists %s, want %s", query, got, want)
		}
	}
	c.request(authz.Admin, "GET", "/audit/events/?outcome=1&patient_id=x&format=pdf&date_from=yesterday", nil).wantFields("outcome", "patient_id", "format", "date_from")

	c.request(authz.Admin, "GET", "/audit/events/1/", nil).want(200).wantAt(object{
		"reason": "moved", "changes.phone.old": "555 0100",
		"changes.phone.new": "555 0101", "action": "U", "patient_id": patient, "recorded_at": "2026-01-13T13:45:00Z",
	})
	if got := c.request(authz.Admin, "GET", "/audit/events/?event=patient.update", nil).results()[0]; got["changes"] != nil ||
		fmt.Sprint(got["changed_fields"]) != "[phone]" {
		t.Errorf("a list shows %v", got)
	}
	for _, id := range []string{"0", "9999", "x", "01"} {
		c.request(authz.Admin, "GET", "/audit/events/"+id+"/", nil).want(404, "not_found")
	}
	table, err := csv.NewReader(strings.NewReader(c.request(authz.Admin, "GET", "/audit/events/?format=csv&actor=4", nil).want(200).body)).ReadAll()
	if err != nil || len(table) != 2 || table[1][2] != "patient.update" || table[1][13] != "'=cmd()" || table[1][16] != "phone" {
		t.Errorf("CSV %v, %v", table, err)
	}
	var reads int
	if err := c.app.DB().NewQuery("SELECT COUNT(*) FROM audit_log WHERE event = 'audit.read'").Row(&reads); err != nil || reads < 10 {
		t.Errorf("%d reads recorded, %v", reads, err)
	}
}

func TestAuditEventAsFHIR(t *testing.T) {
	c := newClinic(t)
	const patient = "0196b0c0-0000-7000-8000-000000000001"
	from := audit.Origin{Address: "192.0.2.7", Client: "curl/8", RequestID: "request-1"}
	c.entry(audit.Entry{
		Event: audit.PatientUpdate, Actor: audit.User(4, "nurse@vigil.test", "nurse", from), ResourceType: audit.ResourcePatient, ResourceID: patient,
		PatientID: patient, Changes: audit.Changes{"phone": {Old: phi.Text("555 0100")}},
	}, 0)
	c.entry(audit.Entry{Event: audit.LoginFailed, Outcome: audit.MinorFailure, Actor: audit.Anonymous(from), ResourceType: audit.ResourceLoginKey, ResourceID: "k"}, 0)
	answer := c.request(authz.Admin, "GET", "/audit/events/1/?_format=fhir", nil).want(200)
	want := `{"resourceType":"AuditEvent","id":"1","type":{"system":"http://terminology.hl7.org/CodeSystem/audit-event-type","code":"rest","display":"RESTful Operation"},` +
		`"subtype":[{"system":"http://hl7.org/fhir/restful-interaction","code":"update","display":"update"}],"action":"U","recorded":"2026-01-15T13:45:00.000000Z","outcome":"0",`
	if !strings.HasPrefix(answer.body, want) || strings.Contains(answer.body, "555") {
		t.Errorf("FHIR %s", answer.body)
	}
	var event struct {
		Agent []struct {
			Requestor bool
			Role      []struct{ Text string }
			Network   struct{ Address string }
			Type      struct{ Coding []struct{ Code string } }
		}
		Entity []struct {
			What struct{ Reference string }
			Role struct{ Code string }
		}
	}
	if err := json.Unmarshal([]byte(answer.body), &event); err != nil {
		t.Fatal(err)
	}
	if a := event.Agent; len(a) != 3 || !a[0].Requestor || a[1].Requestor || a[2].Requestor || a[0].Role[0].Text != "nurse" ||
		a[1].Network.Address != "192.0.2.7" || a[1].Type.Coding[0].Code != "110153" || a[2].Type.Coding[0].Code != "110152" {
		t.Errorf("agents %+v", event.Agent)
	}
	if e := event.Entity; e[0].What.Reference != "Patient/"+patient || e[0].Role.Code != "1" {
		t.Errorf("entities %+v", event.Entity)
	}
	failed := c.send(vigiltest.Token(t, c.people[authz.Admin], c.now), "GET", "/audit/events/2/", nil, "Accept", "application/fhir+json").want(200)
	if !strings.Contains(failed.body, `"code":"110114"`) || !strings.Contains(failed.body, `"outcome":"4"`) || !strings.Contains(failed.body, `"code":"110122"`) {
		t.Errorf("FHIR of a failed login %s", failed.body)
	}
}

func TestVerifyAudit(t *testing.T) {
	c := newClinic(t)
	c.request(authz.Admin, "GET", "/audit/verify/", nil).want(200).wantAt(object{"valid": true, "checked": 0.0, "first_invalid_id": nil, "head_hash": nil})
	verified := c.request(authz.Admin, "GET", "/audit/verify/", nil).want(200).wantAt(object{"valid": true, "checked": 1.0, "first_invalid_id": nil})
	if len(verified.text("head_hash")) != 64 {
		t.Errorf("head %s", verified.body)
	}
	for _, statement := range []string{"DROP TRIGGER audit_log_no_update", "UPDATE audit_log SET actor_role = 'nurse' WHERE id = '000000000000002'"} {
		if _, err := c.app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	c.request(authz.Admin, "GET", "/audit/verify/", nil).want(200).wantAt(object{"valid": false, "first_invalid_id": 2.0})
}

func TestPatientAccessLog(t *testing.T) {
	c := newClinic(t)
	ada, grace := c.enroll(nil), c.enroll(object{"first_name": "Grace", "last_name": "Hopper"})
	c.request(authz.Nurse, "GET", "/patients/"+ada+"/", nil).want(200)
	c.request(authz.Provider, "GET", "/patients/", nil).want(200)                  // shows both
	c.request(authz.MA, "GET", "/patients/?search=hopper", nil).want(200)          // shows one
	c.request(authz.DataMonitor, "GET", "/patients/?search=nobody", nil).want(200) // shows none
	who := func(id string) (list []string) {
		for _, item := range c.request(authz.ClinicalManager, "GET", "/patients/"+id+"/access-log/", nil).results() {
			list = append(list, item["event"].(string)+" "+item["actor_role"].(string))
		}
		return list
	}
	if got := who(ada); !slices.Equal(got, []string{"patient.read provider", "patient.read nurse", "patient.create admin"}) {
		t.Errorf("Ada was seen by %v", got)
	}
	if got := who(grace); !slices.Equal(got, []string{"patient.search ma", "patient.read provider", "patient.create admin"}) {
		t.Errorf("Grace was seen by %v", got)
	}
	if got := who(ada)[0]; got != "audit.read clinical_manager" {
		t.Errorf("the look at the log itself is %v", got)
	}
	c.request(authz.Admin, "GET", "/patients/0196b0c0-0000-7000-8000-00000000000f/access-log/", nil).want(404, "not_found")
}
