package routes_test

import (
	"encoding/json"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/vigilhealth/vigil/routes"
)

// The served document equals the repository's except for its version, in both formats and with any version string.
func TestServedDocumentHasVersion(t *testing.T) {
	var want map[string]any
	if err := yaml.Unmarshal(routes.OpenAPI(), &want); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1.4.2", "1.10", "2026-11-23", `a "dirty" one: #7`} {
		c := newClinic(t, func(e *routes.Engines) { e.Version = version })
		want["info"].(map[string]any)["version"] = version
		inJSON, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{"json", "yaml"} {
			served := c.requestWithToken("GET", "/api/v1/schema/?format="+format, "").Body.Bytes()
			var got any
			if err := yaml.Unmarshal(served, &got); err != nil { // JSON is YAML
				t.Fatalf("%s: %v", version, err)
			}
			if again, err := json.Marshal(got); err != nil || string(again) != string(inJSON) {
				t.Errorf("%s as %s is another document: %v", version, format, err)
			}
		}
	}
}
