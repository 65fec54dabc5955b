package triage

import (
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// OpenBySystem is the escalation that the system has open for the patient.
func (p Picture) OpenBySystem() (open escalations.Active, found bool) {
	i := slices.IndexFunc(p.Escalations, func(e escalations.Active) bool { return e.BySystem })
	if i < 0 {
		return open, false
	}
	return p.Escalations[i], true
}

// Standing judges the latest values that a type of alerts is about by the thresholds in force, and says when they were measured; it has
// nothing to say where there are none. Where the patient typed them, and those that are vouched for are graver, it is those that stand.
// Source: docs/decisions/alerts.md, "Reading origins".
func (p Picture) Standing(alertType string) (finding alerts.Finding, measured time.Time, known bool) {
	finding, measured, known = p.standing(alertType, vitals.OriginPatient)
	if p.Latest.vouched == nil {
		return finding, measured, known
	}
	vouched, at, there := p.standing(alertType, vitals.OriginDevice)
	if there && (!known || vouched.Breached() && !finding.Breached() || vouched.Level == alerts.Critical && finding.Level != alerts.Critical) {
		return vouched, at, true
	}
	return finding, measured, known
}

// CriticalSince says when the latest values that a type of alerts is about were measured, where that is after a time and they are critical by
// the thresholds in force: those of whoever measured last, and where the patient typed them those that are vouched for.
func (p Picture) CriticalSince(alertType string, since time.Time) (measured []time.Time) {
	for _, raised := range []vitals.Origin{vitals.OriginPatient, vitals.OriginDevice} {
		finding, at, known := p.standing(alertType, raised)
		if known && finding.Level == alerts.Critical && !at.Before(since) && !slices.Contains(measured, at) {
			measured = append(measured, at)
		}
	}
	return measured
}

// standing judges the latest values that would settle what one of an origin raised.
func (p Picture) standing(alertType string, raised vitals.Origin) (finding alerts.Finding, measured time.Time, known bool) {
	reading := vitals.Reading{}
	for _, parameter := range vitals.Watched {
		value, at := p.Latest.Settling(parameter, raised)
		if parameter.Group != alertType || value == nil || at.Before(reading.MeasuredAt) {
			continue
		}
		reading.Kind, reading.MeasuredAt = parameter.Kinds[0], at
		*reading.Slot(parameter) = value
	}
	if reading.MeasuredAt.IsZero() {
		return finding, measured, false
	}
	for _, f := range alerts.Evaluate(reading, p.Thresholds, p.Weighings) {
		if f.Type == alertType {
			return f, reading.MeasuredAt, true
		}
	}
	return finding, measured, false
}
