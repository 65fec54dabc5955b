package alerts

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// boundField is one bound that can be set: where it is stored, what the change log calls it, and what it may be.
type boundField struct {
	group, field string
	log          string
	within       vitals.Range
	whole        bool
	inForce      func(Thresholds) *float64
}

// Name is the bound as request bodies name it.
func (f boundField) Name() string { return f.group + "." + f.field }

// What a change of weight and its window may be. Source: docs/decisions/alerts.md, "Extra threshold fields". A critical change
// is twice the threshold when nobody sets it, hence twice its range.
var (
	changeRange         = vitals.Range{Min: 0.2, Max: 50, Unit: vitals.UnitKg}
	criticalChangeRange = vitals.Range{Min: 0.2, Max: 100, Unit: vitals.UnitKg}
	windowRange         = vitals.Range{Min: 1, Max: 30, Unit: "days"}
)

// Groups are the threshold groups in the contract's order.
var Groups = []string{GroupBloodPressure, GroupPulse, GroupPulseOximetry, GroupBloodGlucose, GroupWeight}

// ascending lists the bounds of one parameter that are in order when each is greater than the one before.
type ascending []boundField

// parameters are all bounds that can be set, by the order they must keep.
// Source: docs/decisions/alerts.md, "Extra threshold fields" and "Change-log field names".
var parameters = []ascending{
	bounds(GroupBloodPressure, "systolic_", "systolic_", vitals.SystolicRange, func(t Thresholds) Limits { return t.Systolic }, sides...),
	bounds(GroupBloodPressure, "diastolic_", "diastolic_", vitals.DiastolicRange, func(t Thresholds) Limits { return t.Diastolic }, sides...),
	bounds(GroupPulse, "", "pulse_", vitals.PulseRange, func(t Thresholds) Limits { return t.Pulse }, sides...),
	bounds(GroupPulseOximetry, "", "spo2_", vitals.SpO2Range, func(t Thresholds) Limits { return t.SpO2 }, "critical_low", "low"),
	bounds(GroupBloodGlucose, "", "glucose_", vitals.GlucoseRange, func(t Thresholds) Limits { return t.Glucose }, sides...),
	{
		{GroupWeight, "change_threshold_kg", "weight_change_threshold_kg", changeRange, false, func(t Thresholds) *float64 { return t.Weight.Change }},
		{GroupWeight, "critical_change_kg", "weight_critical_change_kg", criticalChangeRange, false, func(t Thresholds) *float64 { return t.Weight.CriticalChange }},
	},
	{{GroupWeight, "change_window_days", "weight_change_window_days", windowRange, true, func(t Thresholds) *float64 { return new(float64(t.Weight.WindowDays)) }}},
}

var sides = []string{"critical_low", "low", "high", "critical"}

func bounds(group, prefix, logPrefix string, within vitals.Range, limits func(Thresholds) Limits, sides ...string) (list ascending) {
	for _, side := range sides {
		list = append(list, boundField{
			group, prefix + side, logPrefix + side, within, false,
			func(t Thresholds) *float64 { return limits(t).side(side) },
		})
	}
	return list
}

func (l Limits) side(name string) *float64 {
	return map[string]*float64{"critical_low": l.CriticalLow, "low": l.Low, "high": l.High, "critical": l.Critical}[name]
}

// boundFields are all bounds that can be set.
var boundFields = slices.Concat(func() (all [][]boundField) {
	for _, list := range parameters {
		all = append(all, list)
	}
	return all
}()...)

// ChangeLogFields are the names in the change log.
func ChangeLogFields() (names []string) {
	for _, f := range boundFields {
		names = append(names, f.log)
	}
	return names
}

// complaint says what is wrong with a value; "" for nothing.
func (f boundField) complaint(value float64) string {
	switch {
	case !f.within.Contains(value):
		return f.within.Message()
	case f.whole && value != float64(int(value)):
		return "A valid integer is required."
	}
	return ""
}

// Complaints says what is wrong with stored bounds, by name: unknown groups and fields, values out of range, and values
// that break the order critical_low < low < high < critical. Of two that contradict each other it names the one that
// blames prefers, else the upper.
func (b Bounds) Complaints(blames func(name string) bool) map[string]string {
	wrong := map[string]string{}
	known := map[string]bool{}
	for _, f := range boundFields {
		known[f.Name()] = true
		if value := b[f.group][f.field]; value != nil {
			if message := f.complaint(*value); message != "" {
				wrong[f.Name()] = message
			}
		}
	}
	for group, fields := range b {
		if !slices.Contains(Groups, group) {
			wrong[group] = "There is no such group."
			continue
		}
		for field := range fields {
			if name := group + "." + field; !known[name] {
				wrong[name] = "There is no such bound."
			}
		}
	}
	for _, list := range parameters {
		list.disorder(b, blames, wrong)
	}
	return wrong
}

func (list ascending) disorder(b Bounds, blames func(name string) bool, wrong map[string]string) {
	for i, lower := range list {
		for _, upper := range list[i+1:] {
			low, high := b[lower.group][lower.field], b[upper.group][upper.field]
			if low == nil || high == nil || *low < *high || wrong[lower.Name()] != "" || wrong[upper.Name()] != "" {
				continue
			}
			if blames(lower.Name()) && !blames(upper.Name()) {
				wrong[lower.Name()] = fmt.Sprintf("Must be less than %s (%s).", upper.field, number(*high))
			} else {
				wrong[upper.Name()] = fmt.Sprintf("Must be greater than %s (%s).", lower.field, number(*low))
			}
		}
	}
}

// clone copies bounds two levels deep; the values are never changed in place.
func (b Bounds) clone() Bounds {
	copied := Bounds{}
	for group, fields := range b {
		copied[group] = maps.Clone(fields)
	}
	return copied
}
