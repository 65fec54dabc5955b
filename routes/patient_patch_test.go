package routes_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// call sends a request with headers and returns the whole answer, checked against the contract.
func (c *clinic) call(role authz.Role, method, path, body string, header ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), method, "/api/v1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+c.tokenOf(role))
	r.Header.Set("Content-Type", "application/merge-patch+json")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, method, r.URL.Path, rec.Code, rec.Header(), rec.Body.Bytes())
	return rec
}

func replyOf(t *testing.T, what string, rec *httptest.ResponseRecorder) reply {
	return reply{t, what, rec.Code, rec.Body.String()}
}

const whole = `{"first_name":"Ada","last_name":"Lovelace","date_of_birth":"1955-12-10","gender":"female","mrn":"A-1","phone":"2125550123","email":"ada@example.org",
	"address":{"line1":"1 Main St","line2":"Apt 4","city":"Boston","state":"MA","zip":"02115"},"ssn":"123-45-6789","external_id":"emr-1","gateway_patient_id":"gw-1",
	"time_zone":"America/Chicago","icd10_codes":["I10","E11.9"],"monitoring_schedule":{"blood_pressure":{"per_day":2},"weight":{"per_day":1}},
	"insurance":{"member_id":"M1","group_number":"G1","relationship":"spouse","subscriber":{"first_name":"Will","last_name":"Lovelace","date_of_birth":"1950-01-01"},
		"secondary":{"member_id":"M2"}}}`

// A merge patch changes only the members it names. Source: docs/decisions/patients.md, "PATCH semantics".
func TestStoryPatchPatient(t *testing.T) {
	c := newClinic(t)
	made := c.request(authz.Admin, "POST", "/patients/", whole).want(201).object()
	path := "/patients/" + made["id"].(string) + "/"
	before := c.request(authz.Admin, "GET", path, nil).want(200).object()
	for _, step := range []struct {
		patch   string
		changed object // by dotted path
	}{
		{`{}`, object{}},
		{`{"phone":"2125550199"}`, object{"phone": "2125550199"}},
		{`{"phone":null,"email":null}`, object{"phone": nil, "email": nil}},
		{`{"address":{"line2":null,"zip":"02116"}}`, object{"address.line2": nil, "address.zip": "02116"}},
		{`{"insurance":{"member_id":"M9","subscriber":{"first_name":"William"}}}`, object{"insurance.member_id": "M9", "insurance.subscriber.first_name": "William"}},
		{`{"insurance":{"secondary":{"group_number":"G2"}}}`, object{"insurance.secondary.group_number": "G2"}},
		{`{"insurance":{"secondary":null,"subscriber":{"date_of_birth":null}}}`, object{"insurance.secondary": nil, "insurance.subscriber.date_of_birth": nil}},
		{`{"monitoring_schedule":{"weight":null,"blood_pressure":{"days":["monday"]}}}`, object{
			"monitoring_schedule.weight": nil, "monitoring_schedule.blood_pressure.days": []any{"monday"},
		}},
		{`{"icd10_codes":["i50.9"]}`, object{"icd10_codes": []any{"I50.9"}}},
		{`{"ssn":"123-45-0001"}`, object{"ssn_last4": "0001"}},
		{`{"ssn":null,"external_id":null,"time_zone":null}`, object{"ssn_last4": nil, "external_id": nil, "time_zone": nil}},
		{`{"first_name":"Augusta","mrn":"A-2","active":false,"id":"x","unknown":{"a":1}}`, object{"first_name": "Augusta", "mrn": "A-2"}},
		{`{"address":null,"insurance":null,"monitoring_schedule":null,"icd10_codes":null}`, object{
			"address": nil, "insurance": nil, "monitoring_schedule": nil, "icd10_codes": []any{},
		}},
		{`{"address":{"line1":"2 Main St","city":"Salem","line2":null,"zip":"01970"}}`, object{"address": object{
			"line1": "2 Main St", "line2": nil, "city": "Salem", "state": nil, "zip": "01970", "country": "US",
		}}},
	} {
		c.now = c.now.Add(time.Minute)
		got := replyOf(t, step.patch, c.call(authz.Nurse, "PATCH", path, step.patch)).want(200)
		for at, value := range step.changed {
			put(before, at, value)
		}
		after := c.request(authz.Admin, "GET", path, nil).want(200).object()
		before["updated_at"] = after["updated_at"]
		for _, computed := range []string{
			"needs_thresholds", "proposed_template", "proposed_templates", "provisional", "decide_by", "needs_target_weight", "proposed_target_kg",
		} {
			before[computed] = after[computed]
		}
		if fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("after %s\n%v\nnot\n%v", step.patch, after, before)
		}
		if got.object()["updated_at"] != after["updated_at"] {
			t.Errorf("%s was answered with something else", step.patch)
		}
	}
	page, _, err := audit.List(c.app, audit.Filter{Event: string(audit.PatientUpdate), PatientID: made["id"].(string)}, 0, 100)
	if err != nil || len(page) != 13 { // an empty patch adds none
		t.Fatalf("%d entries, %v", len(page), err)
	}
	second := page[12]
	if len(second.Changes) != 1 || fmt.Sprint(second.Changes["phone"].Old) == "" {
		t.Errorf("the audit trail has %v", second.Changes)
	}
}

