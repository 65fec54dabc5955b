package routes_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// Null is sent in every member of every body to its real route: it is refused by the member's name where the contract
// forbids it, and accepted where the contract allows it.
func TestNullOnlyWhereContractAllows(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromData(routes.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	refused, let, shared := 0, 0, newWorld(t)
	for _, path := range slices.Sorted(maps.Keys(document.Paths.Map())) {
		for method, operation := range document.Paths.Value(path).Operations() {
			content := jsonBody(operation)
			if content == nil || !strings.HasPrefix(path, "/api/v1/") || strings.Contains(path, "/gateway/") || path == "/api/v1/messaging/inbound/" {
				continue // FHIR has its own rules, vendor messages are accepted as sent, and texts are signed
			}
			w := shared
			if strings.Contains(path, "/auth/") || strings.Contains(path, "/time-entries/") { // these end the session, or start the only timer
				w = newWorld(t)
			}
			target := w.target(path)
			for _, member := range nullable(content.Schema, nil, map[*openapi3.Schema]bool{}) {
				if strings.HasPrefix(member.name(), "readings.0") {
					continue // each reading of a batch has its own result
				}
				body := w.withNull(content, member.path)
				answer := w.send(w.token, method, target, body)
				var complaints []any
				if answer.status >= 400 {
					fields, _ := answer.object()["field_errors"].(object)
					complaints, _ = fields[member.name()].([]any)
				}
				switch {
				case member.may && slices.Contains(complaints, any("This field may not be null.")):
					t.Errorf("%s %s refuses null in %s, which the contract has", method, path, member.name())
				case member.may:
					let++
				case answer.status != 400 || len(complaints) == 0:
					t.Errorf("%s %s answers null in %s with %d: %.200s", method, path, member.name(), answer.status, answer.body)
				default:
					refused++
				}
			}
		}
	}
	if refused < 150 || let < 300 {
		t.Errorf("%d nulls were refused and %d let through only", refused, let)
	}
}

func jsonBody(operation *openapi3.Operation) *openapi3.MediaType {
	if operation.RequestBody == nil {
		return nil
	}
	return operation.RequestBody.Value.Content["application/json"]
}

// member is one position in a body; lists are represented by their first item.
type member struct {
	path []string
	may  bool // null is allowed
}

func (m member) name() string { return strings.Join(m.path, ".") }

// nullable returns the members of a body, those that may not be null first, because refusing them changes nothing.
func nullable(ref *openapi3.SchemaRef, at []string, open map[*openapi3.Schema]bool) (found []member) {
	schema := ref.Value
	if open[schema] {
		return nil
	}
	open[schema] = true
	defer delete(open, schema)
	below := func(ref *openapi3.SchemaRef, name string) {
		path := append(slices.Clone(at), name)
		found = append(found, member{path, ref.Value.VisitJSON(nil) == nil})
		found = append(found, nullable(ref, path, open)...)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		below(schema.Properties[name], name)
	}
	if schema.Items != nil {
		below(schema.Items, "0")
	}
	forms := slices.DeleteFunc(slices.Concat(schema.OneOf, schema.AnyOf), func(ref *openapi3.SchemaRef) bool { return ref.Value.VisitJSON(nil) == nil })
	if len(forms) == 1 {
		found = append(found, nullable(forms[0], at, open)...)
	}
	for _, part := range schema.AllOf {
		found = append(found, nullable(part, at, open)...)
	}
	slices.SortStableFunc(found, func(a, b member) int {
		switch {
		case a.may == b.may:
			return 0
		case b.may:
			return -1
		}
		return 1
	})
	return found
}

// withNull returns the operation's example, about existing records, with null at one position.
func (w *world) withNull(content *openapi3.MediaType, path []string) any {
	w.t.Helper()
	example := content.Example
	if example == nil {
		example = content.Schema.Value.Example
	}
	for _, other := range content.Examples {
		if example == nil {
			example = other.Value.Value
		}
	}
	raw, err := json.Marshal(example)
	if err != nil {
		w.t.Fatal(err)
	}
	body := object{}
	if err := json.Unmarshal(raw, &body); err != nil {
		w.t.Fatal(err)
	}
	if _, there := body["patient_id"]; there {
		body["patient_id"] = w.patient()
	}
	if _, there := body["old_password"]; there {
		body["old_password"] = vigiltest.Password
	}
	if path[0] == "emr_patient_ids" {
		delete(body, "patient_ids")
	}
	maps.Copy(body, alternatives[strings.Join(path, ".")])
	return nullAt(body, path)
}

// nullAt returns the value with null at one position, and creates the objects on the way.
func nullAt(value any, path []string) any {
	if len(path) == 0 {
		return nil
	}
	if path[0] == "0" {
		list, _ := value.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = nullAt(list[0], path[1:])
		return list
	}
	o, _ := value.(object)
	if o == nil {
		o = object{}
	}
	o[path[0]] = nullAt(o[path[0]], path[1:])
	return o
}

// world creates the records that a path names, for a user who has just signed in.
type world struct {
	*clinic
	token, enrolled string
	names           int
}

// unique returns an unused name.
func (w *world) unique(prefix string) string { w.names++; return fmt.Sprint(prefix, w.names) }

func newWorld(t *testing.T) *world {
	c := newIngestingClinic(t)
	return &world{c, c.login(c.people[authz.Admin].Email(), vigiltest.Password).want(200).text("access"), "", 0}
}

func (w *world) patient() string {
	w.t.Helper()
	if w.enrolled == "" {
		w.enrolled = w.enroll(object{"icd10_codes": []string{"I10"}})
	}
	return w.enrolled
}

// create returns the id in the answer to a request.
func (w *world) create(path string, body object) string {
	w.t.Helper()
	answer := w.send(w.token, "POST", path, body).want(201).object()
	for _, name := range []string{"id", "device_id"} {
		if id, there := answer[name]; there {
			return fmt.Sprint(id)
		}
	}
	w.t.Fatalf("%s creates nothing: %v", path, answer)
	return ""
}

// target returns the path without its base, with existing records for its parameters.
func (w *world) target(path string) string {
	w.t.Helper()
	path, w.enrolled = strings.TrimPrefix(path, "/api/v1"), ""
	if !strings.Contains(path, "{") {
		return path
	}
	makers := []struct {
		prefix string
		make   func() string
	}{
		{"/patients/{id}/consents/{consent_id}/", func() string {
			return w.create("/patients/"+w.patient()+"/consents/", object{"type": "rpm", "method": "electronic", "granted_at": "2026-01-10"})
		}},
		{"/patients/{id}/questionnaires/{assignment}/", func() string {
			return w.create("/patients/"+w.patient()+"/questionnaires/", object{"questionnaire": "phq-2"})
		}},
		{"/patients/{id}/", w.patient},
		{"/triage/patients/{id}/", w.patient},
		{"/emr/unlinked-patients/{id}/", w.patient},
		{"/users/{id}/", func() string { return fmt.Sprint(w.people[authz.Nurse].Number()) }},
		{"/auth/passkeys/{id}/", func() string { return w.clinic.enrolled(w.token).id }},
		{"/clients/{id}/", func() string { return w.create("/clients/", object{"name": "Cloud", "scopes": []string{"ingest"}}) }},
		{"/webhooks/{id}/", func() string {
			return w.create("/webhooks/", object{"url": "https://receiver.example.org/hook", "events": []string{"alert.raised"}})
		}},
		{"/alerts/{id}/", func() string {
			return strings.Trim(strings.TrimPrefix(w.alert(w.patient(), alerts.Critical), "/alerts"), "/")
		}},
		{"/escalations/{id}/", func() string {
			return w.create("/escalations/", object{"patient_id": w.patient(), "priority": "routine", "reason": "Look at this."})
		}},
		{"/ingestion/observations/{id}/", func() string {
			return w.create("/ingestion/blood-pressure/", object{"patient_id": w.patient(), "systolic": 120, "diastolic": 80, "measured_at": w.now})
		}},
		{"/ingestion/quarantine/{id}/", func() string {
			w.postEvent(w.t, cuffEvent(w.unique("BP-"), "nobody", 150, w.now))
			return fmt.Sprint(w.request(authz.Admin, "GET", "/ingestion/quarantine/", nil).results()[0]["id"])
		}},
		{"/devices/{device_id}/", func() string {
			return w.create("/devices/", object{"device_id": w.unique("W-"), "device_type": "scale"})
		}},
		{"/threshold-templates/{id}/", func() string {
			return w.create("/threshold-templates/", object{"key": w.unique("mine_"), "name": "Mine", "diagnoses": []string{"I50"}, "thresholds": object{"pulse": object{"high": 110}}})
		}},
		{"/note-templates/{id}/", func() string {
			return w.create("/note-templates/", object{"name": w.unique("Note "), "text": "Said again and again."})
		}},
		{"/time-entries/{id}/stop/", func() string {
			return w.create("/time-entries/start/", object{"patient_id": w.patient(), "category": "review"})
		}},
		{"/time-entries/{id}/", func() string {
			return w.create("/time-entries/", object{
				"patient_id": w.patient(), "category": "review", "activity": "phone_call", "contact_method": "phone",
				"started_at": w.now.Add(-time.Hour), "duration_seconds": 600, "notes": "Talked",
			})
		}},
		{"/billing/entries/{id}/", func() string { return w.manualEntry(w.patient(), "99457", "2026-01-10", 20) }},
		{"/billing/payers/{id}/", func() string {
			return w.create("/billing/payers/", object{"name": "Payer", "payer_id": w.unique("P-")})
		}},
		{"/billing/remittances/{id}/items/{ordinal}/", w.remittance},
		{"/billing/remittances/{id}/", w.remittance},
		{"/auth/sessions/{id}/", func() string {
			return w.send(w.token, "GET", "/auth/sessions/", nil).want(200).results()[0]["id"].(string)
		}},
		{"/fhir/transmissions/{id}/", func() string { return "TXN-2026-000001" }}, // its body is read first
	}
	for _, maker := range makers {
		if rest, found := strings.CutPrefix(path, maker.prefix); found {
			ids := []string{maker.make()}
			if strings.HasPrefix(maker.prefix, "/patients/{id}/consents/{") || strings.HasPrefix(maker.prefix, "/patients/{id}/questionnaires/{") {
				ids = []string{w.patient(), ids[0]}
			}
			if strings.Contains(maker.prefix, "{ordinal}") {
				ids = append(ids, "1")
			}
			for _, id := range ids {
				maker.prefix = maker.prefix[:strings.Index(maker.prefix, "{")] + id + maker.prefix[strings.Index(maker.prefix, "}")+1:]
			}
			return maker.prefix + rest
		}
	}
	w.t.Errorf("no record for the parameter of %s", path)
	return path
}

// remittance stores a payment for an unknown claim.
func (w *world) remittance() string {
	w.t.Helper()
	file := remittances(w.unique("N"), paymentSegments(w.unique("EFT"), 5000, "CLP*UNKNOWN1*1*50*50**12*ICN7*11*1"))
	w.request(authz.Admin, "POST", "/billing/claim-responses/", string(file), "Content-Type", "application/edi-x12").want(200)
	return fmt.Sprint(w.request(authz.Admin, "GET", "/billing/remittances/", nil).results()[0]["id"])
}

// alternatives are the members that a body needs when another is null.
var alternatives = map[string]object{
	"weight_kg": {"weight_lbs": 165}, "glucose_mg_dl": {"glucose_mmol_l": 5.6}, "temperature_c": {"temperature_f": 98.6},
}
