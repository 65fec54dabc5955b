package routes

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
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

// contract is the OpenAPI document in both served formats.
type contract struct{ yaml, json []byte }

// servedContract is parsed once per process and only on the first request, because parsing takes longer than the rest
// of startup.
var servedContract = sync.OnceValues(func() (contract, error) { return readContract(OpenAPI()) })

func readContract(source []byte) (contract, error) {
	var document any
	if err := yaml.Unmarshal(source, &document); err != nil {
		return contract{}, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	asJSON, err := json.Marshal(document)
	if err != nil {
		return contract{}, fmt.Errorf("writing the OpenAPI document as JSON: %w", err)
	}
	return contract{yaml: source, json: asJSON}, nil
}

// operationFacts are the media types of successful answers of all operations that do not answer with JSON only, and the
// query parameters, by method and path. make golden extracts them from the contract.
//
//go:embed operations.json
var operationFacts []byte

// contractIndex holds the parts of the contract that are needed at startup.
type contractIndex struct {
	whole      func() (contract, error)
	Produced   map[string][]string `json:"produced"`
	Parameters map[string][]string `json:"parameters"`
}

func documentOf(version string) (d contractIndex, err error) {
	d.whole = sync.OnceValues(func() (contract, error) { return contractOfVersion(version) })
	if err := json.Unmarshal(operationFacts, &d); err != nil {
		return d, fmt.Errorf("reading the facts of operations: %w", err)
	}
	return d, nil
}

// produces lists the media types of a row's successful answers; JSON for a row that is not listed.
func (d contractIndex) produces(row web.Route) []string {
	if types, known := d.Produced[row.Method+" "+row.Path]; known {
		return types
	}
	return []string{web.JSONType}
}

// outsideQueries are the operations with queries that others compose: identity providers and the EMR
// add parameters to a callback, which RFC 6749, 4.1.2 requires clients to ignore, and device
// vendors add them to their webhooks.
var outsideQueries = []string{"/auth/oidc/", "/auth/smart/callback/", "/emr/auth/callback/", "/gateway/", "/oauth/"}

// parameters returns the query parameters of an endpoint. It reports false for one that ignores
// unknown parameters. Source: docs/decisions/conventions.md, "Booleans, enums and unknown filters
// in queries".
func (d contractIndex) parameters(row web.Route) (names []string, checked bool) {
	path, ours := strings.CutPrefix(row.Path, web.BasePath)
	if !ours || row.IsUnknown() || slices.ContainsFunc(outsideQueries, func(start string) bool { return strings.HasPrefix(path, start) }) {
		return nil, false
	}
	return d.Parameters[row.Method+" "+row.Path], true
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
	served, err := a.contract.whole()
	if err != nil {
		return err
	}
	if format == "yaml" {
		return c.Send(http.StatusOK, yamlType, served.yaml)
	}
	return c.OKEncoded(served.json)
}

// unreleased is the line of openapi.yaml that the program's version replaces.
var unreleased = []byte("\n  version: 1.0.0\n")

// contractOfVersion is the contract with a program's version.
func contractOfVersion(version string) (contract, error) {
	document, err := servedContract()
	if err != nil {
		return contract{}, err
	}
	return document.withVersion(version)
}

// withVersion sets the version in the document, so that readers see which release serves it, as in health and in the
// metrics. Source: docs/decisions/versioning.md, "The served document".
func (c contract) withVersion(version string) (contract, error) {
	if version == "" {
		return c, nil
	}
	quoted, err := json.Marshal(version)
	if err != nil {
		return contract{}, fmt.Errorf("writing the version: %w", err)
	}
	if bytes.Count(c.yaml, unreleased) != 1 {
		return contract{}, fmt.Errorf("the OpenAPI document has no version line to replace")
	}
	c.yaml = bytes.Replace(c.yaml, unreleased, fmt.Appendf(nil, "\n  version: %s\n", quoted), 1)
	var document, info map[string]json.RawMessage
	if err := json.Unmarshal(c.json, &document); err != nil {
		return contract{}, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	if err := json.Unmarshal(document["info"], &info); err != nil {
		return contract{}, fmt.Errorf("reading the head of the OpenAPI document: %w", err)
	}
	info["version"] = quoted
	if document["info"], err = json.Marshal(info); err != nil {
		return contract{}, fmt.Errorf("writing the head of the OpenAPI document: %w", err)
	}
	if c.json, err = json.Marshal(document); err != nil {
		return contract{}, fmt.Errorf("writing the OpenAPI document as JSON: %w", err)
	}
	return c, nil
}
