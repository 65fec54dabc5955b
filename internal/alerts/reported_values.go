package alerts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// ReportedValue is a value behind an alert, in the unit of its parameter.
type ReportedValue struct {
	Parameter *vitals.Parameter
	Value     float64
}

// ReadingValues returns all values of a reading that an alert of this type covers: the alert itself names only the first of equally severe
// ones, which need not be the most dangerous. Parameters watched for changes are omitted; there the alert's own value is the change.
func ReadingValues(r *vitals.Reading, alertType string) (list []ReportedValue) {
	for _, p := range vitals.ThresholdParameters {
		if p.Group != alertType || p.Change != nil {
			continue
		}
		if value := r.Value(p); value != nil {
			list = append(list, ReportedValue{p, *value})
		}
	}
	return list
}

// ParseReported reads the reported values of a quarantined measurement, JSON by field, in the order of the parameters. Fields that are not
// numbers of a parameter with bounds are ignored.
func ParseReported(stored string) (list []ReportedValue, err error) {
	if stored == "" || stored == "null" {
		return nil, nil
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(stored), &fields); err != nil {
		return nil, fmt.Errorf("read reported values: %w", err)
	}
	for _, p := range vitals.ThresholdParameters {
		if p.Change != nil {
			continue
		}
		if value, notified := reportedValue(p, fields); notified {
			list = append(list, ReportedValue{p, value})
		}
	}
	return list, nil
}

// IsDangerous reports whether a value makes an implausible measurement alarming: it is outside the accepted range, or at or beyond a
// critical bound.
func (t Thresholds) IsDangerous(p *vitals.Parameter, value float64) bool {
	level, _, _ := breach(p, value, "", t.Limits(p))
	return level == Critical || len(p.OutOfRange(value)) > 0
}

// DangerousTypes returns the alert types of the alarming values of a quarantined measurement: JSON by column, and the parameter named in its
// alert.
func (t Thresholds) DangerousTypes(stored, named string) (types []string, err error) {
	var fields map[string]float64
	if err := json.Unmarshal([]byte(stored), &fields); err != nil {
		return nil, fmt.Errorf("read reported values: %w", err)
	}
	for _, p := range vitals.ThresholdParameters {
		value, notified := fields[p.Column]
		if notified && (p.Name == named || t.IsDangerous(p, value)) && !slices.Contains(types, p.Group) {
			types = append(types, p.Group)
		}
	}
	return types, nil
}

// reportedValue finds a parameter's value under its own name or in another of its units.
func reportedValue(p *vitals.Parameter, fields map[string]any) (value float64, notified bool) {
	for _, name := range []string{p.Column, p.Name} {
		if value, notified = fields[name].(float64); notified {
			return value, true
		}
	}
	for _, unit := range p.Units {
		if value, notified = fields[unit.Field].(float64); notified {
			return unit.Convert(value), true
		}
	}
	return 0, false
}

// Values returns what the alert is about: all reported values, or only its worst value if the others are unavailable. For a parameter
// watched for changes it is the change.
func (o OpenAlert) Values() []ReportedValue {
	if o.Reported != nil || !FromReading(o.Type) {
		return o.Reported
	}
	for _, p := range vitals.ThresholdParameters {
		if p.Group == o.Type && (p.Change != nil || p.Name == o.Parameter) {
			return []ReportedValue{{p, o.Value}}
		}
	}
	return nil
}

// WithOwnChange completes the reported values of an alert about a quarantined measurement with the change that the alert is about: a weight
// alone is not critical, its gain is. Source: docs/decisions/triage.md, "Critical bands".
func (o OpenAlert) WithOwnChange(reported []ReportedValue) []ReportedValue {
	for _, p := range vitals.ChangeParameters {
		if strings.HasPrefix(o.Parameter, p.Name+"_") {
			return append(reported, ReportedValue{p, o.Value})
		}
	}
	return reported
}
