package triage

import (
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// CurrentFinding evaluates the latest values of an alert type under the thresholds in force, and returns when they were measured; found is
// false without values. If the patient typed them and the verified values are more severe, those count.
// Source: docs/decisions/alerts.md, "Reading origins".
func (p PatientSnapshot) CurrentFinding(alertType string) (finding alerts.Finding, measured time.Time, found bool) {
	finding, measured, found = p.findingFor(alertType, vitals.OriginPatient)
	if p.Latest.verified == nil {
		return finding, measured, found
	}
	verified, at, hasVerified := p.findingFor(alertType, vitals.OriginDevice)
	if hasVerified && (!found || verified.Breached() && !finding.Breached() || verified.Level == alerts.Critical && finding.Level != alerts.Critical) {
		return verified, at, true
	}
	return finding, measured, found
}

// CriticalSince returns when the latest values of an alert type were measured, if critical and after since: the latest of any origin, and
// the latest verified ones.
func (p PatientSnapshot) CriticalSince(alertType string, since time.Time) (measured []time.Time) {
	for _, raised := range []vitals.Origin{vitals.OriginPatient, vitals.OriginDevice} {
		finding, at, found := p.findingFor(alertType, raised)
		if found && finding.Level == alerts.Critical && !at.Before(since) && !slices.Contains(measured, at) {
			measured = append(measured, at)
		}
	}
	return measured
}

// findingFor evaluates the latest values that could resolve an alert raised by the given origin.
func (p PatientSnapshot) findingFor(alertType string, raised vitals.Origin) (finding alerts.Finding, measured time.Time, found bool) {
	reading := vitals.Reading{}
	for _, parameter := range vitals.ThresholdParameters {
		value, at := p.Latest.ResolvingValue(parameter, raised)
		if parameter.Group != alertType || value == nil || at.Before(reading.MeasuredAt) {
			continue
		}
		reading.Kind, reading.MeasuredAt = parameter.Kinds[0], at
		*reading.ValuePtr(parameter) = value
		reading.SetQualifier(vitals.MealContext, p.Latest.mealAt(parameter, at))
	}
	if reading.MeasuredAt.IsZero() {
		return finding, measured, false
	}
	for _, f := range alerts.Evaluate(reading, p.Thresholds, p.Baseline) {
		if f.Type == alertType {
			return f, reading.MeasuredAt, true
		}
	}
	return finding, measured, false
}
