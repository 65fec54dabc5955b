package routes

import (
	"bytes"
	"encoding/json"
	"fmt"
)

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
// Source: docs/decisions/versioning.md, "What the served document says".
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
