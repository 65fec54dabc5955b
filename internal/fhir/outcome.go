package fhir

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/phi"
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
