// Package fhir knows how a stored reading is written as an HL7 FHIR R4 (4.0.1) resource with the US Core profiles,
// and how to read the OperationOutcome an EMR answers with. It is a pure function of what it is handed: nothing is
// stored, sent or looked up here, and no clock is read.
//
// A Resource holds health information, so it refuses to print; encoding it is the one way to see inside.
package fhir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// ContentType is the media type of FHIR JSON.
const ContentType = "application/fhir+json"

// Resource is one FHIR resource, to be encoded and nothing else. Formatting and logging it give a placeholder.
type Resource struct {
	content any
	err     error
}

// Encode returns the resource as compact JSON, members in FHIR's order.
func (r Resource) Encode() ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // a comparator is "<", not "\u003c"
	if err := encoder.Encode(r.content); err != nil {
		return nil, fmt.Errorf("encode FHIR resource: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// MarshalJSON is Encode, so that a route can answer with the resource.
func (r Resource) MarshalJSON() ([]byte, error) { return r.Encode() }

// Format prints a placeholder whatever the verb.
func (Resource) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[fhir resource]") }

// LogValue logs a placeholder.
func (Resource) LogValue() slog.Value { return slog.StringValue("[fhir resource]") }

// The FHIR data types in use, members in the order of the R4 definitions. Whatever may be absent is left out:
// FHIR forbids empty arrays, objects and strings.
type (
	meta struct {
		VersionID   string   `json:"versionId,omitempty"`
		LastUpdated string   `json:"lastUpdated,omitempty"`
		Profile     []string `json:"profile,omitempty"`
	}
	coding struct {
		System  string `json:"system,omitempty"`
		Code    string `json:"code,omitempty"`
		Display string `json:"display,omitempty"`
	}
	concept struct {
		Coding []coding `json:"coding,omitempty"`
		Text   string   `json:"text,omitempty"`
	}
	identifier struct {
		System string `json:"system,omitempty"`
		Value  string `json:"value,omitempty"`
	}
	reference struct {
		Reference  string      `json:"reference,omitempty"`
		Identifier *identifier `json:"identifier,omitempty"`
		Display    string      `json:"display,omitempty"`
	}
	quantity struct {
		Value      float64 `json:"value"`
		Comparator string  `json:"comparator,omitempty"`
		Unit       string  `json:"unit"`
		System     string  `json:"system"`
		Code       string  `json:"code"`
	}
	component struct {
		Code                 concept   `json:"code"`
		ValueQuantity        *quantity `json:"valueQuantity,omitempty"`
		ValueCodeableConcept *concept  `json:"valueCodeableConcept,omitempty"`
		DataAbsentReason     *concept  `json:"dataAbsentReason,omitempty"`
	}
	observation struct {
		ResourceType      string       `json:"resourceType"`
		ID                string       `json:"id,omitempty"`
		Meta              meta         `json:"meta"`
		Identifier        []identifier `json:"identifier"`
		Status            string       `json:"status"`
		Category          []concept    `json:"category"`
		Code              concept      `json:"code"`
		Subject           reference    `json:"subject"`
		EffectiveDateTime string       `json:"effectiveDateTime"`
		Issued            string       `json:"issued"`
		ValueQuantity     *quantity    `json:"valueQuantity,omitempty"`
		DataAbsentReason  *concept     `json:"dataAbsentReason,omitempty"`
		Device            *reference   `json:"device,omitempty"`
		Component         []component  `json:"component,omitempty"`
	}
)
