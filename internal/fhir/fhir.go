// Package fhir converts stored records to HL7 FHIR R4 (4.0.1) resources with US Core profiles, and parses the
// OperationOutcome of an EMR. Its functions are pure: they store, send and look up nothing, and read no clock.
//
// A Resource holds PHI, so it refuses to print. Only encoding reveals its content.
package fhir

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// ContentType is the media type of FHIR JSON.
const ContentType = "application/fhir+json"

// Resource is a FHIR resource that can only be encoded. Formatting and logging it give a placeholder.
type Resource struct {
	content any
	err     error
}

// NewResource wraps content that another package built.
func NewResource(content any) Resource { return Resource{content: content} }

// Encode returns the resource as compact JSON with its members in FHIR's order.
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

// MarshalJSON returns the result of Encode, so that a route can respond with the resource.
func (r Resource) MarshalJSON() ([]byte, error) { return r.Encode() }

// Format prints a placeholder for every verb.
func (Resource) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[fhir resource]") }

// LogValue logs a placeholder.
func (Resource) LogValue() slog.Value { return slog.StringValue("[fhir resource]") }

// The FHIR data types in use, with members in the order of the R4 definitions. Empty optional members are omitted,
// because FHIR forbids empty arrays, objects and strings.
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
	annotation struct {
		Text string `json:"text"`
	}
	component struct {
		Code                 concept   `json:"code"`
		ValueQuantity        *quantity `json:"valueQuantity,omitempty"`
		ValueCodeableConcept *concept  `json:"valueCodeableConcept,omitempty"`
		ValueBoolean         *bool     `json:"valueBoolean,omitempty"`
		ValueInteger         *int      `json:"valueInteger,omitempty"`
		DataAbsentReason     *concept  `json:"dataAbsentReason,omitempty"`

		Interpretation []concept        `json:"interpretation,omitempty"`
		ReferenceRange []referenceRange `json:"referenceRange,omitempty"`
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
		Interpretation    []concept    `json:"interpretation,omitempty"`
		Note              []annotation `json:"note,omitempty"`
		Device            *reference   `json:"device,omitempty"`

		ReferenceRange []referenceRange `json:"referenceRange,omitempty"`
		DerivedFrom    []reference      `json:"derivedFrom,omitempty"`
		Component      []component      `json:"component,omitempty"`

		byStaff bool // staff entered the values
	}
)

// issueCodes is the R4 value set issue-type. ParseOutcome drops other codes, so that an EMR cannot put free text, which
// may contain PHI, where codes are shown. Source: hl7.org/fhir/R4/valueset-issue-type.html
var issueCodes = []string{
	"invalid", "structure", "required", "value", "invariant",
	"security", "login", "unknown", "expired", "forbidden", "suppressed",
	"processing", "not-supported", "duplicate", "multiple-matches", "not-found", "deleted", "too-long",
	"code-invalid", "extension", "too-costly", "business-rule", "conflict",
	"transient", "lock-error", "no-store", "exception", "timeout", "incomplete", "throttled",
	"informational",
}

// maxDiagnostics bounds the stored diagnostics of an EMR, in bytes.
const maxDiagnostics = 4096

// Outcome is a parsed OperationOutcome. Codes may be shown; Diagnostics is free text of the EMR and may contain PHI.
type Outcome struct {
	Codes       []string // distinct issue codes of the R4 value set, in order
	Diagnostics phi.Text // at most 4 KiB
}

// HasCode reports whether one of the issues has the code.
func (o Outcome) HasCode(code string) bool { return slices.Contains(o.Codes, code) }

