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
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/phi"
)

// ContentType is the media type of FHIR JSON.
const ContentType = "application/fhir+json"

// Resource is one FHIR resource, to be encoded and nothing else. Formatting and logging it give a placeholder.
type Resource struct {
	content any
	err     error
}

// Made is a resource that was made elsewhere.
func Made(content any) Resource { return Resource{content: content} }

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
		Tag         []coding `json:"tag,omitempty"`
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
		Type       string      `json:"type,omitempty"`
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
	period struct {
		Start string `json:"start"`
		End   string `json:"end"`
	}
	component struct {
		Code                 concept   `json:"code"`
		ValueQuantity        *quantity `json:"valueQuantity,omitempty"`
		ValueCodeableConcept *concept  `json:"valueCodeableConcept,omitempty"`
		ValueBoolean         *bool     `json:"valueBoolean,omitempty"`
		ValueInteger         *int      `json:"valueInteger,omitempty"`
		DataAbsentReason     *concept  `json:"dataAbsentReason,omitempty"`
	}
	observation struct {
		ResourceType      string       `json:"resourceType"`
		ID                string       `json:"id,omitempty"`
		Meta              meta         `json:"meta"`
		Contained         []device     `json:"contained,omitempty"`
		Identifier        []identifier `json:"identifier"`
		Status            string       `json:"status"`
		Category          []concept    `json:"category"`
		Code              concept      `json:"code"`
		Subject           reference    `json:"subject"`
		EffectiveDateTime string       `json:"effectiveDateTime,omitempty"`
		EffectivePeriod   *period      `json:"effectivePeriod,omitempty"`
		Issued            string       `json:"issued"`
		Performer         []reference  `json:"performer,omitempty"`
		ValueQuantity     *quantity    `json:"valueQuantity,omitempty"`
		DataAbsentReason  *concept     `json:"dataAbsentReason,omitempty"`
		Device            *reference   `json:"device,omitempty"`
		DerivedFrom       []reference  `json:"derivedFrom,omitempty"`
		Component         []component  `json:"component,omitempty"`

		byPatient bool // a portal user typed it
	}
)

// issueCodes is the R4 value set issue-type. Codes outside it are dropped, so that an EMR cannot put words of its
// own, and with them health information, where codes are shown. Source: hl7.org/fhir/R4/valueset-issue-type.html
var issueCodes = []string{
	"invalid", "structure", "required", "value", "invariant",
	"security", "login", "unknown", "expired", "forbidden", "suppressed",
	"processing", "not-supported", "duplicate", "multiple-matches", "not-found", "deleted", "too-long",
	"code-invalid", "extension", "too-costly", "business-rule", "conflict",
	"transient", "lock-error", "no-store", "exception", "timeout", "incomplete", "throttled",
	"informational",
}

// maxDiagnostics bounds what is kept of an EMR's own words, in bytes.
const maxDiagnostics = 4096

// Outcome is what an OperationOutcome says. Codes may be shown; Diagnostics are the EMR's own words and may quote
// the patient.
type Outcome struct {
	Codes       []string // issue codes of the R4 value set, each once, in the order given
	Diagnostics phi.Text // at most 4 KiB
}

// Names reports whether one of the issues has the code.
func (o Outcome) Names(code string) bool { return slices.Contains(o.Codes, code) }

// ReadOutcome reads an OperationOutcome in JSON. Anything else gives the empty Outcome: an EMR that fails does not
// always fail in FHIR.
func ReadOutcome(body []byte) Outcome {
	var raw struct {
		ResourceType string `json:"resourceType"`
		Issue        []struct {
			Code        string `json:"code"`
			Diagnostics string `json:"diagnostics"`
			Details     struct {
				Text string `json:"text"`
			} `json:"details"`
		} `json:"issue"`
	}
	if json.Unmarshal(body, &raw) != nil || raw.ResourceType != "OperationOutcome" {
		return Outcome{}
	}
	var outcome Outcome
	var words strings.Builder
	for _, issue := range raw.Issue {
		if slices.Contains(issueCodes, issue.Code) && !outcome.Names(issue.Code) {
			outcome.Codes = append(outcome.Codes, issue.Code)
		}
		for _, text := range []string{issue.Details.Text, issue.Diagnostics} {
			if text != "" && words.Len() < maxDiagnostics {
				words.WriteString(text + "\n")
			}
		}
	}
	outcome.Diagnostics = Diagnostics(words.String())
	return outcome
}

// Diagnostics keeps an EMR's own words about a failure, at most 4 KiB of valid UTF-8, behind the type that refuses
// to print.
func Diagnostics(words string) phi.Text {
	words = strings.ToValidUTF8(strings.TrimSpace(words), "")
	if len(words) > maxDiagnostics {
		words = strings.ToValidUTF8(words[:maxDiagnostics], "")
	}
	return phi.Text(words)
}
