package fhir

import (
	"cmp"
	"encoding/json"
)

// Issue is one thing that went wrong: its type from FHIR's own list, our code for it, and words for people without health information.
type Issue struct {
	Type, Code, Text string
	// Severity is "error" when empty.
	Severity string
	// Parameter is what in the request it is about; "" for the request as a whole.
	Parameter string
}

// OperationOutcome writes what went wrong as a resource. Source: FHIR R4, operationoutcome.html.
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
		said := issue{Severity: cmp.Or(i.Severity, "error"), Code: i.Type}
		if i.Parameter != "" {
			said.Diagnostics, said.Expression = i.Text, []string{"http." + i.Parameter}
		}
		if i.Code != "" || i.Text != "" {
			said.Details = &details{Text: i.Text}
			if i.Code != "" {
				said.Details.Coding = []coding{{i.Code}}
			}
		}
		outcome.Issue = append(outcome.Issue, said)
	}
	return json.Marshal(outcome)
}