// put sets a value by its dotted path; nil in a map of kinds removes it.
func put(o object, path string, value any) {
	name, rest, nested := strings.Cut(path, ".")
	switch inner, _ := o[name].(object); {
	case nested:
		put(inner, rest, value)
	case value == nil && (name == "weight"):
		delete(o, name)
	default:
		o[name] = value
	}
}

func TestPatchRefusals(t *testing.T) {
	c := newClinic(t)
	id := c.request(authz.Admin, "POST", "/patients/", whole).want(201).object()["id"].(string)
	c.enroll(object{"mrn": "TAKEN"})
	path := "/patients/" + id + "/"
	before := c.request(authz.Admin, "GET", path, nil).body
	for patch, fields := range map[string][]string{
		`{"first_name":null}`:                               {"first_name"},
		`{"last_name":"","gender":null}`:                    {"last_name", "gender"},
		`{"date_of_birth":"2222-01-01"}`:                    {"date_of_birth"},
		`{"mrn":null}`:                                      {"mrn"},
		`{"mrn":"taken"}`:                                   {"mrn"},
		`{"phone":5}`:                                       {"phone"},
		`{"address":{"line1":null}}`:                        {"address.line1"},
		`{"address":"here"}`:                                {"address"},
		`{"address":{"zip":"1"}}`:                           {"address.zip"},
		`{"insurance":{"payer_id":77}}`:                     {"insurance.payer_id"},
		`{"insurance":{"subscriber":{"last_name":null}}}`:   {"insurance.subscriber.last_name"},
		`{"monitoring_schedule":{"weight":{"per_day":99}}}`: {"monitoring_schedule.weight.per_day"},
		`{"icd10_codes":["?"]}`:                             {"icd10_codes.0"},
		`{"primary_provider_id":999}`:                       {"primary_provider_id"},
		`{"ssn":"000-00-0000"}`:                             {"ssn"},
		`{"a":{"b":1,"b":2}}`:                               {"a.b"},
	} {
		replyOf(t, patch, c.call(authz.Nurse, "PATCH", path, patch)).wantFields(fields...)
	}
	for _, patch := range []string{``, `[]`, `null`, `"x"`, `{`, `{} {}`, "{\"phone\":\"\xff\"}", strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40)} {
		replyOf(t, patch, c.call(authz.Nurse, "PATCH", path, patch)).want(400, "parse_error")
	}
	for _, kind := range []string{"application/json-patch+json", "text/plain", "application/xml", "application/fhir+json", ""} {
		rec := c.call(authz.Nurse, "PATCH", path, `{"phone":null}`, "Content-Type", kind)
		if replyOf(t, kind, rec).want(415, "unsupported_media_type"); rec.Header().Get("Accept-Patch") != "application/merge-patch+json, application/json" {
			t.Errorf("%s: %v", kind, rec.Header())
		}
	}
	for _, kind := range []string{"application/json", "application/json; charset=utf-8", "application/merge-patch+json; charset=UTF-8"} {
		replyOf(t, kind, c.call(authz.Nurse, "PATCH", path, `{"first_name":null}`, "Content-Type", kind)).want(400)
	}
	if after := c.request(authz.Admin, "GET", path, nil).body; after != before {
		t.Errorf("refused patches changed\n%s\nto\n%s", before, after)
	}
	replyOf(t, "emergency", c.call(authz.Nurse, "PATCH", path, `{}`, "X-Emergency-Access", "somebody is dying here")).want(403)
	replyOf(t, "nobody", c.call(authz.Nurse, "PATCH", "/patients/"+collections.NewUUID()+"/", `{}`)).want(404)
	c.request(authz.Admin, "DELETE", path, nil).want(204)
	replyOf(t, "deleted", c.call(authz.Nurse, "PATCH", path, `{}`)).want(404)
}

