package routes_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/routes"
)

// A body over the server's size limit is refused with an OperationOutcome.
func TestFHIRBodies(t *testing.T) {
	p := newPractice(t)
	for _, path := range []string{"/Patient/_search", "/Observation/_search", "/$export"} {
		rec := p.requestFHIR(p.machine, "POST", path, "_id="+strings.Repeat("a", 3<<20))
		if kind := rec.Header().Get("Content-Type"); rec.Code != 413 || kind != "application/fhir+json" || outcomeCode(t, rec.Body.Bytes()) != "payload_too_large" {
			t.Errorf("%s: %d %s %s", path, rec.Code, kind, rec.Body)
		}
	}
	unknown := strings.Repeat("a", 64) + ","
	if rec := p.requestFHIR(p.machine, "POST", "/Patient/_search", "_id="+strings.Repeat(unknown, 490)+p.ada); rec.Code != 200 || len(found(parsed(t, rec), "match")) != 1 {
		t.Errorf("32,000 letters: %d %s", rec.Code, rec.Body)
	}
	if rec := p.requestFHIR(p.machine, "POST", "/Patient/_search", "_id="+strings.Repeat("a,", 2_500)+p.ada); rec.Code != 400 {
		t.Errorf("2,500 values: %d %s", rec.Code, rec.Body)
	}
}

// Cross-origin requests are accepted only from configured origins, and the capability statement reports this.
func TestCapabilityListsOrigins(t *testing.T) {
	for _, origins := range [][]string{nil, {"https://app.example.org"}} {
		c := newClinic(t, func(e *routes.Engines) { e.AllowedOrigins = origins })
		security := parsed(t, c.requestFHIR("", "GET", "/metadata", ""))["rest"].([]any)[0].(object)["security"].(object)
		if security["cors"] != (origins != nil) {
			t.Errorf("for %v: %v", origins, security["cors"])
		}
	}
}
