package routes_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Identifiers and names with invisible characters are refused by field name, and nothing is stored.
func TestHiddenCharactersAreRefused(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(nil)
	at := c.now.Add(-time.Hour).Format(time.RFC3339)
	before := vigiltest.RowCounts(t, c.app)
	for _, r := range []string{"\u202e", "\u202d", "\u2066", "\u2069", "\u061c", "\u200e", "\u200b", "\ufeff", "\u00ad", "\U000e0041", "\u2028"} {
		odd := "ab" + r + "cd"
		for field, body := range map[string]object{
			"first_name": {"first_name": odd}, "last_name": {"last_name": odd}, "mrn": {"mrn": odd}, "external_id": {"external_id": odd}, "gateway_patient_id": {"gateway_patient_id": odd},
			"email": {"email": "a" + r + "b@example.org"}, "phone": {"phone": "555 010" + r + " 1234"}, "address.city": {"address": object{"line1": "1 Main St", "city": odd}},
			"icd10_codes.0": {"icd10_codes": []string{"I1" + r + "0"}}, "insurance.member_id": {"insurance": object{"member_id": odd}},
		} {
			c.request(authz.Admin, http.MethodPost, "/patients/", patientBody(body)).wantFields(field)
		}
		for _, kind := range []string{"weight", "blood-pressure"} {
			body := object{"patient_id": id, "weight_kg": 80, "systolic": 120, "diastolic": 80, "measured_at": at, "device_id": odd}
			c.request(authz.Nurse, http.MethodPost, "/ingestion/"+kind+"/", body).wantFields("device_id")
		}
		c.request(authz.Nurse, http.MethodPost, "/devices/assign/", object{"device_id": odd, "patient_id": id, "device_type": "weight"}).wantFields("device_id")
		c.request(authz.Nurse, http.MethodPost, "/devices/", object{"device_id": odd, "device_type": "weight"}).wantFields("device_id")
		c.request(authz.Admin, http.MethodPost, "/auth/register/", object{
			"email": "a" + r + "b@vigil.test", "first_name": odd, "last_name": odd, "role": "nurse", "password": vigiltest.Password, "password_confirm": vigiltest.Password,
		}).wantFields("email", "first_name", "last_name")
		c.request(authz.Admin, http.MethodPost, "/billing/payers/", object{"name": odd, "payer_id": odd}).wantFields("name", "payer_id")
	}
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) > 0 {
		t.Errorf("refused requests left %v", added)
	}
}

// Free text loses invisible characters and keeps the rest.
func TestFreeTextIsCleaned(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	c.request(authz.Nurse, http.MethodPost, "/escalations/", object{"patient_id": id, "priority": "urgent", "reason": "Gave \u202e5\u202c mg\u200b\u2028می\u200cخواهم\nالضغط"}).want(201).
		wantAt(object{"reason": "Gave 5 mg\nمی\u200cخواهم\nالضغط"})
	c.request(authz.Nurse, http.MethodPost, "/escalations/", object{"patient_id": id, "priority": "urgent", "reason": "\u202e\u202c"}).wantFields("reason")

	c.request(authz.Nurse, http.MethodGet, "/patients/"+id+"/", nil, "User-Agent", "nice\u202e browser").want(200)
	entry := c.request(authz.Admin, http.MethodGet, "/audit/events/?event=patient.read", nil).want(200)
	if !strings.Contains(entry.body, "nice browser") || strings.Contains(entry.body, "\u202e") {
		t.Errorf("recorded %s", entry.body)
	}
}

// Invisible characters in a gateway's label do not block the reading; an identifier that contains them goes to
// quarantine.
func TestHiddenCharactersFromGateway(t *testing.T) {
	c := newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	labelled := strings.Replace(cuffEvent("BP-1", "GW-1", 121, c.now), `"timestamp"`, `"device_model":"BP\u202e-7","timestamp"`, 1)
	c.postEvent(t, labelled).want(200).wantAt(object{"status": "accepted"})
	c.request(authz.Nurse, http.MethodGet, "/devices/BP-1/", nil).want(200).wantAt(object{"model": "BP-7"})
	for i, field := range []string{"device_id", "patient_id"} {
		sent := fmt.Sprintf(`{"event_type":"measurement.created","device_id":"BP-1","patient_id":"GW-1","measurement_type":"bp","values":{"systolic":%d,"diastolic":80},"timestamp":%q}`,
			130+i, c.now.Add(time.Duration(i-9)*time.Minute).Format(time.RFC3339))
		sent = strings.Replace(sent, `"`+field+`":"`, `"`+field+`":"\u202e`, 1)
		c.postEvent(t, sent).wantFields(field)
	}
	kept := c.request(authz.MA, http.MethodGet, "/ingestion/quarantine/?status=rejected", nil).results()
	if len(kept) != 2 || strings.Contains(fmt.Sprint(kept), "\u202e") {
		t.Errorf("kept: %+q", kept)
	}
}
