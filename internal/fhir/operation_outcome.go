package fhir

import (
	"cmp"
	"encoding/json"
)

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
