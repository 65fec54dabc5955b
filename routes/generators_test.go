package routes_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/vigilhealth/vigil/routes"
)

// Code generators need these properties of the document. Without them they produced: any type for an enum or const
// without a type; a 32-bit float, too small for cents, for a number without a format; no Go name for a list of types; an
// aborted generation for an array without items or an allOf part that is not an object; and null checks in every caller
// for a list that does not require its results.
func TestDocumentSuitsCodeGenerators(t *testing.T) {
	var document map[string]any
	if err := yaml.Unmarshal(routes.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	seen := 0
	var walk func(value any, at string)
	walk = func(value any, at string) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				walk(item, at)
			}
		case map[string]any:
			if !strings.HasSuffix(at, "/properties") {
				if problem := generatorProblem(v); problem != "" {
					t.Errorf("%s %s", at, problem)
				}
				seen++
			}
			properties, _ := v["properties"].(map[string]any)
			for name, property := range properties {
				if lacksDateFormat(name, property) && !strings.HasPrefix(at, "/paths//fhir/") { // there a date may be a month or a range
					t.Errorf("%s/properties/%s is a time or a date without its format", at, name)
				}
			}
			for name, child := range v {
				if name != "example" && name != "examples" {
					walk(child, at+"/"+name)
				}
			}
		}
	}
	walk(document, "")
	if seen < 1000 {
		t.Errorf("looked at %d places only", seen)
	}
}

// generatorProblem returns the problem of an object in the document if it is a schema.
func generatorProblem(schema map[string]any) string {
	kinds := typesOf(schema)
	_, enumerated := schema["enum"]
	_, constant := schema["const"]
	parts, _ := schema["allOf"].([]any)
	switch {
	case (enumerated || constant) && len(kinds) == 0:
		return "has values but no type"
	case len(kinds) > 1 && (len(kinds) > 2 || !slices.Contains(kinds, "null")):
		return "has several types: write oneOf"
	case slices.Contains(kinds, "number") && schema["format"] == nil:
		return "is a number without its format: double"
	case slices.Contains(kinds, "array") && schema["items"] == nil:
		return "is an array without items"
	}
	for _, part := range parts {
		object, _ := part.(map[string]any)
		properties, _ := object["properties"].(map[string]any)
		required, _ := object["required"].([]any)
		switch {
		case object["$ref"] == nil && object["type"] != "object":
			return "has a part that does not say type: object"
		case properties["results"] != nil && !slices.Contains(required, any("results")):
			return "is a list that does not require its results"
		}
	}
	return ""
}

// lacksDateFormat reports whether a property named like a time or a date has neither that format nor a description of
// another.
func lacksDateFormat(name string, property any) bool {
	schema, _ := property.(map[string]any)
	called := strings.HasSuffix(name, "_at") || name == "date" || strings.HasPrefix(name, "date_") || strings.HasSuffix(name, "_date")
	return called && slices.Contains(typesOf(schema), "string") && schema["format"] == nil && schema["description"] == nil
}

// typesOf returns the JSON types that a schema names.
func typesOf(schema map[string]any) (kinds []string) {
	switch kind := schema["type"].(type) {
	case string:
		kinds = []string{kind}
	case []any:
		for _, one := range kind {
			name, _ := one.(string)
			kinds = append(kinds, name)
		}
	}
	return kinds
}

// Every operation has a unique id, a summary, a description and one described tag; no tag is unused.
func TestOperationsAreDescribed(t *testing.T) {
	var document struct {
		Tags  []struct{ Name, Description string }
		Paths map[string]map[string]struct {
			OperationID          string `yaml:"operationId"`
			Summary, Description string
			Tags                 []string
		}
	}
	if err := yaml.Unmarshal(routes.OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	tags, used, names := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, tag := range document.Tags {
		if tags[tag.Name] || tag.Description == "" {
			t.Errorf("the tag %s is there twice or has no description", tag.Name)
		}
		tags[tag.Name] = true
	}
	for path, item := range document.Paths {
		for method, operation := range item {
			name := strings.ToUpper(method) + " " + path
			if operation.Summary == "" || operation.Description == "" || operation.Summary == operation.Description {
				t.Errorf("%s needs a summary and a description that says more", name)
			}
			if other := names[operation.OperationID]; operation.OperationID == "" || other != "" {
				t.Errorf("%s has the operationId %q of %s", name, operation.OperationID, cmp.Or(other, "nobody"))
			}
			names[operation.OperationID] = name
			for _, tag := range operation.Tags {
				used[tag] = true
			}
		}
	}
	if !maps.Equal(tags, used) {
		t.Errorf("tags described are %v, tags used %v", slices.Sorted(maps.Keys(tags)), slices.Sorted(maps.Keys(used)))
	}
}
