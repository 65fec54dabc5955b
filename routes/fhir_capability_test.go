package routes_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/routes"
)

// values are valid values for the search parameters.
var values = map[string]string{
	"_id": "1", "_lastUpdated": "2026", "date": "2026", "recorded": "2026", "birthdate": "2026", "patient": "1", "subject": "1", "target": "1", "code": "85354-9", "combo-code": "85354-9", "url": "urn:rpm:alert-type",
	"category": "vital-signs", "component-code-value-quantity": "8480-6$1", "identifier": "1", "name": "a", "family": "a", "given": "a", "gender": "male",
	"type": "1", "action": "C", "authored": "2026", "questionnaire": "phq-2", "outcome": "0", "status": "active", "active": "true", "_include": "Observation:subject", "_revinclude": "Provenance:target",
}

// The capability statement lists exactly what is served: its types, operations and search parameters match the route
// table, openapi.yaml and strict search.
func TestCapabilityStatementMatchesRoutes(t *testing.T) {
	c := newClinic(t)
	document, err := openapi3.NewLoader().LoadFromData(routes.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, row := range routes.Rows() {
		if path, below := strings.CutPrefix(row.Path, "/fhir/R4/"); below {
			served[row.Method+" "+path] = true
		}
	}
	rec := c.requestFHIR("", "GET", "/metadata", "")
	statement := parsed(t, rec)
	if statement["fhirVersion"] != "4.0.1" || statement["kind"] != "instance" || statement["implementation"].(object)["url"] != "https://vigil.example.org/fhir/R4" {
		t.Errorf("%v", statement)
	}
	rest := statement["rest"].([]any)[0].(object)
	listed := map[string]bool{
		"GET metadata": true, "GET .well-known/smart-configuration": true, // and the status and files of an export
		"GET $export-status/{id}": true, "DELETE $export-status/{id}": true, "GET $export-status/{id}/{file}": true,
	}
	for _, o := range rest["operation"].([]any) {
		name := o.(object)["name"].(string)
		listed["GET $"+name], listed["POST $"+name] = true, true
	}
	for _, r := range rest["resource"].([]any) {
		resource := r.(object)
		name := resource["type"].(string)
		if name == "Group" { // read and search are not supported
			listed["GET Group/{group}/$export"], listed["POST Group/{group}/$export"] = true, true
			continue
		}
		if name == "CodeSystem" || name == "Questionnaire" { // public, and without a table
			listed["GET "+name], listed["POST "+name+"/_search"], listed["GET "+name+"/{id}"] = true, true, true
			continue
		}
		var interactions []string
		for _, i := range resource["interaction"].([]any) {
			interactions = append(interactions, i.(object)["code"].(string))
		}
		if !slices.Equal(interactions, []string{"read", "vread", "search-type"}) {
			t.Errorf("%s: %v", name, interactions)
		}
		listed["GET "+name], listed["POST "+name+"/_search"], listed["GET "+name+"/{id}"] = true, true, true
		listed["GET "+name+"/{id}/_history/{vid}"] = true
		if fhirserver.ResourceTypeByName(name).InPatientCompartment() {
			listed["GET Patient/{id}/"+name] = true
		}
		operations, _ := resource["operation"].([]any)
		for _, o := range operations {
			operation := o.(object)["name"].(string)
			listed["GET "+name+"/$"+operation] = true
			if operation == "export" {
				listed["POST "+name+"/$export"] = true
			}
		}
		var params []string
		for _, p := range resource["searchParam"].([]any) {
			params = append(params, p.(object)["name"].(string))
		}
		for key, of := range map[string]string{"_include": "searchInclude", "_revinclude": "searchRevInclude"} {
			if resource[of] != nil {
				params = append(params, key)
			}
		}
		var described []string
		for _, p := range document.Paths.Value("/fhir/R4/" + name).Get.Parameters {
			if known := p.Value.In == "query" && !slices.Contains([]string{"_count", "_summary", "_elements", "_total", "_sort", "_page", "_format"}, p.Value.Name); known {
				described = append(described, p.Value.Name)
			}
		}
		form := document.Paths.Value("/fhir/R4/" + name + "/_search").Post.RequestBody.Value.Content["application/x-www-form-urlencoded"].Schema.Value.Properties
		fields := slices.DeleteFunc(slices.Collect(maps.Keys(form)), func(n string) bool {
			return slices.Contains([]string{"_count", "_summary", "_elements", "_total", "_sort"}, n)
		})
		slices.Sort(params)
		slices.Sort(described)
		slices.Sort(fields)
		if diff := cmp.Diff(params, described) + cmp.Diff(params, fields); diff != "" {
			t.Errorf("%s is described otherwise: %s", name, diff)
		}
		for _, param := range append(params, "_count", "_summary", "_total", "_sort") {
			value := map[string]string{"_count": "1", "_summary": "count", "_total": "none", "_sort": fhirserver.ResourceTypeByName(name).SortNames()[0]}[param]
			if value == "" {
				value = values[param]
			}
			if name == "Observation" && param == "status" {
				value = "final"
			}
			more := ""
			if strings.HasPrefix(param, "component") {
				more = "&date=2026"
			}
			if rec := c.requestFHIR(c.tokenOf(authz.Admin), "GET", "/"+name+"?"+param+"="+value+more, "", "Prefer", "handling=strict"); rec.Code != 200 {
				t.Errorf("%s by %s=%s: %d %s", name, param, value, rec.Code, rec.Body)
			}
		}
	}
	if diff := cmp.Diff(listed, served); diff != "" {
		t.Errorf("the statement and the table differ: %s", diff)
	}
	if len(fhirserver.ResourceTypes) != 10 || !slices.IsSortedFunc(fhirserver.ResourceTypes, func(a, b *fhirserver.ResourceType) int { return strings.Compare(a.Type, b.Type) }) {
		t.Error("the types are not the ten in their order")
	}
}
