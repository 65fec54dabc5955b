package routes_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// outcomeCode returns Vigil's code in an OperationOutcome.
func outcomeCode(t testing.TB, body []byte) string {
	t.Helper()
	var outcome struct {
		ResourceType string
		Issue        []struct {
			Severity, Code string
			Details        struct{ Coding []struct{ Code string } }
		}
	}
	if err := json.Unmarshal(body, &outcome); err != nil || outcome.ResourceType != "OperationOutcome" || len(outcome.Issue) == 0 {
		t.Fatalf("no OperationOutcome (%v): %s", err, body)
	}
	if codings := outcome.Issue[0].Details.Coding; len(codings) > 0 {
		return codings[0].Code
	}
	return ""
}

// requestFHIR sends a request to the FHIR interface and checks the answer against the contract.
func (c *clinic) requestFHIR(token, method, path, form string, header ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), method, "/fhir/R4"+path, strings.NewReader(form))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	if rec.Code != 304 {
		vigiltest.CheckResponse(c.t, method, strings.TrimSuffix(r.URL.Path, "/"), rec.Code, rec.Header(), rec.Body.Bytes())
	}
	return rec
}

// fhir sends a GET request as a user and returns the answer as an object.
func (c *clinic) fhir(role authz.Role, path string, header ...string) object {
	c.t.Helper()
	rec := c.requestFHIR(c.tokenOf(role), "GET", path, "", header...)
	if rec.Code != 200 {
		c.t.Fatalf("GET %s answered %d: %s", path, rec.Code, rec.Body)
	}
	return parsed(c.t, rec)
}

func parsed(t testing.TB, rec *httptest.ResponseRecorder) (o object) {
	t.Helper()
	if err := json.Unmarshal(rec.Body.Bytes(), &o); err != nil {
		t.Fatalf("%v: %s", err, rec.Body)
	}
	return o
}

// found returns the resources of a bundle with the search mode.
func found(bundle object, mode string) (resources []object) {
	entries, _ := bundle["entry"].([]any)
	for _, e := range entries {
		entry := e.(object)
		if entry["search"].(object)["mode"] == mode {
			resources = append(resources, entry["resource"].(object))
		}
	}
	return resources
}

func idsOf(resources []object) (ids []string) {
	for _, r := range resources {
		ids = append(ids, r["id"].(string))
	}
	return ids
}

func linkOf(bundle object, relation string) string {
	links, _ := bundle["link"].([]any)
	for _, l := range links {
		if link := l.(object); link["relation"] == relation {
			return strings.TrimPrefix(link["url"].(string), "https://vigil.example.org/fhir/R4")
		}
	}
	return ""
}

// practice is a clinic with two patients and their readings: from a cuff, from clients, typed by staff and by the
// patient.
type practice struct {
	*clinic
	ada, bob string
	// Ada's readings, oldest first: a pressure of each morning by the cuff, then the typed ones.
	pressures                        []string
	weight, glucose, own, bobs, sent string
	portal                           string // token of Ada's own account
	machine                          string // token of a client that may read everything
}

const cuff = "BPM-00042"

func newPractice(t *testing.T, change ...func(*routes.Engines)) *practice {
	t.Helper()
	p := &practice{clinic: newIngestingClinic(t, change...)}
	p.ada = p.enroll(object{
		"mrn": "MRN-ADA", "phone": "+15550100", "email": "ada@example.org", "time_zone": "America/New_York", "gateway_patient_id": "gw-ada",
		"address": object{"line1": "1 Main St", "city": "Springfield", "state": "IL", "zip": "62701"},
	})
	p.bob = p.enroll(object{"first_name": "Robert", "last_name": "O'Brien-Núñez", "mrn": "MRN-BOB", "date_of_birth": "1961-07-02", "gender": "male"})
	p.request(authz.Admin, "PUT", "/patients/"+p.ada+"/care-team/", object{
		"primary_provider_id": p.people[authz.Provider].Number(), "members": []object{{"user_id": p.people[authz.Nurse].Number(), "role": "RPM nurse"}},
	}).want(200)
	now := p.now
	p.now = now.AddDate(0, 0, -6) // before the readings that follow
	p.request(authz.Admin, "POST", "/devices/assign/", object{
		"device_id": cuff, "patient_id": p.ada, "device_type": "blood_pressure_monitor",
		"manufacturer": "Omron", "model": "HEM-9210T", "serial_number": "S-1", "udi": "(01)04015672113930(21)S-1",
	}).want(200)
	p.now = now
	for day := range 5 {
		at := p.now.AddDate(0, 0, day-5)
		p.pressures = append(p.pressures, p.postEvent(t, cuffEvent(cuff, "gw-ada", 130+10*day, at)).want(200).at("observation_id").(string))
	}
	minutes := 60
	typed := func(role authz.Role, kind string, body object) string {
		body["measured_at"] = p.now.Add(-time.Duration(minutes) * time.Minute).Format(time.RFC3339)
		minutes++
		return p.request(role, "POST", "/ingestion/"+kind+"/", body).want(201).at("id").(string)
	}
	p.weight = typed(authz.Nurse, "weight", object{"patient_id": p.ada, "weight_kg": 72.5})
	p.glucose = typed(authz.Admin, "blood-glucose", object{"patient_id": p.ada, "glucose_mg_dl": 112})
	p.bobs = typed(authz.Admin, "blood-pressure", object{"patient_id": p.bob, "systolic": 190, "diastolic": 99, "pulse": 77})
	portal := vigiltest.User(t, p.app, authz.Patient)
	portal.Set(collections.UserPatient, p.ada)
	if err := p.app.Save(portal); err != nil {
		t.Fatal(err)
	}
	p.own = p.requestAs(portal, "POST", "/ingestion/pulse-oximetry/", object{"spo2": 97, "pulse": 64, "measured_at": p.now.Add(-2 * time.Hour).Format(time.RFC3339)}).want(201).at("id").(string)
	p.portal = vigiltest.Token(t, portal, p.now)
	p.sent = p.requestAsClient(p.client("ingest"), "POST", "/ingestion/body-temperature/", object{"patient_id": p.bob, "temperature_c": 37.2, "measured_at": p.now.Add(-3 * time.Hour).Format(time.RFC3339)}).
		want(201).at("id").(string)
	p.machine = p.client("system/*.rs")
	return p
}

// client returns the token of a new client with scopes.
func (p *practice) client(scopes ...string) string {
	p.t.Helper()
	m := p.addClient(object{"scopes": scopes})
	return p.signIn(m, "").want(200).object()["access_token"].(string)
}
