package triage

import (
	"encoding/json"
	"time"
)

// FactorProposed explains that a template with stricter bounds is proposed. It has no points.
const FactorProposed = "proposed_templates"

// decideWithin is how long a clinician has for the decision about a proposed template with stricter bounds.
// Source: docs/decisions/alerts.md, "Proposed templates".
const decideWithin = 24 * time.Hour

// DecideBy returns the deadline of the decision about templates with bounds in force since a time; zero for none.
func DecideBy(since time.Time) time.Time {
	if since.IsZero() {
		return since
	}
	return since.Add(decideWithin)
}

// UndecidedSince returns the latest start of a decision that is overdue.
func UndecidedSince(now time.Time) time.Time { return now.Add(-decideWithin) }

// provisional is the stored form of the provisional bounds.
func (p PatientSnapshot) provisional() string {
	text, err := json.Marshal(p.Thresholds.Provisional())
	if err != nil {
		return "" // cannot happen: numbers and texts
	}
	return string(text)
}
