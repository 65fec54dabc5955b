package routes_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// A portal user reads only their own record; other patients' resources are not found.
func TestPortalReadsOwnRecordAsFHIR(t *testing.T) {
	p := newPractice(t)
	for path, want := range map[string]int{
		"/Patient": 1, "/Observation": 8, "/Observation?patient=" + p.bob: 0, "/Observation?_id=" + p.bobs + "," + p.weight: 1, "/Provenance": 8,
		"/Device": 1, "/CareTeam": 1, "/CareTeam?patient=" + p.bob: 0, "/Patient?name=robert": 0,
	} {
		if rec := p.requestFHIR(p.portal, "GET", path, ""); rec.Code != 200 || len(found(parsed(t, rec), "match")) != want {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	for path, want := range map[string]int{
		"/Patient/" + p.ada: 200, "/Patient/" + p.bob: 404, "/Observation/" + p.bobs: 404, "/Observation/" + p.own: 200, "/Provenance/" + p.bobs: 404,
		"/CareTeam/" + p.bob: 404, "/Flag": 403, "/Practitioner": 403, "/Practitioner/4": 403, "/AuditEvent": 403, "/Observation/$lastn?patient=" + p.bob: 200,
	} {
		if rec := p.requestFHIR(p.portal, "GET", path, ""); rec.Code != want || strings.Contains(rec.Body.String(), p.bobs) {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	rec := p.requestFHIR(p.portal, "GET", "/Provenance/"+p.weight, "")
	if who := parsed(t, rec)["agent"].([]any)[0].(object)["who"].(object); who["reference"] != nil || who["display"] != "Staff" {
		t.Errorf("the patient sees who typed it: %v", who)
	}
	unlinked := vigiltest.User(t, p.app, authz.Patient) // a portal user linked to no patient
	rec = p.requestFHIR(vigiltest.Token(t, unlinked, p.now), "GET", "/Device", "")
	if rec.Code != 200 || len(found(parsed(t, rec), "match")) != 0 {
		t.Errorf("an unlinked portal user gets %d %s", rec.Code, rec.Body)
	}
}

// Included resources are only those the caller may read; an outcome reports the missing ones.
func TestIncludesOnlyReadableResources(t *testing.T) {
	p := newPractice(t)
	query := "/Observation?patient=" + p.ada + "&code=85354-9&_include=Observation:subject&_include=Observation:device&_revinclude=Provenance:target"
	types := func(token string) (seen map[string]int) {
		rec := p.requestFHIR(token, "GET", query, "")
		if rec.Code != 200 {
			t.Fatal(rec.Body)
		}
		seen = map[string]int{}
		for _, mode := range []string{"match", "include", "outcome"} {
			for _, r := range found(parsed(t, rec), mode) {
				seen[mode+" "+r["resourceType"].(string)]++
			}
		}
		return seen
	}
	for who, test := range map[string]struct {
		token               string
		patient, device, pr int
	}{
		"nurse": {p.tokenOf(authz.Nurse), 1, 1, 5}, "data monitor": {p.tokenOf(authz.DataMonitor), 0, 1, 5}, "the patient": {p.portal, 1, 1, 5},
		"a client for all": {p.machine, 1, 1, 5}, "a client for readings": {p.client("system/Observation.rs"), 0, 0, 0},
		"a client for two": {p.client("system/Observation.read", "system/Patient.rs"), 1, 0, 0},
	} {
		seen := types(test.token)
		withheld := 3 - min(test.patient, 1) - min(test.device, 1) - min(test.pr, 1)
		if seen["match Observation"] != 5 || seen["include Patient"] != test.patient || seen["include Device"] != test.device ||
			seen["include Provenance"] != test.pr || (seen["outcome OperationOutcome"] == 1) != (withheld > 0) {
			t.Errorf("%s: %v", who, seen)
		}
	}
	bundle := p.fhir(authz.Nurse, query)
	device := found(bundle, "include")
	if at := slices.IndexFunc(device, func(r object) bool { return r["resourceType"] == "Device" }); at < 0 ||
		device[at]["patient"].(object)["reference"] != "Patient/"+p.ada || device[at]["manufacturer"] != "Omron" {
		t.Errorf("the device: %v", device)
	} else if ref := found(bundle, "match")[0]["device"].(object)["reference"]; ref != "Device/"+device[at]["id"].(string) {
		t.Errorf("the reading names %v", ref)
	}
}

// The audit trail records each reader, client or user, and the patients shown, before the answer is sent.
func TestReadingAsFHIRIsRecorded(t *testing.T) {
	p := newPractice(t)
	last := func() audit.StoredEntry {
		t.Helper()
		page, _, err := audit.List(p.app, audit.Filter{}, 0, 1)
		if err != nil || len(page) != 1 {
			t.Fatal(err)
		}
		return page[0]
	}
	for _, test := range []struct{ path, event, resource, id, patient string }{
		{"/Observation/" + p.weight, "observation.read", "Observation", p.weight, p.ada},
		{"/Observation?patient=" + p.bob, "observation.read", "Observation", "", p.bob},
		{"/Patient/" + p.bob, "patient.read", "Patient", p.bob, p.bob},
		{"/Patient?family=lovelace", "patient.search", "Patient", "", p.ada},
		{"/CareTeam/" + p.ada, "patient.read", "CareTeam", p.ada, p.ada},
		{"/Device?patient=" + p.ada, "patient.read", "Device", "", p.ada},
		{"/Flag?patient=" + p.bob, "patient.read", "Alert", "", p.bob},
		{"/Provenance/" + p.bobs, "observation.read", "Observation", p.bobs, p.bob},
		{"/AuditEvent/1", "audit.read", "AuditEvent", "1", ""},
		{"/Observation/$lastn?patient=" + p.ada, "observation.read", "Observation", "", p.ada},
	} {
		for _, token := range []string{p.machine, p.tokenOf(authz.Admin)} {
			if rec := p.requestFHIR(token, "GET", test.path, ""); rec.Code != 200 {
				t.Fatalf("%s: %d", test.path, rec.Code)
			}
			got := last()
			if got.Event != test.event || got.ResourceType != test.resource || got.ResourceID != test.id || got.Patient != test.patient ||
				(got.ActorType == "client") != (token == p.machine) || got.ActorName+got.ActorEmail == "" {
				t.Errorf("%s: %+v", test.path, got.AuditRow)
			}
		}
	}
	p.requestFHIR(p.machine, "GET", "/Observation", "")
	if shown, _ := last().Changes["patient_ids"].New.([]any); len(shown) != 2 {
		t.Errorf("a search for everything shows %v", last().Changes)
	}
	if seen := p.request(authz.Admin, "GET", "/patients/"+p.ada+"/access-log/", nil).want(200).object()["results"].([]any); seen[0].(object)["actor_type"] != "client" {
		t.Errorf("the access log: %v", seen[0])
	}
}

// Care team restrictions apply, and emergency access opens one patient, also for a search in a body.
func TestCareTeamsConfineFHIR(t *testing.T) {
	p := newPractice(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	for path, want := range map[string]int{"/Patient": 1, "/Observation": 8, "/Flag": 4, "/CareTeam": 1, "/Device": 1, "/Provenance": 8, "/Observation?_id=" + p.bobs: 0, "/Practitioner": 6} {
		if got := found(p.fhir(authz.Nurse, path), "match"); len(got) != want {
			t.Errorf("%s: %d", path, len(got))
		}
	}
	reason := []string{"X-Emergency-Access", "called by the ambulance"}
	for _, path := range []string{"/Patient/" + p.bob, "/Observation/" + p.bobs, "/Observation?patient=" + p.bob, "/Observation/$lastn?patient=" + p.bob} {
		if rec := p.requestFHIR(p.tokenOf(authz.Nurse), "GET", path, ""); rec.Code != 403 || outcomeCode(t, rec.Body.Bytes()) != "permission_denied" {
			t.Errorf("%s: %d", path, rec.Code)
		}
		if rec := p.requestFHIR(p.tokenOf(authz.Nurse), "GET", path, "", reason...); rec.Code != 200 {
			t.Errorf("%s in an emergency: %d %s", path, rec.Code, rec.Body)
		}
	}
	if rec := p.requestFHIR(p.tokenOf(authz.Nurse), "POST", "/Observation/_search", "patient="+p.bob, reason...); rec.Code != 200 {
		t.Errorf("a form in an emergency: %d %s", rec.Code, rec.Body)
	}
	if got := found(p.fhir(authz.Admin, "/Patient"), "match"); len(got) != 2 {
		t.Errorf("an administrator sees %d", len(got))
	}
}

// Every error is an OperationOutcome, and only FHIR's JSON format is supported.
func TestFHIRErrors(t *testing.T) {
	p := newPractice(t)
	raw := func(method, path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		rec := httptest.NewRecorder()
		p.handler.ServeHTTP(rec, r)
		return rec
	}
	bearer := []string{"Authorization", "Bearer " + p.machine}
	for _, test := range []struct {
		method, path string
		header       []string
		status       int
		code         string
	}{
		{"GET", "/fhir/R4/Patient", nil, 401, "not_authenticated"},
		{"GET", "/fhir/R4/Patient", []string{"Authorization", "Bearer x"}, 401, "token_invalid"},
		{"GET", "/fhir/R4/Patient/" + p.ada, []string{"Authorization", "Bearer " + p.client("system/Observation.rs")}, 403, "insufficient_scope"},
		{"GET", "/fhir/R4/Patient", []string{"Authorization", "Bearer " + p.client("patients.read")}, 403, "insufficient_scope"},
		{"GET", "/fhir/R4/Patient/nobody", bearer, 404, "not_found"},
		{"GET", "/fhir/R4/Patient/" + strings.Repeat("x", 65), bearer, 404, "not_found"},
		{"GET", "/fhir/R4/Flag/1.0", bearer, 404, "not_found"},
		{"GET", "/fhir/R4/Flag/01", bearer, 404, "not_found"},
		{"GET", "/fhir/R4/Flag/-1", bearer, 404, "not_found"},
		{"GET", "/fhir/R4/Nothing", bearer, 404, "not_found"},
		{"GET", "/fhir/R4/Patient/" + p.ada + "/_history/1", bearer, 404, "not_found"},
		{"GET", "/fhir/R4", nil, 404, "not_found"},
		{"GET", "/fhir/R5/Patient", nil, 404, "not_found"},
		{"POST", "/fhir/R4", bearer, 404, "not_found"},
		{"POST", "/fhir/R4/Patient", bearer, 405, "method_not_allowed"},
		{"PUT", "/fhir/R4/Patient/" + p.ada, bearer, 405, "method_not_allowed"},
		{"DELETE", "/fhir/R4/Observation/" + p.own, bearer, 405, "method_not_allowed"},
		{"GET", "/fhir/R4/Patient", append(bearer, "Accept", "application/fhir+xml"), 406, "not_acceptable"},
		{"GET", "/fhir/R4/Patient?_format=xml", bearer, 406, "not_acceptable"},
		{"GET", "/fhir/R4/metadata?_format=application/fhir+xml", nil, 406, "not_acceptable"},
		{"GET", "/fhir/R4/metadata", []string{"Accept", "text/turtle"}, 406, "not_acceptable"},
		{"GET", "/fhir/R4/AuditEvent", []string{"Authorization", "Bearer " + p.tokenOf(authz.Nurse)}, 403, "permission_denied"},
	} {
		rec := raw(test.method, test.path, test.header...)
		if rec.Code != test.status || rec.Header().Get("Content-Type") != "application/fhir+json" {
			t.Errorf("%s %s: %d %s %s", test.method, test.path, rec.Code, rec.Header().Get("Content-Type"), rec.Body)
			continue
		}
		if got := outcomeCode(t, rec.Body.Bytes()); got != test.code {
			t.Errorf("%s %s: %s, want %s", test.method, test.path, got, test.code)
		}
		if strings.Contains(rec.Body.String(), p.ada) {
			t.Errorf("%s quotes the path: %s", test.path, rec.Body)
		}
	}
	for _, accept := range []string{"", "*/*", "application/fhir+json", "application/json", "application/fhir+json; fhirVersion=4.0", "application/xml;q=0.5, application/fhir+json", "application/*"} {
		for _, path := range []string{"/metadata", "/Patient", "/Patient/" + p.ada} {
			rec := p.requestFHIR(p.machine, "GET", path, "", "Accept", accept)
			want := "application/fhir+json"
			if accept == "application/json" {
				want = accept
			}
			if rec.Code != 200 || rec.Header().Get("Content-Type") != want {
				t.Errorf("%s as %q: %d %s", path, accept, rec.Code, rec.Header().Get("Content-Type"))
			}
		}
	}
	for _, format := range []string{"json", "application/json", "application/fhir%2Bjson", "application/fhir+json", "application/fhir%2Bjson%3B%20fhirVersion=4.0"} {
		if rec := p.requestFHIR(p.machine, "GET", "/Patient?_format="+format, "", "Accept", "application/xml"); rec.Code != 200 || rec.Header().Get("Content-Type") != "application/fhir+json" {
			t.Errorf("_format=%s: %d %s", format, rec.Code, rec.Header())
		}
	}
	if rec := raw("HEAD", "/fhir/R4/metadata"); rec.Code != 200 || rec.Body.Len() != 0 {
		t.Errorf("HEAD: %d", rec.Code)
	}
	if rec := p.requestFHIR(p.machine, "POST", "/Patient/_search", "", "Content-Type", "application/json"); rec.Code != 200 { // an empty form
		t.Errorf("an empty form: %d", rec.Code)
	}
	if rec := p.requestFHIR(p.machine, "POST", "/Patient/_search", "{}", "Content-Type", "application/json"); rec.Code != 415 {
		t.Errorf("a form in JSON: %d", rec.Code)
	}
}

func TestFHIRRateLimitOutcome(t *testing.T) {
	p := newPractice(t, func(e *routes.Engines) {
		e.Limits = ratelimit.NewLimiter(map[ratelimit.Class]ratelimit.Policy{ratelimit.Anon: {Requests: 1, Window: 60e9}})
	})
	var rec *httptest.ResponseRecorder
	for range 2 {
		rec = p.requestFHIR("", "GET", "/metadata", "")
	}
	if rec.Code != http.StatusTooManyRequests || rec.Header().Get("Retry-After") == "" || outcomeCode(t, rec.Body.Bytes()) != "throttled" {
		t.Errorf("%d %s %s", rec.Code, rec.Header(), rec.Body)
	}
}