// An entity tag identifies what one reader is shown, and a change requires the tag that was read. Source:
// docs/decisions/patients.md, "Entity tags".
func TestStoryEntityTags(t *testing.T) {
	c := newClinic(t)
	rec := c.call(authz.Nurse, "POST", "/patients/", whole)
	id := replyOf(t, "create", rec).want(201).object()["id"].(string)
	path, tag := "/patients/"+id+"/", rec.Header().Get("ETag")
	if !strings.HasPrefix(tag, `"`) || len(tag) < 20 {
		t.Fatalf("the tag is %q", tag)
	}
	read := func(role authz.Role, header ...string) *httptest.ResponseRecorder {
		return c.call(role, "GET", path, "", header...)
	}
	if got := read(authz.Nurse).Header().Get("ETag"); got != tag {
		t.Errorf("read as %s, computed as %s", got, tag)
	}
	if got := c.call(authz.Nurse, "HEAD", path, "").Header().Get("ETag"); got != tag {
		t.Errorf("HEAD has %s", got)
	}
	seen := map[string]authz.Role{}
	for _, role := range []authz.Role{authz.Admin, authz.Nurse, authz.DataMonitor} { // each is shown other members
		got := read(role).Header().Get("ETag")
		if other, same := seen[got]; same {
			t.Errorf("%s and %s have one tag", role, other)
		}
		seen[got] = role
	}

	// A column that is not shown does not change the tag, nor does the passage of time.
	if _, err := c.app.DB().Update(collections.Patients, dbx.Params{"version": 99}, dbx.HashExp{"id": id}).Execute(); err != nil {
		t.Fatal(err)
	}
	c.now = c.now.Add(time.Minute)
	for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		rec := read(authz.Nurse, "If-None-Match", known)
		if rec.Code != 304 || rec.Body.Len() > 0 || rec.Header().Get("ETag") != tag || rec.Header().Get("Content-Type") != "" {
			t.Errorf("%s: %d %v", known, rec.Code, rec.Header())
		}
	}
	for _, known := range []string{`"other"`, strings.Trim(tag, `"`), `W/"other"`} {
		if rec := read(authz.Nurse, "If-None-Match", known); rec.Code != 200 {
			t.Errorf("%s: %d", known, rec.Code)
		}
	}

	// Changes.
	before := read(authz.Admin).Body.String()
	for _, condition := range []string{`"other"`, "W/" + tag, "", "nonsense", strings.Trim(tag, `"`), tag + tag, `"a" "b"`, `W/"a", W/` + tag} {
		if condition == "" {
			condition = " "
		}
		for _, method := range []string{"PATCH", "PUT", "DELETE"} {
			body := ada
			rec := c.call(authz.Admin, method, path, body, "Content-Type", "application/json", "If-Match", condition)
			replyOf(t, method+" if "+condition, rec).want(412, "precondition_failed")
		}
	}
	replyOf(t, "another reader's tag", c.call(authz.Admin, "PATCH", path, `{}`, "If-Match", tag)).want(412)
	replyOf(t, "only if new", c.call(authz.Admin, "PUT", path, ada, "Content-Type", "application/json", "If-None-Match", "*")).want(412)
	if after := read(authz.Admin).Body.String(); after != before {
		t.Error("a refused request changed something")
	}
	for _, step := range []struct{ method, body, condition string }{
		{"PATCH", `{"phone":"2125550100"}`, `"other" , ` + "TAG"}, {"PATCH", `{"phone":"2125550101"}`, "*"}, {"PUT", ada, "TAG"}, {"PATCH", `{"phone":"2125550102"}`, "TAG"},
	} {
		c.now = c.now.Add(time.Minute)
		rec := c.call(authz.Nurse, step.method, path, step.body, "Content-Type", "application/json", "If-Match", strings.Replace(step.condition, "TAG", tag, 1))
		replyOf(t, step.method, rec).want(200)
		if rec.Header().Get("ETag") == tag || rec.Header().Get("ETag") != read(authz.Nurse).Header().Get("ETag") {
			t.Errorf("%s has the tag %s after %s", step.method, rec.Header().Get("ETag"), tag)
		}
		stale := tag
		tag = rec.Header().Get("ETag")
		replyOf(t, "stale", c.call(authz.Nurse, "PATCH", path, `{}`, "If-Match", stale)).want(412)
	}

	// The members shown beside the record count, too.
	row := read(authz.Nurse)
	c.request(authz.Admin, "POST", "/threshold-templates/", object{
		"key": "htn", "name": "Hypertension", "diagnoses": []string{"I10"}, "thresholds": object{"blood_pressure": object{"systolic_high": 140}},
	}).want(201)
	if proposed := read(authz.Nurse); proposed.Body.String() == row.Body.String() || proposed.Header().Get("ETag") == tag {
		t.Errorf("%s\nbecame\n%s\nand its tag %s", row.Body, proposed.Body, proposed.Header().Get("ETag"))
	}
	replyOf(t, "stale", c.call(authz.Nurse, "PATCH", path, `{}`, "If-Match", tag)).want(412)
	replyOf(t, "delete", c.call(authz.Admin, "DELETE", path, "", "If-Match", read(authz.Admin).Header().Get("ETag"))).want(204)
}

