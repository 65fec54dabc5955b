// Package alerts knows a patient's thresholds and what a reading means against them: which bound is met, how
// severe that is, and when later readings show that it is over. It decides with plain values; storing is done by
// whoever applies the decision, in their transaction. It knows nothing of requests, pushes or the EMR.
package alerts

import (
	"encoding/json"
	"fmt"
)

// The threshold groups of the contract.
const (
	GroupBloodPressure  = "blood_pressure"
	GroupPulse          = "pulse"
	GroupPulseOximetry  = "pulse_oximetry"
	GroupBloodGlucose   = "blood_glucose"
	GroupWeight         = "weight"
	defaultWeightWindow = 7 // days
)

// Bounds are thresholds as they are stored: group, field, value. A missing field is inherited from the practice's
// defaults, a null field removes that bound, and a null group raises no alerts at all.
// Source: docs/decisions/alerts.md, "No thresholds, no alert".
type Bounds map[string]map[string]*float64

// ParseBounds reads stored bounds; nothing stored is no bounds.
func ParseBounds(stored string) (Bounds, error) {
	bounds := Bounds{}
	if stored == "" || stored == "null" {
		return bounds, nil
	}
	if err := json.Unmarshal([]byte(stored), &bounds); err != nil {
		return nil, fmt.Errorf("read thresholds: %w", err)
	}
	return bounds, nil
}

// Limits are the bounds in force for one parameter; nil where there is none.
type Limits struct{ CriticalLow, Low, High, Critical *float64 }

// WeightRule says which change of weight, in kg, within how many days deserves attention; nil where there is no bound.
type WeightRule struct {
	Change, CriticalChange *float64
	WindowDays             int
}

// Thresholds are the bounds in force for one patient.
type Thresholds struct {
	Systolic, Diastolic, Pulse, SpO2, Glucose Limits
	Weight                                    WeightRule
}

// InForce combines a patient's own bounds with the practice's defaults. An inherited default that would break the
// order critical_low < low < high < critical is not applied. Source: docs/decisions/alerts.md, "Extra threshold fields".
func InForce(defaults, own Bounds) Thresholds {
	limits := func(group, prefix string) Limits {
		return ordered(
			pick(defaults, own, group, prefix+"critical_low"), pick(defaults, own, group, prefix+"low"),
			pick(defaults, own, group, prefix+"high"), pick(defaults, own, group, prefix+"critical"))
	}
	return Thresholds{
		Systolic:  limits(GroupBloodPressure, "systolic_"),
		Diastolic: limits(GroupBloodPressure, "diastolic_"),
		Pulse:     limits(GroupPulse, ""),
		SpO2:      limits(GroupPulseOximetry, ""),
		Glucose:   limits(GroupBloodGlucose, ""),
		Weight:    weightRule(defaults, own),
	}
}

// bound is one value in force and whether the patient inherited it.
type bound struct {
	value     *float64
	inherited bool
	explicit  bool // set for the patient, perhaps to nothing
}

func pick(defaults, own Bounds, group, field string) bound {
	fields, configured := own[group]
	if configured && fields == nil {
		return bound{explicit: true} // the group is switched off
	}
	if value, set := fields[field]; set {
		return bound{value: value, explicit: true}
	}
	return bound{value: defaults[group][field], inherited: true}
}

// ordered drops every inherited bound that contradicts one set for the patient.
func ordered(ascending ...bound) Limits {
	fits := func(i int) *float64 {
		candidate := ascending[i]
		if candidate.value == nil || !candidate.inherited {
			return candidate.value
		}
		for j, other := range ascending {
			if other.value == nil || other.inherited {
				continue
			}
			if (j < i && *other.value >= *candidate.value) || (j > i && *other.value <= *candidate.value) {
				return nil
			}
		}
		return candidate.value
	}
	return Limits{CriticalLow: fits(0), Low: fits(1), High: fits(2), Critical: fits(3)}
}

// weightRule: a critical change that nobody set is twice the change in force.
func weightRule(defaults, own Bounds) WeightRule {
	rule := WeightRule{WindowDays: defaultWeightWindow, Change: pick(defaults, own, GroupWeight, "change_threshold_kg").value}
	if window := pick(defaults, own, GroupWeight, "change_window_days").value; window != nil {
		rule.WindowDays = int(*window)
	}
	critical := pick(defaults, own, GroupWeight, "critical_change_kg")
	rule.CriticalChange = critical.value
	inheritedBreaks := critical.inherited && critical.value != nil && rule.Change != nil && *critical.value <= *rule.Change
	if !critical.explicit && (critical.value == nil || inheritedBreaks) && rule.Change != nil {
		twice := 2 * *rule.Change
		rule.CriticalChange = &twice
	}
	return rule
}
