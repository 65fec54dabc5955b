package routes_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Every served resource of every type is valid, and so are bundles, the capability statement and OperationOutcomes.
func TestServedResourcesAreValid(t *testing.T) {
	p := newPractice(t)
	resources := map[string]json.RawMessage{}
	id := regexp.MustCompile(`^[A-Za-z0-9.-]{1,64}$`)
	for _, kind := range fhirserver.ResourceTypes {
		rec := p.requestFHIR(p.machine, "GET", "/"+kind.Type+"?_count=200&_revinclude=Provenance:target&_include=Observation:device", "")
		if rec.Code != 200 {
			t.Fatalf("%s: %d %s", kind.Type, rec.Code, rec.Body)
		}
		resources["Bundle of "+kind.Type] = rec.Body.Bytes()
		all := found(parsed(t, rec), "match")
		if len(all) == 0 {
			t.Errorf("there is no %s", kind.Type)
		}
		for _, resource := range all {
			name := resource["id"].(string)
			if !id.MatchString(name) || resource["resourceType"] != kind.Type {
				t.Errorf("%s: %v", kind.Type, resource)
			}
			single := p.requestFHIR(p.machine, "GET", "/"+kind.Type+"/"+name, "")
			whole, _ := json.Marshal(resource)
			if again, _ := json.Marshal(parsed(t, single)); string(again) != string(whole) {
				t.Errorf("%s/%s is found as %s and read as %s", kind.Type, name, whole, again)
			}
			resources[kind.Type+"/"+name] = single.Body.Bytes()
		}
	}
	resources["CapabilityStatement"] = p.requestFHIR("", "GET", "/metadata", "").Body.Bytes()
	resources["OperationOutcome"] = p.requestFHIR(p.machine, "GET", "/Observation?date=yesterday&_count=x", "").Body.Bytes()
	resources["broken"] = json.RawMessage(`{"resourceType":"Flag","id":"1","status":"active"}`)
	for name, issues := range vigiltest.FHIRIssues(t, resources) {
		if (len(issues) > 0) != (name == "broken") {
			t.Errorf("%s: %v\n%s", name, issues, resources[name])
		}
	}
}
