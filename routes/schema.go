package routes

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/vigilhealth/vigil/routes/web"
)

//go:embed openapi.yaml
var openAPI []byte

const yamlType = "application/yaml"

// OpenAPI returns the contract, an OpenAPI 3.1 document in YAML.
func OpenAPI() []byte { return openAPI }

// contract is the document in the forms in which it is served.
type contract struct{ yaml, json []byte }

// served is the contract of this program, read once however many services a process starts, and only when somebody asks for it: that takes longer
// than all else of a start.
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
	return contract{yaml: source, json: asJSON}, nil
}

// answerTypes are the media types that successes may have, by method and path, of all operations whose successes are not just JSON: what the contract says of
// them, taken out of it by make golden.
//
//go:embed answers.json
var answerTypes []byte

// document is the contract, as far as this program needs it before somebody reads it.
type document struct {
	whole    func() (contract, error)
	produced map[string][]string
}

func documentOf(version string) (d document, err error) {
	d.whole = sync.OnceValues(func() (contract, error) { return servedBy(version) })
	if err := json.Unmarshal(answerTypes, &d.produced); err != nil {
		return d, fmt.Errorf("reading the media types of answers: %w", err)
	}
	return d, nil
}

// produces lists the media types in which a row's success may come; JSON for a row that is not listed.
func (d document) produces(row web.Route) []string {
	if types, known := d.produced[row.Method+" "+row.Path]; known {
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
	served, err := a.contract.whole()
	if err != nil {
		return err
	}
	if format == "yaml" {
		return c.Send(http.StatusOK, yamlType, served.yaml)
	}
	return c.OKEncoded(served.json)
}

// unreleased is the line of openapi.yaml that gives way to the program's version.
var unreleased = []byte("\n  version: 1.0.0\n")

// servedBy is the contract of a program of a version.
func servedBy(version string) (contract, error) {
	document, err := served()
	if err != nil {
		return contract{}, err
	}
	return document.filled(version)
}

// filled is the document as this program serves it: who reads it sees which release it is of, as in health and in the metrics.
// Source: docs/decisions/versioning.md, "The served document".
func (c contract) filled(version string) (contract, error) {
	if version == "" {
		return c, nil
	}
	quoted, err := json.Marshal(version)
	if err != nil {
		return contract{}, fmt.Errorf("writing the version: %w", err)
	}
	if bytes.Count(c.yaml, unreleased) != 1 {
		return contract{}, fmt.Errorf("the OpenAPI document has no place for its version")
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
