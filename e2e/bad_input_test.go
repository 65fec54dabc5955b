package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
)

// refusedRequest is a request that must be refused, with the expected status, code and fields, and the rows that it adds.
type refusedRequest struct {
	name   string
	asked  func() answer
	status int
	code   string
	fields []string
	adds   map[string]int // rows; nil when nothing is stored
}

// Rows that refused requests add.
var (
	oneAuditRow = map[string]int{"audit_log": 1}                      // denied by role; for unsigned webhooks the first of an hour
	quarantined = map[string]int{"gateway_events": 1, "audit_log": 1} // signed, but not storable: quarantined for staff
	// Implausible values are stored and alerted on; further rows depend on what is already open.
	implausible = map[string]int{"gateway_events": 1, "alerts": 1}
	merged      = map[string]int{"gateway_events": 1} // merged into the open alert for the same parameter
)

// wantRefused runs the cases in order and compares the rows before and after each.
func wantRefused(t *testing.T, db *dbx.DB, cases []refusedRequest) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := rowsBefore(t, db)
			a := c.asked().expect(t, c.status)
			wantAt(t, a, object{"code": c.code})
			var body struct {
				Detail string              `json:"detail"`
				Fields map[string][]string `json:"field_errors"`
			}
			if err := json.Unmarshal(a.body, &body); err != nil {
				t.Fatal(err)
			}
			if fields := slices.Sorted(maps.Keys(body.Fields)); !slices.Equal(fields, c.fields) {
				t.Errorf("field_errors names %v, want %v\n%s", fields, c.fields, a.body)
			}
			if body.Detail == "" {
				t.Errorf("no detail: %s", a.body)
			}
			if challenge := a.header.Get("WWW-Authenticate"); (challenge == "Bearer") != bearerProblem(c) {
				t.Errorf("WWW-Authenticate is %q", challenge)
			}
			_, audited := c.adds["audit_log"]
			alarmed := c.adds["gateway_events"] == 1 && !audited
			if alarmed {
				awaitAnnouncements(t, db)
			}
			grown := added(before, rowsOf(t, db))
			if alarmed {
				maps.DeleteFunc(grown, func(table string, _ int) bool { _, named := c.adds[table]; return !named && table != "alerts" })
			}
			if !maps.Equal(grown, c.adds) {
				t.Errorf("rows added: %v, want %v", grown, c.adds)
			}
		})
	}
}

// bearerProblem reports whether a refusal requires another access token. Refresh tokens are refused with the same codes, in
// the body.
func bearerProblem(c refusedRequest) bool {
	return slices.Contains([]string{"not_authenticated", "token_invalid", "token_expired"}, c.code) && !strings.HasPrefix(c.name, "refresh")
}

// badInputPractice is a practice with patients for the bad input.
type badInputPractice struct {
	*practice
	db                                 *dbx.DB
	known, other, archived, deleted    string
	nurse, monitor, portal, measuredAt string
}

const ghost = "00000000-0000-7000-8000-00000000dead"

func newBadInputPractice(t *testing.T) *badInputPractice {
	t.Helper()
	p := newPractice(t).serve(t, "")
	c := &badInputPractice{practice: p, db: p.database(t), measuredAt: time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}
	c.known = p.patient(t, object{"gateway_patient_id": "GW-1", "mrn": "Known-1"})
	c.other = p.patient(t, object{"gateway_patient_id": "GW-2"})
	c.archived = p.patient(t, object{"gateway_patient_id": "GW-3"})
	c.deleted = p.patient(t, object{"gateway_patient_id": "GW-4"})
	p.giveDevice(t, "BP-OTHER", c.other)
	p.amend(t, "patients", c.archived, object{"active": false, "archive_reason": "moved away"})
	p.amend(t, "patients", c.deleted, object{"deleted_at": "2026-01-01T00:00:00.000000Z", "deleted_by": adminEmail})
	c.nurse, c.monitor = p.user(t, "nurse", nil), p.user(t, "data_monitor", nil)
	c.portal = p.user(t, "patient", object{"patient": c.known})
	p.Superuser(t)
	return c
}

// prepare prepares a request of the administrator.
func (p *badInputPractice) prepare(t *testing.T, method, path string, body any, headers ...string) func() answer {
	return p.prepareAs(t, p.Admin(t), method, path, body, headers...)
}

func (p *badInputPractice) prepareAs(t *testing.T, token, method, path string, body any, headers ...string) func() answer {
	raw, isText := body.(string)
	if !isText && body != nil {
		raw = encode(t, body)
	}
	return func() answer { return p.send(t, method, path, token, raw, headers...) }
}

