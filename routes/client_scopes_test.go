package routes_test

import (
	"fmt"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A client follows up what its feed and webhooks name, by scopes of their own.
func TestScopesOfAggregators(t *testing.T) {
	c := newAtTheEMR(t)
	patient := c.enroll(nil)
	write := c.token(c.addClient(object{"scopes": []string{"devices.write", "devices.read"}}), "")
	c.requestAsClient(write, "POST", "/devices/", object{"device_id": "W-77", "device_type": "scale"}).want(201)
	c.requestAsClient(write, "POST", "/devices/assign/", object{"device_id": "W-77", "patient_id": patient, "device_type": "scale"}).want(200)
	c.requestAsClient(write, "GET", "/devices/W-77/", nil).want(200).wantAt(object{"patient_id": patient})
	c.requestAsClient(write, "POST", "/devices/W-77/unassign/", object{"reason": "returned"}).want(200)
	c.requestAsClient(write, "GET", "/patients/"+patient+"/vital-config/", nil).want(403)

	read := c.token(c.addClient(object{"scopes": []string{"thresholds.read", "transmissions.read", "alerts.acknowledge"}}), "")
	c.requestAsClient(read, "GET", "/patients/"+patient+"/vital-config/", nil).want(200)
	c.requestAsClient(read, "GET", "/fhir/transmissions/", nil).want(200)
	c.requestAsClient(read, "GET", "/fhir/status/", nil).want(200)
	c.requestAsClient(read, "POST", "/devices/assign/", object{}).want(403)
	c.requestAsClient(read, "GET", "/alerts/", nil).want(403)

	body := object{"patient_id": patient, "systolic": 195, "diastolic": 100, "measured_at": c.now.Format("2006-01-02T15:04:05Z07:00")}
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", body).want(201)
	alert := c.request(authz.Nurse, "GET", "/alerts/", nil).results()[0]
	path := fmt.Sprintf("/alerts/%v/", alert["id"])
	c.requestAsClient(read, "POST", path+"acknowledge/", nil).want(200).wantAt(object{"acknowledged": true, "acknowledged_by": "Device cloud"})
	c.requestAsClient(read, "POST", path+"resolve/", nil).want(403)
	if reviewed := c.queryColumn(`SELECT last_reviewed_by FROM triage_scores WHERE last_reviewed_by != ''`); len(reviewed) != 0 {
		t.Errorf("a program has reviewed: %v", reviewed)
	}
}

// A client manages webhooks for events about what it may read; others do not exist for it.
func TestWebhooksOfClients(t *testing.T) {
	c := newClinic(t)
	m := c.token(c.addClient(object{"scopes": []string{"webhooks.manage", "observations.read"}}), "")
	hook := func(events ...string) object {
		return object{"url": "https://receiver.example.org/hook", "events": events}
	}
	own := c.requestAsClient(m, "POST", "/webhooks/", hook("observation.created")).want(201).object()["id"].(string)
	c.requestAsClient(m, "POST", "/webhooks/", hook("observation.created", "alert.raised")).want(403, "insufficient_scope")
	other := c.request(authz.Admin, "POST", "/webhooks/", hook("alert.raised", "observation.created")).want(201).object()["id"].(string)
	if list := c.requestAsClient(m, "GET", "/webhooks/", nil).want(200).results(); len(list) != 1 || list[0]["id"] != own {
		t.Errorf("the client sees %v", list)
	}
	c.requestAsClient(m, "GET", "/webhooks/"+own+"/", nil).want(200)
	for _, request := range [][2]string{{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"POST", "rotate-secret/"}, {"POST", "test/"}, {"GET", "deliveries/"}} {
		c.requestAsClient(m, request[0], "/webhooks/"+other+"/"+request[1], object{}).want(404)
	}
	c.requestAsClient(m, "PATCH", "/webhooks/"+own+"/", object{"events": []string{"patient.created"}}).want(403, "insufficient_scope")
	c.requestAsClient(m, "PATCH", "/webhooks/"+own+"/", object{"active": false}).want(200)
	c.requestAsClient(m, "DELETE", "/webhooks/"+own+"/", nil).want(204)
}

// A client with keys has a secret only on request.
func TestSecretOnlyWhenAsked(t *testing.T) {
	c := newClinic(t)
	keys := setOf(t, "e", &ecKey(t).PublicKey)
	create := func(more object) object {
		body := object{"name": "Signer", "scopes": []string{"ingest"}}
		for name, value := range more {
			body[name] = value
		}
		return c.request(authz.Admin, "POST", "/clients/", body).want(201).object()
	}
	without := create(object{"jwks": keys})
	if without["client_secret"] != nil {
		t.Error("a client with keys has a secret")
	}
	if create(object{"jwks": keys, "with_secret": true})["client_secret"] == nil || create(nil)["client_secret"] == nil {
		t.Error("there is no secret")
	}
	id := without["id"].(string)
	c.signIn(machine{id, ""}, "").refusedToken(401, "invalid_client")
	rotated := c.request(authz.Admin, "POST", "/clients/"+id+"/rotate-secret/", object{}).want(200).object()["client_secret"].(string)
	c.signIn(machine{id, rotated}, "").want(200)
}

// The webhook of a client is its own: another client does not find it, its values need the scope of the REST API, and it ends with the client's access.
func TestWebhooksBelongToTheirClient(t *testing.T) {
	c := newClinic(t)
	hook := func(changes object) object {
		body := object{"url": "https://hooks.example.org/a", "events": []string{"patient.created"}}
		for name, value := range changes {
			body[name] = value
		}
		return body
	}
	owner := c.addClient(object{"scopes": []string{"webhooks.manage", "system/Patient.rs"}})
	token := c.token(owner, "")
	other := c.token(c.addClient(object{"scopes": []string{"webhooks.manage", "patients.read"}}), "")
	c.requestAsClient(token, "POST", "/webhooks/", hook(object{"include_values": true})).want(403, "insufficient_scope")
	id := c.requestAsClient(token, "POST", "/webhooks/", hook(nil)).want(201).text("id")
	c.requestAsClient(token, "PATCH", "/webhooks/"+id+"/", object{"include_values": true}).want(403, "insufficient_scope")
	c.requestAsClient(other, "PATCH", "/webhooks/"+id+"/", object{"url": "https://elsewhere.example.org/"}).want(404)
	c.requestAsClient(other, "POST", "/webhooks/"+id+"/rotate-secret/", object{}).want(404)
	if list := c.requestAsClient(other, "GET", "/webhooks/", nil).want(200).results(); len(list) != 0 {
		t.Errorf("another client lists %v", list)
	}
	shown := c.request(authz.Admin, "GET", "/webhooks/"+id+"/", nil).want(200).object()
	if shown["client_id"] != owner.id || shown["active"] != true {
		t.Errorf("an administrator sees %v", shown)
	}
	c.request(authz.Admin, "PATCH", "/clients/"+owner.id+"/", object{"scopes": []string{"webhooks.manage"}}).want(200)
	if shown = c.request(authz.Admin, "GET", "/webhooks/"+id+"/", nil).want(200).object(); shown["active"] != false || shown["off_because"] != "client" {
		t.Errorf("after the loss of a scope: %v", shown)
	}
	c.requestAsClient(c.token(owner, ""), "PATCH", "/webhooks/"+id+"/", object{"active": true}).want(403, "insufficient_scope")
}
