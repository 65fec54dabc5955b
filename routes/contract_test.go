package routes_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// The route table and openapi.yaml describe the same endpoints and agree on authentication.
func TestContract(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromData(routes.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(document.Security, requires("bearer")) {
		t.Error("the document does not ask for a token by default")
	}
	served := map[string]bool{}
	for _, row := range routes.Rows() {
		name := row.Method + " " + row.Path
		if served[name] {
			t.Errorf("%s is served twice", name)
		}
		served[name] = true
		operation := operationOf(document, row.Method, row.Path)
		if operation == nil {
			t.Errorf("%s is served but not described", name)
			continue
		}
		switch {
		case row.Public && (operation.Security == nil || len(*operation.Security) > 0):
			t.Errorf("%s needs no token: say security: []", name)
		case row.Gateway && (operation.Security == nil || !slices.ContainsFunc(*operation.Security, requires("gatewaySignature")) && !slices.ContainsFunc(*operation.Security, requires("webhookKey")) && !slices.ContainsFunc(*operation.Security, requires("messagingSignature"))):
			t.Errorf("%s is signed by the gateway: say so in security", name)
		case row.Scope != "" && !opens(operation.Security, string(row.Scope)):
			t.Errorf("%s is opened to clients by %s: say so in security, beside the bearer", name, row.Scope)
		case !row.Public && !row.Gateway && row.Scope == "" && operation.Security != nil:
			t.Errorf("%s needs a token: leave security out", name)
		}
		checkErrors(t, name, row, operation)
	}
	for path, item := range document.Paths.Map() {
		for method := range item.Operations() {
			if !served[method+" "+path] {
				t.Errorf("%s %s is described but not served", method, path)
			}
		}
	}
}

// opens reports whether the security requirement accepts a user's token, or a client's with the scope, and nothing else.
func opens(security *openapi3.SecurityRequirements, scope string) bool {
	return security != nil && len(*security) == 2 && requires("bearer")((*security)[0]) && slices.Equal((*security)[1]["client"], []string{scope})
}

func requires(scheme string) func(openapi3.SecurityRequirement) bool {
	return func(r openapi3.SecurityRequirement) bool { _, found := r[scheme]; return found }
}

func operationOf(document *openapi3.T, method, path string) *openapi3.Operation {
	if item := document.Paths.Value(path); item != nil {
		return item.GetOperation(method)
	}
	return nil
}

// checkErrors checks the rules at the head of openapi.yaml.
func checkErrors(t *testing.T, name string, row routes.Row, operation *openapi3.Operation) {
	t.Helper()
	for status, needed := range map[string]bool{
		"default": true,
		"400":     operation.RequestBody != nil,
		"401":     !row.Public,
		"404":     strings.Contains(row.Path, "{"),
	} {
		if needed && operation.Responses.Value(status) == nil {
			t.Errorf("%s does not describe %s", name, status)
		}
	}
	if operation.OperationID == "" || len(operation.Tags) != 1 {
		t.Errorf("%s needs an operationId and one tag", name)
	}
}

func TestSchema(t *testing.T) {
	s := serve(t)
	for _, test := range []struct{ query, accept, kind string }{
		{"", "", "application/json"},
		{"", "*/*", "application/json"},
		{"", "application/yaml", "application/yaml"},
		{"", "application/yaml;q=0.5, application/json", "application/json"},
		{"?format=yaml", "", "application/yaml"},
		{"?format=json", "application/yaml", "application/json"},
	} {
		rec := s.do(request{target: "/api/v1/schema/" + test.query, header: map[string]string{"Accept": test.accept}})
		expect(t, rec, 200, "")
		if got := rec.Header().Get("Content-Type"); got != test.kind {
			t.Errorf("%v: content type %s", test, got)
		}
		var document struct {
			OpenAPI string `json:"openapi" yaml:"openapi"`
			Paths   map[string]any
		}
		decode := json.Unmarshal
		if test.kind == "application/yaml" {
			decode = yaml.Unmarshal
		}
		if err := decode(rec.Body.Bytes(), &document); err != nil {
			t.Fatal(err)
		}
		if document.OpenAPI != "3.1.0" || document.Paths["/api/v1/schema/"] == nil {
			t.Errorf("%v: not the document: %s", test, document.OpenAPI)
		}
		vigiltest.CheckResponse(t, "GET", "/api/v1/schema/", rec.Code, rec.Header(), rec.Body.Bytes())
	}
	expect(t, s.do(request{target: "/api/v1/schema?format=xml"}), 400, "validation_error")
	expect(t, s.do(request{target: "/api/v1/schema/", header: map[string]string{"Accept": "text/html"}}), 406, "not_acceptable")
}

func TestAnswersFitTheContract(t *testing.T) {
	s := serve(t)
	for _, r := range []request{
		{target: "/health/live"}, {method: "HEAD", target: "/health/live"}, {target: "/api/v1/schema"}, {target: "/api/v1/schema/?format=xml"},
	} {
		if r.method == "" {
			r.method = http.MethodGet
		}
		rec := s.do(r)
		path, _, _ := strings.Cut(r.target, "?")
		vigiltest.CheckResponse(t, r.method, path, rec.Code, rec.Header(), rec.Body.Bytes())
	}
}
