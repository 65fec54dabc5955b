package routes_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/vigilhealth/vigil/routes"
	"github.com/vigilhealth/vigil/routes/web"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// operations.json lists the query parameters of each operation, and the media types of the answers of those that answer
// in a form other than JSON, so the program need not parse the whole contract.
func TestOperationsFileMatchesContract(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromData(routes.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	facts := struct {
		Produced   map[string][]string `json:"produced"`
		Parameters map[string][]string `json:"parameters"`
	}{map[string][]string{}, map[string][]string{}}
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			names := []string{}
			for _, parameter := range append(item.Parameters, operation.Parameters...) {
				if parameter.Value.In == "query" {
					names = append(names, parameter.Value.Name)
				}
			}
			if slices.Sort(names); len(names) > 0 && strings.HasPrefix(path, web.BasePath) {
				facts.Parameters[method+" "+path] = names
			}
			types := []string{}
			for status, response := range operation.Responses.Map() {
				if strings.HasPrefix(status, "2") || status == "302" {
					types = slices.AppendSeq(types, maps.Keys(response.Value.Content))
				}
			}
			slices.Sort(types)
			if types = slices.Compact(types); !slices.Equal(types, []string{web.JSONType}) {
				facts.Produced[method+" "+path] = types
			}
		}
	}
	want, err := json.MarshalIndent(facts, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("operations.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("operations.json"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("operations.json differs from openapi.yaml; run make golden to rewrite it: %v", err)
	}
}
