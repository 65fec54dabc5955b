package routes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/routes/web"
)

// schema is what the door has to know of a body's: where null may stand.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       json.RawMessage    `json:"type"`
	Enum       []json.RawMessage  `json:"enum"`
	Const      json.RawMessage    `json:"const"`
	Required   []string           `json:"required"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	AllOf      []*schema          `json:"allOf"`
	OneOf      []*schema          `json:"oneOf"`
	AnyOf      []*schema          `json:"anyOf"`
}

// bodies are the members of each operation's JSON body that may not be null, by "POST /api/v1/patients/". What is required is left to the
// handlers, which complain of it together with everything else, and vendors' messages to their adapters.
// Source: docs/decisions/conventions.md, "Null in requests".
func bodies(document []byte) (map[string]*input.Members, error) {
	var outline struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema *schema }
			}
		}
		Components struct{ Schemas map[string]*schema }
	}
	if err := json.Unmarshal(document, &outline); err != nil {
		return nil, fmt.Errorf("reading the bodies of the OpenAPI document: %w", err)
	}
	found := map[string]*input.Members{}
	reader := nullReader{outline.Components.Schemas, map[*schema]bool{}}
	for path, item := range outline.Paths {
		for method, operation := range item {
			if body := operation.RequestBody.Content[web.JSONType].Schema; body != nil {
				found[strings.ToUpper(method)+" "+path] = reader.members(body)
			}
		}
	}
	return found, nil
}

// nullReader reads schemas; open are those on the way to the one at hand.
type nullReader struct {
	named map[string]*schema
	open  map[*schema]bool
}

// members is nil where nothing is forbidden.
func (n nullReader) members(s *schema) *input.Members {
	if s = n.resolve(s); s == nil || n.open[s] {
		return nil
	}
	n.open[s] = true
	defer delete(n.open, s)
	found := &input.Members{Inside: map[string]*input.Members{}}
	for _, part := range s.AllOf {
		if of := n.members(part); of != nil {
			maps.Copy(found.Inside, of.Inside)
		}
	}
	// Where a value may have one of two forms, the handler knows which one it has; where it may have one or be null, that is its form.
	if forms := slices.DeleteFunc(slices.Concat(s.OneOf, s.AnyOf), n.nothing); len(forms) == 1 {
		if of := n.members(forms[0]); of != nil {
			found.Inside, found.Items = of.Inside, of.Items
		}
	}
	for name, property := range s.Properties {
		of := n.members(property)
		if !n.nullable(property) && !slices.Contains(s.Required, name) {
			if of == nil {
				of = &input.Members{}
			}
			of.Forbidden = true
		}
		if of != nil {
			found.Inside[name] = of
		}
	}
	if s.Items != nil {
		found.Items = n.members(s.Items)
		if !n.nullable(s.Items) {
			if found.Items == nil {
				found.Items = &input.Members{}
			}
			found.Items.Forbidden = true
		}
	}
	if len(found.Inside) == 0 && found.Items == nil {
		return nil
	}
	return found
}

func (n nullReader) resolve(s *schema) *schema {
	for s != nil && s.Ref != "" {
		s = n.named[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

// nothing reports whether a schema is that of null alone.
func (n nullReader) nothing(s *schema) bool { return string(n.resolve(s).Type) == `"null"` }

// nullable reports whether a schema lets null through.
func (n nullReader) nullable(s *schema) bool {
	if s = n.resolve(s); s == nil {
		return true
	}
	typed := len(s.Type) > 0
	switch {
	case typed && !strings.Contains(string(s.Type), `"null"`):
		return false
	case len(s.Enum) > 0:
		return slices.ContainsFunc(s.Enum, func(value json.RawMessage) bool { return string(value) == "null" })
	case len(s.Const) > 0, len(s.AllOf) > 0 && !slices.ContainsFunc(s.AllOf, n.nullable):
		return false
	case len(s.OneOf)+len(s.AnyOf) > 0:
		return slices.ContainsFunc(slices.Concat(s.OneOf, s.AnyOf), n.nullable)
	}
	return true
}

// refuseNulls holds a body against the contract.
func (c contract) refuseNulls(row web.Route, raw []byte) error {
	return input.RefuseNulls(raw, c.bodies[row.Method+" "+row.Path])
}
