package routes

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/vigilhealth/vigil/routes/web"
)

//go:embed openapi.yaml
var openAPI []byte

const yamlType = "application/yaml"

// OpenAPI returns the contract, an OpenAPI 3.1 document in YAML.
func OpenAPI() []byte { return openAPI }

// contract is the document in the forms in which it is served and used.
type contract struct {
	yaml, json []byte
	types      map[string][]string // "GET /api/v1/schema/" to the media types its successes may have
}

// served is the contract of this program, read once however many services a process starts.
var served = sync.OnceValues(func() (contract, error) { return readContract(OpenAPI()) })

func readContract(source []byte) (contract, error) {
	var document any
	if err := yaml.Unmarshal(source, &document); err != nil {
		return contract{}, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	asJSON, err := json.Marshal(document)
	if err != nil {
		return contract{}, fmt.Errorf("writing the OpenAPI document as JSON: %w", err)
	}
	var outline struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(asJSON, &outline); err != nil {
		return contract{}, fmt.Errorf("reading the paths of the OpenAPI document: %w", err)
	}
	c := contract{yaml: source, json: asJSON, types: map[string][]string{}}
	for path, item := range outline.Paths {
		for _, method := range web.Methods {
			raw, described := item[strings.ToLower(method)]
			if !described {
				continue
			}
			var operation struct {
				Responses map[string]struct{ Content map[string]any }
			}
			if err := json.Unmarshal(raw, &operation); err != nil {
				return contract{}, fmt.Errorf("reading %s %s of the OpenAPI document: %w", method, path, err)
			}
			var types []string
			for status, response := range operation.Responses {
				if strings.HasPrefix(status, "2") || status == "302" {
					types = slices.AppendSeq(types, maps.Keys(response.Content))
				}
			}
			c.types[method+" "+path] = types
		}
	}
	return c, nil
}

// produces lists the media types in which a row's success may come; JSON for a row the document does not know.
func (c contract) produces(row web.Route) []string {
	if types, known := c.types[row.Method+" "+row.Path]; known {
		return types
	}
	return []string{web.JSONType}
}

// schema serves the contract. Source: docs/decisions/versioning.md, "Deprecation signals".
func (a *api) schema(c *web.Call) error {
	q := c.Query()
	format := q.OneOf("format", "json", "yaml")
	if err := q.Err(); err != nil {
		return err
	}
	if format == "" && web.Preferred(c.Request.Header, web.JSONType, yamlType) == yamlType {
		format = "yaml"
	}
	if format == "yaml" {
		return c.Send(http.StatusOK, yamlType, a.contract.yaml)
	}
	return c.Send(http.StatusOK, web.JSONType, a.contract.json)
}
