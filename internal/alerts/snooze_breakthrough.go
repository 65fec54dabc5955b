package alerts

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	// breakthroughShare is how much worse than the baseline a value must be to alert in spite of a snooze, as a share of the way from the
	// critical bound to the end of the measurable range.
	// Source: docs/decisions/alerts.md, "Breaking through a snooze".
	breakthroughShare = 0.1
	// A warning breaks a snooze if it is worse than the baseline by this pressure, or by a share of the range of another parameter.
	warningPressureStep, warningRangeShare = 20, 0.1
	// changeRangeFactor times the critical change is the end of the range of a change, which has no range of its own.
	changeRangeFactor = 3

	// A snooze's baseline covers the alerts that are open, for a week, and those acknowledged within a day.
	baselineOpen, baselineAcknowledged = 7 * 24 * time.Hour, 24 * time.Hour
)

// WorstValue is the worst value of a parameter in one direction: of the alerts in a snooze's baseline, or of those last notified.
type WorstValue struct {
	Parameter string  `json:"parameter"`
	High      bool    `json:"high"`
	Value     float64 `json:"value"`
	// Warning: beyond the warning bound only, and not the value of an alert. Only warnings are compared with it.
	Warning bool `json:"warning,omitempty"`
}

// ParseWorstValues reads a stored list; it returns nil if the text is empty or damaged.
func ParseWorstValues(stored string) (found []WorstValue) {
	if stored == "" || json.Unmarshal([]byte(stored), &found) != nil {
		return nil
	}
	return found
}

// SuppressedBy reports whether a snooze suppresses the notification of a finding, and whether the finding breaks through a snooze.
func SuppressedBy(snoozes []Snooze, f Finding, r vitals.Reading, t Thresholds, at time.Time) (quiet, breaks bool) {
	for _, s := range snoozes {
		if !s.Covers(f.Type, f.Level, at) {
			continue
		}
		if s.isBrokenBy(f, r, t) {
			breaks = true
		} else {
			quiet = true
		}
	}
	return quiet && !breaks, breaks
}

// criticalValue is a value at or beyond a critical bound, with the end of the range on that side.
type criticalValue struct {
	WorstValue
	bound, rangeEnd float64
}

// criticalValues returns the critical values that a finding is about.
func criticalValues(f Finding, r vitals.Reading, t Thresholds) (list []criticalValue) {
	for _, group := range r.Kind.Definition().Groups {
		if group[0].Group != f.Type {
			continue
		}
		if group[0].Change != nil {
			return []criticalValue{criticalChange(f.Parameter, f.Value, f.Threshold)}
		}
		for _, p := range group {
			if value := r.Value(p); value != nil {
				list = append(list, t.criticalValue(p, *value)...)
			}
		}
	}
	return list
}

// criticalChange is a change at or beyond the critical one.
func criticalChange(parameter string, value, bound float64) criticalValue {
	bound = math.Copysign(bound, value)
	return criticalValue{WorstValue{Parameter: parameter, High: value >= 0, Value: value}, bound, changeRangeFactor * bound}
}

// criticalValue returns the value if it is at or beyond a critical bound, otherwise nothing.
func (t Thresholds) criticalValue(p *vitals.Parameter, value float64) []criticalValue {
	switch side, bound := t.Limits(p).Breached(value); side {
	case vitals.Critical:
		return []criticalValue{{WorstValue{Parameter: p.Name, High: true, Value: value}, bound, p.Range.Max}}
	case vitals.CriticalLow:
		return []criticalValue{{WorstValue{Parameter: p.Name, Value: value}, bound, p.Range.Min}}
	}
	return nil
}

// isBrokenBy reports whether a finding exceeds the snooze's baseline: for a critical one, worse, in another parameter or in the other
// direction. With an empty baseline the bound is the reference, because the clinician who snoozed critical alerts expected some.
func (s Snooze) isBrokenBy(f Finding, r vitals.Reading, t Thresholds) bool {
	if f.Level != Critical {
		return slices.ContainsFunc(warningValues(f, r, t), func(w warningValue) bool { return w.breaks(s.Baseline) })
	}
	return exceedsReference(criticalValues(f, r, t), s.Baseline, len(s.Baseline) == 0)
}

// exceedsReference reports whether any value exceeds the reference values. expected means that a parameter without a reference is compared with its
// bound; otherwise it counts as worse.
func exceedsReference(found []criticalValue, all []WorstValue, expected bool) bool {
	for _, e := range found {
		reference, ok := e.bound, expected
		for _, k := range all {
			if k.Parameter == e.Parameter && k.High == e.High && !k.Warning {
				reference, ok = k.Value, true
			}
		}
		worse := e.Value - reference
		if !e.High {
			worse = -worse
		}
		if !ok || worse > 0 && vitals.RoundHundredths(worse) >= vitals.RoundHundredths(breakthroughShare*math.Abs(e.rangeEnd-e.bound)) {
			return true
		}
	}
	return false
}

