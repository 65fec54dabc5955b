package routes_test

import (
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/routes"
)

// Every request body has an example, and every example conforms to the contract: it validates, keeps the named formats,
// and has no undeclared member, as a stray comma in YAML would add.
func TestExamples(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromData(routes.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	hold := func(where string, schema *openapi3.SchemaRef, example any) {
		if example == nil {
			return
		}
		held++
		if err := schema.Value.VisitJSON(example); err != nil {
			t.Errorf("%s: the example does not fit: %v", where, err)
		}
		for _, problem := range schemaViolations(schema, example, "") {
			t.Errorf("%s: the example's %s", where, problem)
		}
	}
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			where := method + " " + path
			if operation.RequestBody != nil {
				for kind, content := range operation.RequestBody.Value.Content {
					if content.Example == nil && content.Schema.Value.Example == nil && len(content.Examples) == 0 {
						t.Errorf("%s: %s has no example", where, kind)
					}
					holdContent(where+", the body", content, hold)
				}
			}
			for status, response := range operation.Responses.Map() {
				for _, content := range response.Value.Content {
					holdContent(where+", "+status, content, hold)
				}
			}
			for _, parameter := range operation.Parameters {
				if parameter.Value.Schema != nil {
					hold(where+", "+parameter.Value.Name, parameter.Value.Schema, parameter.Value.Example)
				}
			}
		}
	}
	for name, schema := range document.Components.Schemas {
		hold(name, schema, schema.Value.Example)
	}
	if held < 150 {
		t.Errorf("looked at %d examples only", held)
	}
}

func holdContent(where string, content *openapi3.MediaType, hold func(string, *openapi3.SchemaRef, any)) {
	if content.Schema == nil {
		return
	}
	hold(where, content.Schema, content.Example)
	for _, example := range content.Examples {
		hold(where, content.Schema, example.Value.Value)
	}
}

// formats are the document's formats that a string can violate; the others describe how a number is stored.
var formats = map[string]func(string) error{
	"date":      func(s string) error { _, err := time.Parse(time.DateOnly, s); return err },
	"date-time": func(s string) error { _, err := time.Parse(time.RFC3339, s); return err },
	"uuid":      func(s string) error { _, err := uuid.Parse(s); return err },
	"email":     func(s string) error { _, err := mail.ParseAddress(s); return err },
	"uri":       func(s string) error { _, err := url.Parse(s); return err },
}

// schemaViolations returns where an example deviates from its schema's format or is not declared there.
func schemaViolations(ref *openapi3.SchemaRef, example any, at string) (problems []string) {
	schema := ref.Value
	switch value := example.(type) {
	case string:
		if check, known := formats[schema.Format]; known {
			if err := check(value); err != nil {
				problems = append(problems, fmt.Sprintf("%s is no %s: %v", at, schema.Format, err))
			}
		}
	case []any:
		for i, item := range value {
			if schema.Items != nil {
				problems = append(problems, schemaViolations(schema.Items, item, fmt.Sprint(at, ".", i))...)
			}
		}
	case map[string]any:
		properties, closed := membersOf(ref)
		for _, name := range slices.Sorted(maps.Keys(value)) {
			switch property := properties[name]; {
			case property != nil:
				problems = append(problems, schemaViolations(property, value[name], strings.TrimPrefix(at+"."+name, "."))...)
			case closed:
				problems = append(problems, fmt.Sprintf("%s.%s stands in no schema", at, name))
			}
		}
	}
	return problems
}

// membersOf returns the properties of a schema and of its parts. A schema is closed if it names properties and does not
// allow others.
func membersOf(ref *openapi3.SchemaRef) (properties openapi3.Schemas, closed bool) {
	schema := ref.Value
	properties = maps.Clone(schema.Properties)
	closed = len(properties) > 0 && schema.AdditionalProperties.Schema == nil && (schema.AdditionalProperties.Has == nil || !*schema.AdditionalProperties.Has)
	for _, part := range slices.Concat(schema.AllOf, schema.OneOf, schema.AnyOf) {
		of, ends := membersOf(part)
		if properties == nil {
			properties = openapi3.Schemas{}
		}
		maps.Copy(properties, of)
		closed = closed || ends
	}
	return properties, closed
}
