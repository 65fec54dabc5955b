package routes_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/webhooks"
)

// webhookReceiver is an integrator's receiver. It keeps only what is signed with its secret.
type webhookReceiver struct {
	*httptest.Server
	t      testing.TB
	lock   sync.Mutex
	secret string
	status int
	events []object
	ids    []string
}

func newWebhookReceiver(t testing.TB) *webhookReceiver {
	r := &webhookReceiver{t: t, status: 200}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.lock.Lock()
		defer r.lock.Unlock()
		body, _ := io.ReadAll(q.Body)
		key, err := standard.NewWebhook(r.secret)
		if err != nil || key.VerifyIgnoringTimestamp(body, q.Header) != nil {
			t.Errorf("not signed by the secret that was shown: %v, %v", err, q.Header)
		}
		var event object
		if err := json.Unmarshal(body, &event); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		r.events, r.ids = append(r.events, event), append(r.ids, q.Header.Get("webhook-id"))
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// addWebhook creates a webhook for a receiver; changes work as for patientBody.
func (c *clinic) addWebhook(r *webhookReceiver, changes object) (id string) {
	c.t.Helper()
	body := object{"url": r.URL + "/hook", "events": webhooks.Events}
	for name, value := range changes {
		body[name] = value
	}
	made := c.request(authz.Admin, "POST", "/webhooks/", body).want(201).object()
	r.lock.Lock()
	defer r.lock.Unlock()
	r.secret = made["secret"].(string)
	return made["id"].(string)
}

func (c *clinic) deliverWebhooks() {
	c.t.Helper()
	if err := c.webhooks.RunOnce(c.t.Context(), c.app); err != nil {
		c.t.Fatal(err)
	}
}

// An administrator creates a webhook, sees its secret once, changes it, tests it, rotates its secret, and deletes it;
// the audit trail has all of it.
func TestWebhookAdministration(t *testing.T) {
	c := newClinic(t)
	r := newWebhookReceiver(t)
	id := c.addWebhook(r, object{"events": []string{"alert.raised", "alert.raised", "patient.created"}})
	path := "/webhooks/" + id + "/"
	got := c.request(authz.Admin, "GET", path, nil).want(200).wantAt(object{
		"id": id, "url": r.URL + "/hook", "active": true, "include_values": false, "off_because": nil, "failing_since": nil, "last_delivered_at": nil,
	})
	if diff := cmp.Diff([]any{"alert.raised", "patient.created"}, got.at("events")); diff != "" {
		t.Error(diff)
	}
	for _, reply := range []reply{got, c.request(authz.Admin, "GET", "/webhooks/", nil), c.request(authz.Admin, "PATCH", path, object{"include_values": true}).want(200)} {
		if strings.Contains(reply.body, "whsec_") {
			t.Errorf("%s shows the secret", reply.what)
		}
	}
	c.request(authz.Admin, "POST", path+"test/", nil).want(200).wantAt(object{"status": "delivered", "status_code": 200.0, "attempts": 1.0, "event": "webhook.test"})
	first := r.secret
	r.secret = c.request(authz.Admin, "POST", path+"rotate-secret/", nil).want(200).at("secret").(string)
	if r.secret == first || !strings.HasPrefix(r.secret, "whsec_") {
		t.Error("the secret is the same")
	}
	c.request(authz.Admin, "POST", path+"test/", nil).want(200).wantAt(object{"status": "delivered"})
	r.status = 500
	test := c.request(authz.Admin, "POST", path+"test/", nil).want(200).wantAt(object{"status": "failed", "status_code": 500.0, "error": "status", "next_retry_at": nil}).object()
	c.request(authz.Admin, "POST", "/webhooks/deliveries/"+test["id"].(string)+"/retry/", nil).want(400, "invalid_state")
	if log := c.request(authz.Admin, "GET", path+"deliveries/?status=failed", nil).results(); len(log) != 1 || log[0]["id"] != test["id"] || test["id"] != r.ids[2] {
		t.Errorf("the log shows %v", log)
	}
	c.request(authz.Admin, "GET", path+"deliveries/?status=lost", nil).wantFields("status")
	c.request(authz.Admin, "PATCH", path, object{"active": false}).want(200).wantAt(object{"active": false, "off_because": nil})
	c.request(authz.Admin, "DELETE", path, nil).want(204)
	for _, gone := range []string{"GET " + path, "PATCH " + path, "DELETE " + path, "POST " + path + "test/", "POST " + path + "rotate-secret/", "GET " + path + "deliveries/"} {
		method, at, _ := strings.Cut(gone, " ")
		c.request(authz.Admin, method, at, object{}).want(404, "not_found")
	}
	c.request(authz.Admin, "POST", "/webhooks/deliveries/"+test["id"].(string)+"/retry/", nil).want(404, "not_found")
	want := []string{
		"webhook.create", "webhook.update", "webhook.test", "webhook.secret_rotate", "webhook.test", "webhook.test", "webhook.update", "webhook.delete",
	}
	if diff := cmp.Diff(want, c.queryColumn(`SELECT event FROM audit_log WHERE resource_id = '`+id+`' ORDER BY id`)); diff != "" {
		t.Error(diff)
	}
	for _, column := range c.queryColumn(`SELECT url || secret || previous_secret FROM webhooks UNION SELECT changes FROM audit_log`) {
		if strings.Contains(column, "whsec_") || strings.Contains(column, r.URL) {
			t.Errorf("in the clear: %s", column)
		}
	}
	if left := c.queryColumn(`SELECT id FROM webhook_deliveries`); len(left) == 0 {
		t.Error("its deliveries are gone already: the test proves too little")
	}
	c.deliverWebhooks()
	if left := c.queryColumn(`SELECT id FROM webhook_deliveries`); len(left) != 0 {
		t.Errorf("%d deliveries of a deleted webhook are left", len(left))
	}
}

// Invalid bodies are refused by field name, and no value is repeated in the answer.
func TestWebhookBodies(t *testing.T) {
	c := newClinic(t)
	good := "https://emr.example.org/hook?token=abc"
	for _, tc := range []struct {
		body   object
		fields []string
	}{
		{object{}, []string{"url", "events"}},
		{object{"url": good}, []string{"events"}},
		{object{"url": good, "events": "alert.raised"}, []string{"events"}},
		{object{"url": good, "events": []string{}}, []string{"events"}},
		{object{"url": good, "events": nil}, []string{"events"}},
		{object{"url": good, "events": []any{"alert.raised", "alert.*"}}, []string{"events.1"}},
		{object{"url": good, "events": []any{7}}, []string{"events.0"}},
		{object{"url": good, "events": []string{"webhook.test"}}, []string{"events.0"}},
		{object{"url": good, "events": []string{"alert.raised"}, "active": "yes"}, []string{"active"}},
		{object{"url": good, "events": []string{"alert.raised"}, "include_values": nil}, []string{"include_values"}},
		{object{"url": nil, "events": []string{"alert.raised"}}, []string{"url"}},
		{object{"url": good + strings.Repeat("a", 2048), "events": []string{"alert.raised"}}, []string{"url"}},
	} {
		c.request(authz.Admin, "POST", "/webhooks/", tc.body).wantFields(tc.fields...)
	}
	made := c.request(authz.Admin, "POST", "/webhooks/", object{"url": good, "events": []string{"alert.raised"}}).want(201).object()
	for _, at := range []string{
		"", " ", "http://emr.example.org/", "ftp://emr.example.org/", "https://user@emr.example.org/", "https://user:secret@emr.example.org/", "https://emr.example.org/#part",
		"https://localhost/", "https://hooks.localhost/", "https://127.0.0.2/", "https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://169.254.169.254/latest/",
		"https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[fd00::1]/", "https://0.0.0.0/", "https://100.64.0.1/", "emr.example.org", "//emr.example.org/", "javascript:alert(1)",
	} {
		for _, got := range []reply{
			c.request(authz.Admin, "POST", "/webhooks/", object{"url": at, "events": []string{"alert.raised"}}),
			c.request(authz.Admin, "PATCH", "/webhooks/"+made["id"].(string)+"/", object{"url": at}),
		} {
			got.wantFields("url")
			if len(at) > 1 && strings.Contains(got.body, at) {
				t.Errorf("%s is repeated", at)
			}
		}
	}
	c.request(authz.Admin, "PATCH", "/webhooks/"+made["id"].(string)+"/", object{}).want(200)
	for range 49 {
		c.request(authz.Admin, "POST", "/webhooks/", object{"url": good, "events": []string{"alert.raised"}}).want(201)
	}
	c.request(authz.Admin, "POST", "/webhooks/", object{"url": good, "events": []string{"alert.raised"}}).want(400, "invalid_state")
}

// A day at the practice as two receivers see it: one gets ids, the other gets what the API shows a client.
func TestWebhookDeliveriesOfADay(t *testing.T) {
	c := newIngestingClinic(t)
	thin, whole := newWebhookReceiver(t), newWebhookReceiver(t)
	c.addWebhook(thin, nil)
	c.addWebhook(whole, object{"include_values": true})
	patient := c.enroll(nil)
	reading := c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": patient, "systolic": 195, "diastolic": 125, "pulse": 80, "device_id": "BP-1", "measured_at": c.now.Format("2006-01-02T15:04:05Z"),
	}).want(201).object()["id"].(string)
	alert := c.request(authz.Admin, "GET", "/alerts/?patient_id="+patient, nil).results()[0]
	escalation := c.request(authz.Admin, "GET", "/escalations/?patient_id="+patient, nil).results()[0]
	c.request(authz.Nurse, "PATCH", fmt.Sprintf("/escalations/%.0f/", escalation["id"]), object{"status": "in_progress"}).want(200)
	c.deliverWebhooks()
	client := c.token(c.addClient(object{"scopes": []string{"patients.read", "observations.read", "alerts.read"}}), "")
	shown := map[string]string{
		"patient": "/patients/%v/", "observation": "/ingestion/observations/%v/", "alert": "/alerts/%v/", "escalation": "/escalations/%v/",
	}
	compared := map[string]bool{}
	for i, event := range whole.events {
		d := event["data"].(object)
		kind := d["type"].(string)
		object, _ := d["object"].(object)
		path, open := shown[kind]
		if !open {
			continue
		}
		want := c.requestAsClient(client, "GET", fmt.Sprintf(path, d["id"]), nil).want(200).object()
		delete(want, "audit_trail") // only in a single alert's answer
		if diff := cmp.Diff(want, object); diff != "" {
			t.Errorf("%s %v: %s", event["type"], d["id"], diff)
		}
		compared[kind] = true
		if whole.ids[i] == thin.ids[i] {
			t.Error("two receivers share an id")
		}
	}
	if len(compared) != len(shown) {
		t.Errorf("compared only %v", compared)
	}
	c.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%.0f/resolve/", alert["id"]), object{"notes": "called"}).want(200)
	c.request(authz.Nurse, "PATCH", fmt.Sprintf("/escalations/%.0f/", escalation["id"]), object{"status": "resolved", "resolution_notes": "well"}).want(200)
	c.request(authz.Admin, "POST", "/ingestion/observations/"+reading+"/entered-in-error/", object{"reason": "cuff"}).want(200)
	c.request(authz.Admin, "DELETE", "/patients/"+patient+"/", nil).want(204)
	c.deliverWebhooks()
	seen := map[string]bool{}
	for _, event := range thin.events {
		seen[event["type"].(string)] = true
		d := event["data"].(object)
		for name := range d {
			if !slices.Contains([]string{"type", "id", "patient_id"}, name) {
				t.Errorf("%s holds %s", event["type"], name)
			}
		}
		if d["patient_id"] != patient && d["type"] != "device" {
			t.Errorf("%s is of %v", event["type"], d["patient_id"])
		}
	}
	for _, name := range []string{"patient.created", "observation.created", "observation.withdrawn", "alert.raised", "escalation.opened", "escalation.updated", "alert.resolved", "escalation.resolved", "patient.archived"} {
		if !seen[name] {
			t.Errorf("%s was not delivered: %v", name, seen)
		}
	}
	if len(thin.events) != len(whole.events) {
		t.Errorf("%d and %d events", len(thin.events), len(whole.events))
	}
	last := whole.events[len(whole.events)-1]
	if object := last["data"].(object)["object"]; object != nil {
		t.Errorf("a patient that is deleted is shown: %v", object)
	}
}
