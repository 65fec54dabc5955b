package routes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// _elements and _summary return a part of each resource, with its tag, of searches and reads alike.
func TestPartsOfResources(t *testing.T) {
	p := newPractice(t)
	for query, want := range map[string]string{
		"_elements=effective,value":        "code effectiveDateTime id meta resourceType status valueQuantity",
		"_elements=Observation.identifier": "code id identifier meta resourceType status",
		"_elements=valueQuantity,colour":   "code id meta resourceType status valueQuantity",
		"_summary=text":                    "code id meta resourceType status",
		"_summary=true":                    "code effectiveDateTime id identifier issued meta performer resourceType status subject valueQuantity",
	} {
		whole := found(p.fhir(authz.Nurse, "/Observation?_id="+p.weight+"&"+query), "match")
		if len(whole) != 1 {
			t.Fatalf("%s: %v", query, whole)
		}
		for _, resource := range []object{whole[0], p.fhir(authz.Nurse, "/Observation/"+p.weight+"?"+query)} {
			names := []string{}
			for name := range resource {
				names = append(names, name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
			if !strings.Contains(fmt.Sprint(resource["meta"]), "SUBSETTED") {
				t.Errorf("%s: no tag in %v", query, resource["meta"])
			}
		}
	}
	for _, query := range []string{"_summary=false", "_format=json"} {
		if meta := fmt.Sprint(p.fhir(authz.Nurse, "/Observation/"+p.weight+"?"+query)["meta"]); strings.Contains(meta, "SUBSETTED") {
			t.Errorf("%s: %s", query, meta)
		}
	}
	for _, query := range []string{"_summary=count", "_summary=all", "_elements=a..b"} {
		if rec := p.requestFHIR(p.machine, "GET", "/Observation/"+p.weight+"?"+query, ""); rec.Code != 400 {
			t.Errorf("%s: %d", query, rec.Code)
		}
	}
}

// The current version can be read by its number, and no other.
func TestReadVersion(t *testing.T) {
	p := newPractice(t)
	for _, path := range []string{"/Patient/" + p.ada, "/Observation/" + p.weight, "/CareTeam/" + p.ada} {
		version := p.fhir(authz.Nurse, path)["meta"].(object)["versionId"].(string)
		if got := p.fhir(authz.Nurse, path+"/_history/"+version)["meta"].(object)["versionId"]; got != version {
			t.Errorf("%s: %v", path, got)
		}
		if rec := p.requestFHIR(p.machine, "GET", path+"/_history/99", ""); rec.Code != 404 {
			t.Errorf("%s/_history/99: %d", path, rec.Code)
		}
	}
	if rec := p.requestFHIR(p.portal, "GET", "/Observation/"+p.bobs+"/_history/1", ""); rec.Code != 404 {
		t.Errorf("another patient's reading: %d", rec.Code)
	}
}

// The search below a patient is the search by the patient.
func TestPatientCompartment(t *testing.T) {
	p := newPractice(t)
	for _, kind := range []string{"Observation", "Flag", "CareTeam", "Provenance", "AuditEvent"} {
		want := p.search("/" + kind + "?_count=500&patient=" + p.bob)
		got := p.search("/Patient/" + p.bob + "/" + kind + "?_count=500")
		if kind == "AuditEvent" { // each search is an event
			want, got = want[:1], got[len(got)-len(want):][:1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	if got := p.search("/Patient/" + p.ada + "/Observation?code=29463-7"); !slices.Equal(got, []string{p.weight}) {
		t.Errorf("with a parameter: %v", got)
	}
	if got := p.search("/Patient/" + p.ada + "/Observation?patient=" + p.bob); len(got) != 0 {
		t.Errorf("of two patients: %v", got)
	}
	if rec := p.requestFHIR(p.portal, "GET", "/Patient/"+p.bob+"/Observation", ""); rec.Code != 200 || len(found(parsed(t, rec), "match")) != 0 {
		t.Errorf("another patient's: %d", rec.Code)
	}
	if rec := p.requestFHIR(p.machine, "GET", "/Patient/a%20b/Observation", ""); rec.Code != 400 {
		t.Errorf("no id: %d", rec.Code)
	}
}

// A path with a last slash is the same path.
func TestTrailingSlashOfFHIR(t *testing.T) {
	p := newPractice(t)
	for _, path := range []string{"/Patient/?_id=" + p.ada, "/Patient/" + p.ada + "/", "/metadata/", "/Observation/$lastn/?patient=" + p.ada, "/CodeSystem/"} {
		if rec := p.requestFHIR(p.machine, "GET", path, ""); rec.Code != 200 {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	if rec := p.requestFHIR(p.machine, "POST", "/Patient/_search/", "_id="+p.ada); rec.Code != 200 {
		t.Errorf("_search/: %d", rec.Code)
	}
}

// The service's own codes are published: each code of a Flag is in one of the systems, which are public.
func TestCodeSystems(t *testing.T) {
	p := newPractice(t)
	all := found(parsed(t, p.requestFHIR("", "GET", "/CodeSystem", "")), "match")
	codes := map[string]bool{}
	for _, system := range all {
		for _, concept := range system["concept"].([]any) {
			codes[system["url"].(string)+"|"+concept.(object)["code"].(string)] = true
		}
	}
	for _, flag := range found(p.fhir(authz.Nurse, "/Flag"), "match") {
		for _, coding := range flag["code"].(object)["coding"].([]any) {
			if name := coding.(object)["system"].(string) + "|" + coding.(object)["code"].(string); !codes[name] {
				t.Errorf("%s is in no system", name)
			}
		}
	}
	for query, want := range map[string]int{"": 2, "?url=urn:rpm:alert-level": 1, "?url=urn:x": 0, "?_id=alert-type,alert-level": 2, "?colour=red": 2} {
		if got := found(parsed(t, p.requestFHIR("", "GET", "/CodeSystem"+query, "")), "match"); len(got) != want {
			t.Errorf("%q: %d", query, len(got))
		}
	}
	for path, want := range map[string]int{"/CodeSystem/alert-type": 200, "/CodeSystem/nothing": 404, "/CodeSystem?colour=red": 400} {
		if rec := p.requestFHIR("", "GET", path, "", "Prefer", "handling=strict"); rec.Code != want {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
	resource := p.requestFHIR("", "GET", "/CodeSystem/alert-type", "").Body.Bytes()
	for name, issues := range vigiltest.FHIRIssues(t, map[string]json.RawMessage{"CodeSystem": resource}) {
		if len(issues) > 0 {
			t.Errorf("%s: %v", name, issues)
		}
	}
}

// A token may have one interaction of a scope, and a wildcard is narrowed to what the client has.
func TestPartsOfScopes(t *testing.T) {
	p := newPractice(t)
	m := p.addClient(object{"scopes": []string{"system/Patient.rs", "system/Observation.rs", "alerts.read"}})
	read, search := p.token(m, "system/Patient.r"), p.token(m, "system/Patient.s")
	for _, test := range []struct {
		token, path string
		want        int
	}{
		{read, "/Patient/" + p.ada, 200},
		{read, "/Patient?_id=" + p.ada, 403},
		{search, "/Patient?_id=" + p.ada, 200},
		{search, "/Patient/" + p.ada, 403},
		{read, "/Observation/" + p.weight, 403},
		{read, "/Patient/" + p.ada + "/_history/9999", 404},
	} {
		if rec := p.requestFHIR(test.token, "GET", test.path, ""); rec.Code != test.want {
			t.Errorf("%s: %d, want %d", test.path, rec.Code, test.want)
		}
	}
	for requested, granted := range map[string]string{
		"system/*.read": "system/Observation.read system/Patient.read", "system/*.rs": "system/Observation.rs system/Patient.rs",
		"system/*.r": "system/Observation.r system/Patient.r", "system/Patient.r alerts.read": "system/Patient.r alerts.read",
	} {
		if got := p.signIn(m, requested).want(200).object()["scope"]; got != granted {
			t.Errorf("%s: granted %q", requested, got)
		}
	}
}

// Every Observation names its performer.
func TestPerformers(t *testing.T) {
	p := newPractice(t)
	seen := map[string]bool{}
	for _, reading := range found(p.fhir(authz.Admin, "/Observation"), "match") {
		performer := reading["performer"].([]any)[0].(object)
		if ref, ok := performer["reference"].(string); ok && ref != reading["subject"].(object)["reference"] || !ok && performer["display"] != "Staff" {
			t.Errorf("%v", performer)
		}
		seen[fmt.Sprint(performer["display"])] = true
	}
	if len(seen) != 2 {
		t.Errorf("performers %v", seen)
	}
}