// reading returns a blood pressure with some fields changed; a nil value removes the field.
func (p *badInputPractice) reading(changes object) object {
	body := object{"patient_id": p.known, "systolic": 120, "diastolic": 80, "measured_at": p.measuredAt}
	return changed(body, changes)
}

func changed(body, changes object) object {
	for name, value := range changes {
		if value == nil {
			delete(body, name)
			continue
		}
		body[name] = value
	}
	return body
}

const invalid = "validation_error"

// addsImplausible returns the case with the rows that implausible values add.
func addsImplausible(r refusedRequest) refusedRequest {
	r.adds = implausible
	return r
}

// addsMerged returns the case with the rows that implausible values add while an alert for them is open.
func addsMerged(r refusedRequest) refusedRequest {
	r.adds = merged
	return r
}

func TestBadReadings(t *testing.T) {
	t.Parallel()
	c := newBadInputPractice(t)
	const path = "/api/v1/ingestion/blood-pressure/"
	bp := func(name string, changes object, fields ...string) refusedRequest {
		return refusedRequest{name, c.prepare(t, "POST", path, c.reading(changes)), 400, invalid, fields, nil}
	}
	kind := func(name, kind string, changes object, fields ...string) refusedRequest {
		return refusedRequest{name, c.prepare(t, "POST", "/api/v1/ingestion/"+kind+"/", changed(object{"patient_id": c.known, "measured_at": c.measuredAt}, changes)), 400, invalid, fields, nil}
	}
	wantRefused(t, c.db, []refusedRequest{
		{"malformed", c.prepare(t, "POST", path, `{"systolic": 1`), 400, "parse_error", nil, nil},
		{"two values", c.prepare(t, "POST", path, encode(t, c.reading(nil))+"{}"), 400, "parse_error", nil, nil},
		{"a list", c.prepare(t, "POST", path, `[]`), 400, "parse_error", nil, nil},
		{"nothing", c.prepare(t, "POST", path, ``), 400, "parse_error", nil, nil},
		{"too deep", c.prepare(t, "POST", path, strings.Repeat(`{"a":`, 40)+"1"+strings.Repeat("}", 40)), 400, "parse_error", nil, nil},
		{"empty object", c.prepare(t, "POST", path, `{}`), 400, invalid, []string{"diastolic", "measured_at", "patient_id", "systolic"}, nil},
		bp("number in quotes", object{"systolic": "120"}, "systolic"),
		bp("boolean for a number", object{"systolic": true}, "systolic"),
		bp("list for a number", object{"diastolic": []int{80}}, "diastolic"),
		addsImplausible(bp("systolic too low", object{"systolic": 59, "diastolic": 40}, "systolic")),
		addsMerged(bp("systolic too high", object{"systolic": 301}, "systolic")),
		addsImplausible(bp("diastolic too low", object{"diastolic": 29}, "diastolic")),
		addsMerged(bp("diastolic too high", object{"systolic": 250, "diastolic": 201}, "diastolic")),
		addsImplausible(bp("pulse too low", object{"pulse": 29}, "pulse")),
		addsMerged(bp("pulse too high", object{"pulse": 251}, "pulse")),
		bp("diastolic not lower", object{"systolic": 90, "diastolic": 90}, "diastolic"),
		bp("all at once", object{"systolic": 500, "diastolic": "x", "pulse": 1, "measured_at": "yesterday"}, "diastolic", "measured_at", "pulse", "systolic"),
		bp("time in the future", object{"measured_at": time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)}, "measured_at"),
		bp("before birth", object{"measured_at": "1949-12-31T12:00:00Z"}, "measured_at"),
		bp("epoch time", object{"measured_at": 1768484700}, "measured_at"),
		bp("a date for a time", object{"measured_at": "15.01.2026"}, "measured_at"),
		bp("device id too long", object{"device_id": strings.Repeat("x", 129)}, "device_id"),
		bp("patient id of the wrong form", object{"patient_id": "GW-1"}, "patient_id"),
		bp("archived patient", object{"patient_id": c.archived}, "patient_id"),
		{"unknown patient", c.prepare(t, "POST", path, c.reading(object{"patient_id": ghost})), 404, "not_found", nil, nil},
		{"deleted patient", c.prepare(t, "POST", path, c.reading(object{"patient_id": c.deleted})), 404, "not_found", nil, nil},
		{"invalid and unknown", c.prepare(t, "POST", path, c.reading(object{"patient_id": ghost, "systolic": 10})), 400, invalid, []string{"systolic"}, nil},
		{"device of another", c.prepare(t, "POST", path, c.reading(object{"device_id": "BP-OTHER"})), 400, "device_patient_mismatch", nil, nil},
		{"portal for another patient", c.prepareAs(t, c.portal, "POST", path, c.reading(object{"patient_id": c.other})), 404, "not_found", nil, nil},

		kind("no weight", "weight", nil, "weight_kg"),
		kind("two weights", "weight", object{"weight_kg": 80, "weight_lbs": 176}, "weight_lbs"),
		addsImplausible(kind("too light", "weight", object{"weight_kg": 19.99}, "weight_kg")),
		addsMerged(kind("too heavy in pounds", "weight", object{"weight_lbs": 1103}, "weight_lbs")),
		kind("no saturation", "pulse-oximetry", nil, "spo2"),
		addsImplausible(kind("saturation too high", "pulse-oximetry", object{"spo2": 100.5, "perfusion_index": 21}, "perfusion_index", "spo2")),
		kind("two glucoses", "blood-glucose", object{"glucose_mg_dl": 100, "glucose_mmol_l": 5.5}, "glucose_mmol_l"),
		addsImplausible(kind("glucose too low", "blood-glucose", object{"glucose_mg_dl": 19}, "glucose_mg_dl")),
		kind("unknown meal", "blood-glucose", object{"glucose_mg_dl": 100, "meal_context": "brunch"}, "meal_context"),
		kind("unknown comparator", "blood-glucose", object{"glucose_mg_dl": 600, "comparator": ">="}, "comparator"),
	})

	future := c.prepare(t, "POST", path, c.reading(object{"measured_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}))()
	wantAt(t, future, object{"field_errors.measured_at.0": "Measurement time is in the future."})
	wantAt(t, c.prepare(t, "POST", path, c.reading(object{"systolic": 80}))(), object{"field_errors.diastolic.0": "Must be lower than systolic."})
	wantAt(t, c.prepare(t, "POST", path, c.reading(object{"device_id": strings.Repeat("x", 129)}))(),
		object{"field_errors.device_id.0": "Ensure this field has no more than 128 characters."})

	// The bounds of the ranges are valid, and a repeated reading is not an error.
	for _, edge := range []object{{"systolic": 300, "diastolic": 200, "pulse": 250}, {"systolic": 60, "diastolic": 30, "pulse": 30}} {
		c.prepare(t, "POST", path, c.reading(edge))().expect(t, 201)
		awaitAnnouncements(t, c.db)
		before := rowsBefore(t, c.db)
		wantAt(t, c.prepare(t, "POST", path, c.reading(edge))().expect(t, 200), object{"duplicate": true})
		if grown := added(before, rowsOf(t, c.db)); len(grown) != 0 {
			t.Errorf("a repeat adds %v", grown)
		}
	}
}

func TestBadWebhooks(t *testing.T) {
	t.Parallel()
	c := newBadInputPractice(t)
	moment := time.Now().Add(-2 * time.Hour).Truncate(time.Second)
	event := func(changes object) object { return changed(measurement("GW-1", "BP-1", 128, 82, moment), changes) }
	good := encode(t, event(nil))
	post := func(body string, headers ...string) func() answer {
		return c.prepareAs(t, "", "POST", webhook, body, headers...)
	}
	at := func(when time.Time) []string { return signature(c.WebhookSecret, good, when) }
	withTime := func(value string) []string { return append(at(time.Now())[:2], "X-Gateway-Timestamp", value) }
	signed := func(body any) func() answer {
		return func() answer { return c.signed(t, body) }
	}
	field := func(name string, changes object, fields ...string) refusedRequest {
		return refusedRequest{name, signed(event(changes)), 400, invalid, fields, quarantined}
	}
	// The first measurement of an hour that cannot be read notifies the staff.
	c.signed(t, event(object{"device_id": "BP-11", "values": nil})).expect(t, 400)
	awaitAnnouncements(t, c.db)
	wantRefused(t, c.db, []refusedRequest{
		{"unsigned", post(good), 401, "invalid_signature", nil, oneAuditRow},
		{"empty signature", post(good, "X-Gateway-Signature", "", "X-Gateway-Timestamp", "1"), 401, "invalid_signature", nil, nil},
		{"no sha256 prefix", post(good, "X-Gateway-Signature", at(time.Now())[1][7:], "X-Gateway-Timestamp", at(time.Now())[3]), 401, "invalid_signature", nil, nil},
		{"tampered", post(strings.Replace(good, "128", "129", 1), at(time.Now())...), 401, "invalid_signature", nil, nil},
		{"wrong secret", post(good, signature("whsec_other", good, time.Now())...), 401, "invalid_signature", nil, nil},
		{"unsigned and malformed", post(`{`), 401, "invalid_signature", nil, nil},
		{"unsigned and stale", post(good, "X-Gateway-Timestamp", "1"), 401, "invalid_signature", nil, nil},
		{"stale", post(good, at(time.Now().Add(-time.Hour))...), 401, "stale_timestamp", nil, oneAuditRow},
		{"from the future", post(good, at(time.Now().Add(time.Hour))...), 401, "stale_timestamp", nil, nil},
		{"no timestamp", post(good, at(time.Now())[:2]...), 401, "stale_timestamp", nil, nil},
		{"timestamp in words", post(good, withTime("now")...), 401, "stale_timestamp", nil, nil},
		{"timestamp with a fraction", post(good, withTime("1768484700.5")...), 401, "stale_timestamp", nil, nil},

		{"malformed", signed(`{"event_type":`), 400, "parse_error", nil, quarantined},
		{"a list", signed(`[1]`), 400, "parse_error", nil, quarantined},
		field("no device", object{"device_id": nil}, "device_id"),
		field("no values", object{"values": nil}, "values"),
		field("values is a list", object{"values": []int{1}}, "values"),
		field("number in quotes", object{"values": object{"systolic": "128", "diastolic": 82}}, "values.systolic"),
		addsImplausible(field("out of range", object{"values": object{"systolic": 301, "diastolic": 29, "pulse": 20}}, "values.diastolic", "values.pulse", "values.systolic")),
		field("diastolic not lower", object{"values": object{"systolic": 100, "diastolic": 110}}, "values.diastolic"),
		field("no time", object{"timestamp": nil}, "timestamp"),
		field("time in words", object{"timestamp": "noon"}, "timestamp"),
		addsImplausible(field("measured in the future", object{"timestamp": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}, "timestamp")), // the device's clock is ahead
		field("unknown unit", object{"unit": "kPa"}, "unit"),
		field("weight without unit", object{"measurement_type": "weight", "values": object{"weight": 80}, "unit": nil}, "unit"),

		{"too large", signed(`{"event_type":"` + strings.Repeat("x", 64<<10) + `"}`), 413, "payload_too_large", nil, nil},
	})
	c.wantQuarantined(t, event)
}

// wantQuarantined sends signed events that match no patient or cannot be parsed: they are answered 200, quarantined, and
// never stored as readings.
func (p *badInputPractice) wantQuarantined(t *testing.T, event func(object) object) {
	t.Helper()
	first := p.signed(t, event(nil)).expect(t, 200)
	wantAt(t, first, object{"status": "accepted"})
	p.signed(t, event(object{"patient_id": "GW-NOBODY", "device_id": "BP-10"})).expect(t, 200) // the first of an hour notifies the staff
	awaitAnnouncements(t, p.db)
	for _, q := range []struct {
		name    string
		changes object
		reason  string
	}{
		{"unknown patient", object{"patient_id": "GW-NOBODY", "device_id": "BP-9"}, "unknown_patient"},
		{"archived patient", object{"patient_id": "GW-3", "device_id": "BP-8"}, "patient_inactive"},
		{"deleted patient", object{"patient_id": "GW-4", "device_id": "BP-7"}, "patient_inactive"},
		{"device of another patient", object{"device_id": "BP-OTHER"}, "patient_mismatch"},
		{"conflicting duplicate", object{"values": object{"systolic": 129, "diastolic": 82}}, "conflicting_duplicate"},
		{"unsupported type", object{"measurement_type": "peak_flow"}, "unsupported_type"},
	} {
		t.Run(q.name, func(t *testing.T) {
			awaitAnnouncements(t, p.db)
			before := rowsBefore(t, p.db)
			a := p.signed(t, event(q.changes)).expect(t, 200)
			wantAt(t, a, object{"status": "quarantined", "reason": q.reason, "observation_id": nil})
			if grown := added(before, rowsOf(t, p.db)); !maps.Equal(grown, quarantined) {
				t.Errorf("rows added: %v, want %v", grown, quarantined)
			}
			awaitAnnouncements(t, p.db)
			before = rowsBefore(t, p.db)
			again := p.signed(t, event(q.changes)).expect(t, 200)
			wantAt(t, again, object{"event_id": text(t, a, "event_id"), "observation_id": nil})
			if grown := added(before, rowsOf(t, p.db)); len(grown) != 0 {
				t.Errorf("the gateway's retry adds %v", grown)
			}
		})
	}
	awaitAnnouncements(t, p.db)
	before := rowsBefore(t, p.db)
	wantAt(t, p.signed(t, event(nil)).expect(t, 200), object{"status": "duplicate", "event_id": text(t, first, "event_id"), "observation_id": text(t, first, "observation_id")})
	if grown := added(before, rowsOf(t, p.db)); len(grown) != 0 {
		t.Errorf("a duplicate adds %v", grown)
	}
	wantAt(t, p.signed(t, object{"event_type": "device.painted", "device_id": "BP-1"}).expect(t, 200), object{"status": "ignored"})
	var payloads []string
	if err := p.db.NewQuery("SELECT payload FROM gateway_events").Column(&payloads); err != nil {
		t.Fatal(err)
	}
	for _, payload := range payloads {
		if !strings.HasPrefix(payload, "v2:") {
			t.Errorf("a quarantined event is not sealed: %.40s", payload)
		}
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	c := newBadInputPractice(t)
	newPatient := func(name string, changes object, fields ...string) refusedRequest {
		body := object{"first_name": "Bob", "last_name": "Ray", "date_of_birth": "1960-02-03", "gender": "male"}
		return refusedRequest{name, c.prepare(t, "POST", "/api/v1/patients/", changed(body, changes)), 400, invalid, fields, nil}
	}
	query := func(path string, fields ...string) refusedRequest {
		return refusedRequest{path, c.prepare(t, "GET", "/api/v1/"+path, nil), 400, invalid, fields, nil}
	}
	missing := func(method, path string) refusedRequest {
		return refusedRequest{method + " " + path, c.prepare(t, method, path, nil), 404, "not_found", nil, nil}
	}
	large := `{"first_name":"` + strings.Repeat("x", 1<<20) + `"}`
	wantRefused(t, c.db, []refusedRequest{
		newPatient("nothing required", object{"first_name": nil, "last_name": nil, "date_of_birth": nil, "gender": nil}, "date_of_birth", "first_name", "gender", "last_name"),
		newPatient("blank name", object{"first_name": "  "}, "first_name"),
		newPatient("name too long", object{"last_name": strings.Repeat("ä", 101)}, "last_name"),
		newPatient("control character", object{"last_name": "Ray\u0007"}, "last_name"),
		newPatient("unknown gender", object{"gender": "M"}, "gender"),
		newPatient("no such day", object{"date_of_birth": "2023-02-29"}, "date_of_birth"),
		newPatient("born tomorrow", object{"date_of_birth": time.Now().AddDate(0, 0, 2).Format(time.DateOnly)}, "date_of_birth"),
		newPatient("born too early", object{"date_of_birth": "1899-12-31"}, "date_of_birth"),
		newPatient("MRN taken, in other case", object{"mrn": "kNOWN-1"}, "mrn"),
		newPatient("MRN with a space", object{"mrn": "A 1"}, "mrn"),
		newPatient("gateway id taken", object{"gateway_patient_id": "GW-2"}, "gateway_patient_id"),
		newPatient("impossible SSN", object{"ssn": "666-12-3456"}, "ssn"),
		newPatient("phone too short", object{"phone": "12-34"}, "phone"),
		newPatient("no address", object{"email": "bob"}, "email"),
		newPatient("half an address", object{"address": object{"zip": "1234"}}, "address.city", "address.line1", "address.zip"),
		newPatient("address in a line", object{"address": "1 Elm Street"}, "address"),

		query("patients/?page=0", "page"),
		query("patients/?page=one", "page"),
		query("patients/?page_size=0", "page_size"),
		query("patients/?active=perhaps", "active"),
		query("patients/?ordering=mrn", "ordering"),
		query("ingestion/observations/?patient_id=7", "patient_id"),
		query("ingestion/observations/?observation_type=mood&fhir_status=lost", "fhir_status", "observation_type"),
		query("ingestion/observations/?date_from=soon", "date_from"),
		query("fhir/transmissions/?status=lost", "status"),
		query("alerts/?level=bad&acknowledged=2", "acknowledged", "level"),
		query("triage/patients/?risk_level=bad&has_unack_alerts=x&ordering=name", "has_unack_alerts", "ordering", "risk_level"),
		{"page beyond the last", c.prepare(t, "GET", "/api/v1/patients/?page=9", nil), 404, "not_found", nil, oneAuditRow}, // list requests are audited
		missing("GET", "/api/v1/patients/"+ghost+"/"),
		missing("GET", "/api/v1/patients/17/"),
		missing("GET", "/api/v1/patients/"+c.deleted+"/"),
		missing("GET", "/api/v1/ingestion/observations/"+ghost+"/"),
		missing("GET", "/api/v1/fhir/observations/nonsense/"),
		missing("GET", "/api/v1/nowhere/"),
		missing("POST", "/api/v1/nowhere/at/all"),
		missing("GET", "/api/v1//patients/"),
		missing("GET", "/api/v1/patients//"),
		{"unknown route without a token", c.prepareAs(t, "", "GET", "/api/v1/nowhere/", nil), 404, "not_found", nil, nil},

		{"too large", c.prepare(t, "POST", "/api/v1/patients/", large), 413, "payload_too_large", nil, nil},
		{"not JSON by its own word", c.prepare(t, "POST", "/api/v1/patients/", "{}", "Content-Type", "text/plain"), 415, "unsupported_media_type", nil, nil},
		{"a form", c.prepare(t, "POST", "/api/v1/ingestion/weight/", "a=b", "Content-Type", "application/x-www-form-urlencoded"), 415, "unsupported_media_type", nil, nil},
	})
	from := c.prepare(t, "GET", "/api/v1/ingestion/observations/?date_from=2026-02-02&date_to=2026-02-01", nil)().expect(t, 400)
	wantAt(t, from, object{"code": invalid})
	c.wantMethods(t)
	c.wantBothSlashForms(t)
}

// wantMethods sends every endpoint a method that it does not support.
func (p *badInputPractice) wantMethods(t *testing.T) {
	t.Helper()
	for path, allow := range map[string]string{
		"/api/v1/auth/login/": "POST", "/api/v1/auth/token/refresh/": "POST", "/api/v1/auth/logout/": "POST", "/api/v1/auth/profile/": "GET", "/api/v1/auth/roles/": "GET",
		"/api/v1/patients/": "GET POST", "/api/v1/ingestion/blood-pressure/": "POST", "/api/v1/ingestion/weight/": "POST",
		"/api/v1/ingestion/pulse-oximetry/": "POST", "/api/v1/ingestion/blood-glucose/": "POST", "/api/v1/ingestion/observations/": "GET",
		"/api/v1/ingestion/observations/" + ghost + "/": "GET", webhook: "POST", "/api/v1/triage/patients/": "GET", "/api/v1/alerts/": "GET",
		"/api/v1/fhir/observations/" + ghost + "/": "GET", "/api/v1/fhir/transmissions/": "GET", "/api/v1/fhir/process-pending/": "POST",
		"/api/v1/schema/": "GET", "/health/": "GET", "/health/live": "GET", "/.well-known/jwks.json": "GET",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if strings.Contains(allow, method) {
				continue
			}
			before := rowsBefore(t, p.db)
			a := p.send(t, method, path, p.Admin(t), "{}").expect(t, http.StatusMethodNotAllowed)
			wantAt(t, a, object{"code": "method_not_allowed"})
			for _, allowed := range strings.Fields(allow) {
				if !slices.Contains(strings.Split(a.header.Get("Allow"), ", "), allowed) {
					t.Errorf("%s: Allow is %q without %s", a.request, a.header.Get("Allow"), allowed)
				}
			}
			if slices.Contains(strings.Split(a.header.Get("Allow"), ", "), method) {
				t.Errorf("%s: Allow is %q", a.request, a.header.Get("Allow"))
			}
			if grown := added(before, rowsOf(t, p.db)); len(grown) != 0 {
				t.Errorf("%s adds %v", a.request, grown)
			}
		}
	}
	if patch := p.send(t, "PATCH", "/api/v1/patients/"+p.known+"/care-team/", p.Admin(t), "{}"); patch.status != http.StatusMethodNotAllowed {
		t.Errorf("PATCH of a care team answered %d", patch.status)
	}
}

func (p *badInputPractice) wantBothSlashForms(t *testing.T) {
	t.Helper()
	for _, path := range []string{
		"/api/v1/auth/profile", "/api/v1/auth/roles", "/api/v1/patients", "/api/v1/patients/" + p.known, "/api/v1/ingestion/observations", "/api/v1/triage/patients",
		"/api/v1/alerts", "/api/v1/fhir/transmissions", "/api/v1/schema", "/health",
	} {
		bare, slashed := p.get(t, path, p.Admin(t)).expect(t, 200), p.get(t, path+"/", p.Admin(t)).expect(t, 200)
		if path != "/health" && string(bare.body) != string(slashed.body) {
			t.Errorf("%s answers differently with a slash", path)
		}
	}
	wantAt(t, p.get(t, "/health/live", "").expect(t, 200), object{"status": "ok"})
	p.prepare(t, "POST", "/api/v1/ingestion/blood-pressure", p.reading(nil))().expect(t, 201)
	body := encode(t, measurement("GW-1", "BP-7", 120, 80, time.Now().Add(-3*time.Hour)))
	p.prepareAs(t, "", "POST", strings.TrimSuffix(webhook, "/"), body, signature(p.WebhookSecret, body, time.Now())...)().expect(t, 200)
}

// Callers without access: no token, an invalid one, or the wrong role.
func TestBadCallers(t *testing.T) {
	t.Parallel()
	c := newBadInputPractice(t)
	signedIn := c.post(t, "/api/v1/auth/login/", "", object{"email": "nurse@vigil.test", "password": password}).expect(t, 200)
	refreshed := c.post(t, "/api/v1/auth/token/refresh/", "", object{"refresh": text(t, signedIn, "refresh")}).expect(t, 200)
	left := c.post(t, "/api/v1/auth/login/", "", object{"email": "nurse@vigil.test", "password": password}).expect(t, 200)
	c.post(t, "/api/v1/auth/logout/", c.nurse, object{"refresh": text(t, left, "refresh")}).expect(t, 204)

	profile := func(name, token, code string) refusedRequest {
		return refusedRequest{name, c.prepareAs(t, token, "GET", "/api/v1/auth/profile/", nil), 401, code, nil, nil}
	}
	login := func(name string, body object, status int, code string, adds map[string]int, fields ...string) refusedRequest {
		return refusedRequest{name, c.prepareAs(t, "", "POST", "/api/v1/auth/login/", body), status, code, fields, adds}
	}
	renew := func(name, token, code string, adds map[string]int) refusedRequest {
		return refusedRequest{"refresh: " + name, c.prepareAs(t, "", "POST", "/api/v1/auth/token/refresh/", object{"refresh": token}), 401, code, nil, adds}
	}
	forbidden := func(who, token, method, path string) refusedRequest {
		return refusedRequest{who + " " + method + " " + path, c.prepareAs(t, token, method, "/api/v1/"+path, object{}), 403, "permission_denied", nil, oneAuditRow}
	}
	firstFailure := map[string]int{"audit_log": 1, "login_failures": 1}
	wantRefused(t, c.db, []refusedRequest{
		profile("no token", "", "not_authenticated"),
		profile("nonsense", "nonsense", "token_invalid"),
		profile("cut short", c.nurse[:len(c.nurse)-2], "token_invalid"),
		profile("expired", c.tokenOf(t, "users", "nurse@vigil.test", -16*time.Minute), "token_expired"),
		profile("of a superuser", c.Superuser(t), "token_invalid"),
		profile("a refresh token", text(t, refreshed, "refresh"), "token_invalid"),
		{"no token, bad body", c.prepareAs(t, "", "POST", "/api/v1/ingestion/blood-pressure/", "{"), 401, "not_authenticated", nil, nil},

		forbidden("nurse", c.nurse, "POST", "fhir/process-pending/"),
		forbidden("data_monitor", c.monitor, "POST", "fhir/process-pending/"),
		forbidden("data_monitor", c.monitor, "POST", "ingestion/blood-pressure/"),
		forbidden("data_monitor", c.monitor, "POST", "patients/"),
		forbidden("data_monitor", c.monitor, "GET", "triage/patients/"),
		forbidden("data_monitor", c.monitor, "GET", "alerts/"),
		forbidden("patient", c.portal, "POST", "patients/"),
		forbidden("patient", c.portal, "GET", "triage/patients/"),
		forbidden("patient", c.portal, "GET", "alerts/"),
		forbidden("patient", c.portal, "GET", "fhir/transmissions/"),
		{"portal reads another patient", c.prepareAs(t, c.portal, "GET", "/api/v1/patients/"+c.other+"/", nil), 404, "not_found", nil, nil},

		login("nothing", object{}, 400, invalid, nil, "email", "password"),
		login("number for a password", object{"email": "nurse@vigil.test", "password": 12}, 400, invalid, nil, "password"),
		login("wrong password", object{"email": "nurse@vigil.test", "password": "wrong"}, 401, "authentication_failed", firstFailure),
		login("unknown address", object{"email": "nobody@vigil.test", "password": "wrong"}, 401, "authentication_failed", firstFailure),
		renew("nonsense", "nonsense", "token_invalid", nil),
		renew("after logout", text(t, left, "refresh"), "token_revoked", nil),
		{"refresh: nothing", c.prepareAs(t, "", "POST", "/api/v1/auth/token/refresh/", object{}), 400, invalid, []string{"refresh"}, nil},
		{"reset with a made-up token", c.prepareAs(t, "", "POST", "/api/v1/auth/password-reset/confirm/", object{"token": "x", "new_password": "New-Horse-4321", "new_password_confirm": "New-Horse-4321"}), 400, "invalid_reset_token", nil, nil},
	})
	c.wantFamilyEnded(t, signedIn, refreshed)
	c.wantAllFamiliesEnded(t)
	profileOf := c.get(t, "/api/v1/auth/profile/", c.tokenOf(t, "users", "nurse@vigil.test", 0)).expect(t, 200)
	if at(t, profileOf, "date_joined") == nil {
		t.Errorf("an account created in the dashboard has no date_joined: %s", profileOf.body)
	}
	wantAt(t, profileOf, object{"email": "nurse@vigil.test", "role": "nurse", "is_active": true}) // so that the expired token above is refused for its age alone

	// A deactivated account loses access at once, even with a valid token.
	var id string
	if err := c.db.NewQuery("SELECT id FROM users WHERE email = 'nurse@vigil.test'").Row(&id); err != nil {
		t.Fatal(err)
	}
	c.amend(t, "users", id, object{"is_active": false})
	wantAt(t, c.get(t, "/api/v1/auth/profile/", c.nurse).expect(t, 401), object{"code": "token_invalid"})
	c.wantLock(t)
}

// wantFamilyEnded reuses a rotated refresh token: its whole family is revoked, the newest token included.
// Source: docs/decisions/authentication.md, "Refresh-token family".
func (p *badInputPractice) wantFamilyEnded(t *testing.T, first, newest answer) {
	t.Helper()
	p.get(t, "/api/v1/auth/profile/", text(t, newest, "access")).expect(t, 200) // so that its answer has certainly arrived
	audited := auditEvents(t, p.db)
	wantAt(t, p.post(t, "/api/v1/auth/token/refresh/", "", object{"refresh": text(t, first, "refresh")}).expect(t, 401), object{"code": "token_reused"})
	if events := auditEvents(t, p.db)[len(audited):]; len(events) != 1 || !strings.HasPrefix(events[0], "auth.refresh_reuse ") {
		t.Errorf("reuse added %v to the audit trail", events)
	}
	wantAt(t, p.post(t, "/api/v1/auth/token/refresh/", "", object{"refresh": text(t, newest, "refresh")}).expect(t, 401), object{"code": "token_revoked"})
}

// wantAllFamiliesEnded logs out everywhere: earlier sessions cannot be refreshed.
func (p *badInputPractice) wantAllFamiliesEnded(t *testing.T) {
	t.Helper()
	here := p.post(t, "/api/v1/auth/login/", "", object{"email": "data_monitor@vigil.test", "password": password}).expect(t, 200)
	there := p.post(t, "/api/v1/auth/login/", "", object{"email": "data_monitor@vigil.test", "password": password}).expect(t, 200)
	p.post(t, "/api/v1/auth/logout-all/", text(t, here, "access"), object{}).expect(t, 204)
	for _, login := range []answer{here, there} {
		wantAt(t, p.post(t, "/api/v1/auth/token/refresh/", "", object{"refresh": text(t, login, "refresh")}).expect(t, 401), object{"code": "token_revoked"})
	}
}

// wantLock fails five sign-ins and expects the address to be locked, whether the account exists or not. Source:
// specification, "Account lockout".
func (p *badInputPractice) wantLock(t *testing.T) {
	t.Helper()
	for _, email := range []string{"data_monitor@vigil.test", "ghost@vigil.test"} {
		for range 5 {
			wantAt(t, p.post(t, "/api/v1/auth/login/", "", object{"email": email, "password": "wrong"}).expect(t, 401), object{"code": "authentication_failed"})
		}
		locked := p.post(t, "/api/v1/auth/login/", "", object{"email": email, "password": password}).expect(t, 423)
		wantAt(t, locked, object{"code": "account_locked"})
		if locked.header.Get("Retry-After") == "" {
			t.Error("no Retry-After with a locked account")
		}
		if until := time.Until(instantAt(t, locked, "locked_until")); until < 25*time.Minute || until > 31*time.Minute {
			t.Errorf("locked for %v, want about half an hour", until)
		}
	}
}
