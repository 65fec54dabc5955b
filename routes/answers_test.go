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

	"go.yaml.in/yaml/v3"

	"github.com/vigilhealth/vigil/routes"
	"github.com/vigilhealth/vigil/routes/web"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// answers.json lists the operations that answer in a form other than JSON, so the program need not parse the whole
// contract.
func TestAnswersFileMatchesContract(t *testing.T) {
	var document struct {
		Paths map[string]map[string]yaml.Node
	}
	if err := yaml.Unmarshal(routes.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	answers := map[string][]string{}
	for path, item := range document.Paths {
		for _, method := range web.Methods {
			node, described := item[strings.ToLower(method)]
			if !described {
				continue
			}
			var operation struct {
				Responses map[string]struct{ Content map[string]any }
			}
			if err := node.Decode(&operation); err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			types := []string{}
			for status, response := range operation.Responses {
				if strings.HasPrefix(status, "2") || status == "302" {
					types = slices.AppendSeq(types, maps.Keys(response.Content))
				}
			}
			slices.Sort(types)
			if types = slices.Compact(types); !slices.Equal(types, []string{web.JSONType}) {
				answers[method+" "+path] = types
			}
		}
	}
	want, err := json.MarshalIndent(answers, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("answers.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("answers.json"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("answers.json differs from openapi.yaml; run make golden to rewrite it: %v", err)
	}
}