// snoozeBaseline returns the worst values of the open and recently acknowledged alerts of a type, and the other critical values of their
// readings.
func snoozeBaseline(tx core.App, patientID, alertType string, now time.Time) (found []WorstValue, err error) {
	covered, err := collections.BaselineAlerts(tx, patientID, alertType, now.Add(-baselineOpen), now.Add(-baselineAcknowledged))
	if err != nil {
		return nil, err
	}
	return worstValuesOf(tx, patientID, alertType, covered)
}

// worstValuesOf returns the worst values of alerts and of the critical values in their readings.
func worstValuesOf(tx core.App, patientID, alertType string, covered []collections.BaselineAlert) (found []WorstValue, err error) {
	if len(covered) == 0 {
		return nil, nil
	}
	c, err := Configured(tx, patientID)
	if err != nil {
		return nil, err
	}
	for _, alert := range covered {
		found = addWorst(found, WorstValue{Parameter: alert.Parameter, High: c.InForce.isHigh(alert), Value: *alert.Value})
		record, err := collections.FindObservation(tx, alert.Observation)
		if collections.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range vitals.ThresholdParameters {
			value := collections.Optional(record, p.Column)
			if p.Group != alertType || p.Change != nil || value == nil {
				continue
			}
			for _, critical := range c.InForce.criticalValue(p, *value) {
				found = addWorst(found, critical.WorstValue)
			}
			for _, warning := range c.InForce.warningValue(p, *value, record.GetString(vitals.MealContext.Name)) {
				warning.Warning = true
				found = addWorst(found, warning.WorstValue)
			}
		}
	}
	return found, nil
}

// addWorst merges a value into the worst ones.
func addWorst(found []WorstValue, more WorstValue) []WorstValue {
	for i, k := range found {
		if k.Parameter != more.Parameter || k.High != more.High || k.Warning != more.Warning {
			continue
		}
		if more.High == (more.Value > k.Value) {
			found[i].Value = more.Value
		}
		return found
	}
	return append(found, more)
}

// isHigh reports whether an alert is about a value that is too high, or about a gain. A value equal to its threshold is classified by the
// bound that the threshold equals.
func (t Thresholds) isHigh(alert collections.BaselineAlert) bool {
	for _, p := range vitals.ThresholdParameters {
		if p.Name != alert.Parameter || p.Change != nil || alert.Threshold == nil {
			continue
		}
		if *alert.Value != *alert.Threshold {
			return *alert.Value > *alert.Threshold
		}
		limits := t.Limits(p)
		return !equalBounds(limits.CriticalLow, alert.Threshold) && !equalBounds(limits.Low, alert.Threshold)
	}
	return *alert.Value >= 0
}

// IsChangeWorse is [IsWorse] for a critical change of a quarantined measurement.
func IsChangeWorse(f Finding, notified []WorstValue) bool {
	return exceedsReference([]criticalValue{criticalChange(f.Parameter, f.Value, f.Threshold)}, notified, false)
}

// IsWorse reports whether a critical finding exceeds the values last notified, by the rule that breaks a snooze: worse by a tenth of the
// way to the end of the range, in another parameter, or in the other direction. Source: docs/decisions/alerts.md, "Worse than last
// notified".
func IsWorse(f Finding, r vitals.Reading, t Thresholds, notified []WorstValue) bool {
	return exceedsReference(criticalValues(f, r, t), notified, false)
}

// IsReportedWorse is [IsWorse] for values of a quarantined measurement.
func IsReportedWorse(values []ReportedValue, t Thresholds, notified []WorstValue) bool {
	var found []criticalValue
	for _, v := range values {
		found = append(found, t.criticalValue(v.Parameter, v.Value)...)
	}
	return exceedsReference(found, notified, false)
}

// MayBeCritical reports whether a value of a reading is at or beyond a critical bound, or is watched for changes.
func MayBeCritical(r vitals.Reading, t Thresholds) bool {
	for _, group := range r.Kind.Definition().Groups {
		for _, p := range group {
			if value := r.Value(p); value != nil && (p.Change != nil || len(t.criticalValue(p, *value)) > 0) {
				return true
			}
		}
	}
	return false
}

// CriticalValues returns the critical values that an alert is about, by the bounds in force.
func (o OpenAlert) CriticalValues(t Thresholds) (found []WorstValue) {
	for _, v := range o.Values() {
		if v.Parameter.Change != nil {
			found = append(found, WorstValue{Parameter: o.Parameter, High: v.Value >= 0, Value: v.Value})
			continue
		}
		for _, e := range t.criticalValue(v.Parameter, v.Value) {
			found = append(found, e.WorstValue)
		}
	}
	return found
}
