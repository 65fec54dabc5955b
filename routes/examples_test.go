package routes_test

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/vigilhealth/vigil/routes"
)

// Every body that a caller sends has an example that the contract itself accepts.
func TestExamples(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromData(routes.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.RequestBody == nil {
				continue
			}
			for kind, content := range operation.RequestBody.Value.Content {
				example := content.Example
				if example == nil {
					example = content.Schema.Value.Example
				}
				if example == nil {
					t.Errorf("%s %s: %s has no example", method, path, kind)
					continue
				}
				if err := content.Schema.Value.VisitJSON(example); err != nil {
					t.Errorf("%s %s: the example does not fit: %v", method, path, err)
				}
			}
		}
	}
}