// Of fifty concurrent changes with the same tag, one succeeds.
func TestRaceOfPatches(t *testing.T) {
	c := newClinic(t)
	path := "/patients/" + c.enroll(nil) + "/"
	tag := c.call(authz.Nurse, "GET", path, "").Header().Get("ETag")
	var run sync.WaitGroup
	statuses := make([]int, 50)
	for i := range statuses {
		run.Go(func() {
			method, body := "PATCH", fmt.Sprintf(`{"phone":"21255501%02d"}`, i)
			if i%5 == 0 {
				method, body = "PUT", strings.Replace(ada, "{", fmt.Sprintf(`{"phone":"21255501%02d",`, i), 1)
			}
			statuses[i] = c.call(authz.Nurse, method, path, body, "Content-Type", "application/json", "If-Match", tag).Code
		})
	}
	run.Wait()
	won := map[int][]int{}
	for i, status := range statuses {
		won[status] = append(won[status], i)
	}
	if len(won[200]) != 1 || len(won[412]) != 49 {
		t.Fatalf("%v", won)
	}
	if got := c.request(authz.Nurse, "GET", path, nil).at("phone"); got != fmt.Sprintf("21255501%02d", won[200][0]) {
		t.Errorf("%v won, the phone is %v", won[200], got)
	}
}

// Clinicians outside the care team cannot change a patient, even with a current tag.
func TestPatchOutsideTheTeam(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	path := "/patients/" + c.enroll(nil) + "/"
	replyOf(t, "patch", c.call(authz.Nurse, "PATCH", path, `{"phone":null}`, "If-Match", "*")).want(403, "permission_denied")
	replyOf(t, "patch", c.call(authz.Patient, "PATCH", path, `{"phone":null}`)).want(403, "permission_denied")
}
