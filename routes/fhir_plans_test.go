package routes_test

import (
	"slices"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhirserver"
)

// Every FHIR search by patient, time or id uses an index, also for its order and paging.
func TestFHIRSearchesUseIndexes(t *testing.T) {
	p := newPractice(t)
	watch := watchQueries(p.clinic)
	paths := []string{"/Observation/$lastn?patient=" + p.ada + "&max=5", "/Observation?_include=Observation:subject&_include=Observation:device&_revinclude=Provenance:target"}
	for _, kind := range fhirserver.ResourceTypes {
		paths = append(paths, "/"+kind.Type, "/"+kind.Type+"?_count=2", "/"+kind.Type+"/"+p.ada)
		for _, sort := range kind.SortNames() {
			paths = append(paths, "/"+kind.Type+"?_sort="+sort)
			for _, param := range kind.AllParams() {
				value, more := values[param.Name], ""
				switch param.Name {
				case "patient", "subject":
					value = p.ada
				case "_id", "target":
					value = p.weight
				case "component-code-value-quantity":
					more = "&patient=" + p.ada
				}
				if kind.Type == "Observation" && param.Name == "status" {
					value = "final"
				}
				paths = append(paths, "/"+kind.Type+"?_sort="+sort+"&"+param.Name+"="+value+more)
				if slices.ContainsFunc(kind.Params, func(p fhirserver.Param) bool { return p.Name == "patient" }) {
					paths = append(paths, "/"+kind.Type+"?_sort="+sort+"&_total=none&patient="+p.ada+"&"+param.Name+"="+value)
				}
			}
		}
	}
	shapes := 0
	for _, path := range paths {
		for page := 0; path != "" && page < 2; page++ {
			watch.start()
			bundle := parsed(t, p.requestFHIR(p.tokenOf(authz.Admin), "GET", path, ""))
			for _, query := range watch.stop() {
				for _, step := range slices.Concat(scans(t, p.app.ConcurrentDB(), query), detours(t, p.app.ConcurrentDB(), query, p.ada)) {
					t.Errorf("%s: %s\n\tin %s", path, step, query)
				}
				shapes++
			}
			path = linkOf(bundle, "next")
		}
	}
	if shapes < 200 {
		t.Errorf("only %d shapes of queries were checked", shapes)
	}
}