// ParseOutcome parses an OperationOutcome in JSON. Any other body gives the empty Outcome, because a failing EMR does
// not always respond in FHIR.
func ParseOutcome(body []byte) Outcome {
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
		if slices.Contains(issueCodes, issue.Code) && !outcome.HasCode(issue.Code) {
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

// IsOutcome reports whether a body is an OperationOutcome in JSON.
func IsOutcome(body []byte) bool {
	var of struct {
		ResourceType string `json:"resourceType"`
	}
	return json.Unmarshal(body, &of) == nil && of.ResourceType == "OperationOutcome"
}

// Diagnostics returns an EMR's error text as PHI, truncated to 4 KiB of valid UTF-8.
func Diagnostics(words string) phi.Text {
	words = strings.ToValidUTF8(strings.TrimSpace(words), "")
	if len(words) > maxDiagnostics {
		words = strings.ToValidUTF8(words[:maxDiagnostics], "")
	}
	return phi.Text(words)
}

// The systems of identifiers and codes.
const (
	userSystem       = "urn:rpm:user"
	npiSystem        = "http://hl7.org/fhir/sid/us-npi"
	alertTypeSystem  = "urn:rpm:alert-type"
	alertLevelSystem = "urn:rpm:alert-level"
)

// withVersion returns a resource without a stored version number. It sets the version id in m, the resource's own meta, to a hash of the content.
func withVersion(r any, m *meta, updatedAt time.Time) Resource {
	resource := Resource{content: r}
	encoded, err := resource.Encode()
	if err != nil {
		return Resource{err: err}
	}
	const length = 8 // bytes, enough to distinguish the versions of one resource
	sum := sha256.Sum256(encoded)
	m.VersionID, m.LastUpdated = hex.EncodeToString(sum[:length]), validate.FormatInstant(updatedAt)
	return resource
}

// Issue is one issue of an OperationOutcome: its FHIR issue type, Vigil's error code, and text without PHI.
type Issue struct {
	Type, Code, Text string
	// Severity is "error" when empty.
	Severity string
	// Parameter is the request parameter at fault; "" for the request as a whole.
	Parameter string
}

// OperationOutcome encodes issues as a resource. Source: FHIR R4, operationoutcome.html.
func OperationOutcome(issues ...Issue) ([]byte, error) {
	type coding struct {
		Code string `json:"code"`
	}
	type details struct {
		Coding []coding `json:"coding,omitempty"`
		Text   string   `json:"text,omitempty"`
	}
	type issue struct {
		Severity    string   `json:"severity"`
		Code        string   `json:"code"`
		Details     *details `json:"details,omitempty"`
		Diagnostics string   `json:"diagnostics,omitempty"`
		Expression  []string `json:"expression,omitempty"`
	}
	outcome := struct {
		ResourceType string  `json:"resourceType"`
		Issue        []issue `json:"issue"`
	}{ResourceType: "OperationOutcome"}
	for _, i := range issues {
		encoded := issue{Severity: cmp.Or(i.Severity, "error"), Code: i.Type}
		if i.Parameter != "" {
			encoded.Diagnostics, encoded.Expression = i.Text, []string{"http." + i.Parameter}
		}
		if i.Code != "" || i.Text != "" {
			encoded.Details = &details{Text: i.Text}
			if i.Code != "" {
				encoded.Details.Coding = []coding{{i.Code}}
			}
		}
		outcome.Issue = append(outcome.Issue, encoded)
	}
	return json.Marshal(outcome)
}

// The modes of search entries. Source: FHIR R4, value set search-entry-mode.
const (
	ModeMatch   = "match"
	ModeInclude = "include"
	ModeOutcome = "outcome"
)

// SearchEntry is one entry of a search result.
type SearchEntry struct {
	URL      string // absolute; "" for none
	Resource json.RawMessage
	Mode     string
}

// Link is a URL of a search result, with relation self or next.
type Link struct {
	Relation string `json:"relation"`
	URL      string `json:"url"`
}

type (
	searchMode struct {
		Mode string `json:"mode"`
	}
	entry struct {
		FullURL  string          `json:"fullUrl,omitempty"`
		Resource json.RawMessage `json:"resource"`
		Search   searchMode      `json:"search"`
	}
	bundle struct {
		ResourceType string  `json:"resourceType"`
		Type         string  `json:"type"`
		Total        *int    `json:"total,omitempty"`
		Link         []Link  `json:"link"`
		Entry        []entry `json:"entry,omitempty"`
	}
)

// Searchset returns one page of a search result. total is the number of all matches; nil if unknown.
func Searchset(total *int, links []Link, found []SearchEntry) Resource {
	b := bundle{ResourceType: "Bundle", Type: "searchset", Total: total, Link: links}
	for _, f := range found {
		b.Entry = append(b.Entry, entry{f.URL, f.Resource, searchMode{f.Mode}})
	}
	return Resource{content: b}
}
