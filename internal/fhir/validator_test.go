package fhir_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// invalidCases are ways to make a golden file invalid, by name.
var invalidCases = map[string]struct {
	golden string
	spoil  func(root map[string]any)
}{
	"wrong LOINC system": {"weight_full", func(r map[string]any) { first(r, "code", "coding")["system"] = "http://loinc.com" }},
	"wrong LOINC code":   {"blood_pressure_full", func(r map[string]any) { first(r, "code", "coding")["code"] = "85354-8" }},
	"missing systolic":   {"blood_pressure_full", func(r map[string]any) { r["component"] = r["component"].([]any)[1:] }},
	"missing coding": {"pulse_oximetry_full", func(r map[string]any) {
		code := r["code"].(map[string]any)
		code["coding"] = code["coding"].([]any)[1:]
	}},
	"bad UCUM code":              {"pulse_oximetry_full", func(r map[string]any) { r["valueQuantity"].(map[string]any)["code"] = "percent" }},
	"bad UCUM code of component": {"blood_pressure_full", func(r map[string]any) { first(r, "component")["valueQuantity"].(map[string]any)["code"] = "mmHg" }},
	"missing subject":            {"glucose_low", func(r map[string]any) { delete(r, "subject") }},
	"missing category":           {"glucose_low", func(r map[string]any) { delete(r, "category") }},
	"wrong status":               {"weight_full", func(r map[string]any) { r["status"] = "done" }},
	"missing status":             {"weight_full", func(r map[string]any) { delete(r, "status") }},
	"missing time":               {"blood_pressure_minimal", func(r map[string]any) { delete(r, "effectiveDateTime") }},
	"missing value":              {"weight_full", func(r map[string]any) { delete(r, "valueQuantity") }},
	"value as text":              {"weight_full", func(r map[string]any) { r["valueQuantity"].(map[string]any)["value"] = "72.57" }},
	"value and reason":           {"weight_full", func(r map[string]any) { r["dataAbsentReason"] = map[string]any{"text": "lost"} }},
	"empty array":                {"weight_full", func(r map[string]any) { r["component"] = []any{} }},
	"member of no definition":    {"weight_full", func(r map[string]any) { r["patientName"] = "Ada" }},
}

// first returns the first object of the list at a path.
func first(root map[string]any, path ...string) map[string]any {
	var node any = root
	for _, name := range path {
		node = node.(map[string]any)[name]
	}
	return node.([]any)[0].(map[string]any)
}

// Every served or delivered resource is valid, and the validator or the rules detect every deliberate error.
func TestResourcesAreValid(t *testing.T) {
	resources := map[string]json.RawMessage{}
	for _, all := range []map[string]fhir.Resource{cases(), patientCases()} {
		for name, resource := range all {
			encoded, err := resource.Encode()
			if err != nil {
				t.Fatal(err)
			}
			resources[name] = encoded
		}
	}
	whole := len(resources)
	caught := map[string]bool{}
	for name, b := range invalidCases {
		root := decode(t, cases()[b.golden])
		b.spoil(root)
		encoded, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		resources["broken: "+name], caught[name] = encoded, len(violations(root)) > 0
	}
	found := vigiltest.FHIRIssues(t, resources)
	byValidator := 0
	for name, issues := range found {
		what, broken := strings.CutPrefix(name, "broken: ")
		switch {
		case broken && len(issues) > 0:
			byValidator++
		case broken && !caught[what]:
			t.Errorf("not detected: %s", what)
		case broken:
		case name == "patient_damaged":
			// The installed definitions are of US Core 5.0.1, which expects the reason for an absent name beside the name. The target version, 6.1.0,
			// expects it inside.
			if len(issues) != 1 || !strings.Contains(issues[0], "us-core-6") {
				t.Errorf("%s: %v", name, issues)
			}
		case len(issues) > 0:
			t.Errorf("%s: %v", name, issues)
		}
	}
	if whole < 30 || byValidator < 10 {
		t.Errorf("%d resources are valid; the validator detected %d of the invalid ones", whole, byValidator)
	}
}
