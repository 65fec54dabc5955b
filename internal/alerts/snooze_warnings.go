package alerts

import (
	"math"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// warningValue is a value at or beyond a warning bound and not a critical one. step is how much worse than the baseline breaks a snooze, and
// midpoint, nil without a critical bound, lies between the two bounds.
type warningValue struct {
	WorstValue
	bound, step float64
	midpoint    *float64
}

// warningValues returns the values that a warning is about.
func warningValues(f Finding, r vitals.Reading, t Thresholds) (list []warningValue) {
	for _, group := range r.Kind.Definition().Groups {
		if group[0].Group != f.Type {
			continue
		}
		if change := group[0]; change.Change != nil {
			return []warningValue{warningChange(f, t.Change(change).CriticalChange)}
		}
		for _, p := range group {
			if value := r.Value(p); value != nil {
				list = append(list, t.warningValue(p, *value, r.Qualifier(vitals.MealContext))...)
			}
		}
	}
	return list
}

// warningValue returns the value, with its meal marker, if it is at or beyond a warning bound only, otherwise nothing.
func (t Thresholds) warningValue(p *vitals.Parameter, value float64, meal string) []warningValue {
	limits := t.Limits(p).ForMeal(meal)
	if len(t.criticalValue(p, value)) > 0 {
		return nil
	}
	step := warningRangeShare * (p.Range.Max - p.Range.Min)
	if p.Range.Unit == vitals.UnitMmHg {
		step = warningPressureStep
	}
	switch {
	case limits.High != nil && value >= *limits.High:
		return []warningValue{{WorstValue{Parameter: p.Name, High: true, Value: value}, *limits.High, step, midpoint(*limits.High, limits.Critical)}}
	case limits.Low != nil && value <= *limits.Low:
		return []warningValue{{WorstValue{Parameter: p.Name, Value: value}, *limits.Low, step, midpoint(*limits.Low, limits.CriticalLow)}}
	}
	return nil
}

// warningChange is a change that raised a warning. Its range ends at [changeRangeFactor] times the critical change, or twice its own bound
// where there is none; only a gain can be critical.
func warningChange(f Finding, critical *float64) warningValue {
	bound := math.Copysign(f.Threshold, f.Value)
	value := warningValue{WorstValue: WorstValue{Parameter: f.Parameter, High: f.Value >= 0, Value: f.Value}, bound: bound}
	end := 2 * f.Threshold
	if critical != nil {
		end = *critical
		if value.High {
			value.midpoint = midpoint(bound, critical)
		}
	}
	value.step = warningRangeShare * changeRangeFactor * end
	return value
}

func midpoint(warning float64, critical *float64) *float64 {
	if critical == nil {
		return nil
	}
	return new((warning + *critical) / 2)
}

// breaks reports whether the value is worse than the worst one of the baseline by a step, or at or beyond the midpoint when that one is not.
// Without a value of its parameter and direction the warning bound is the reference.
func (w warningValue) breaks(baseline []WorstValue) bool {
	worse := func(a, b float64) float64 {
		if !w.High {
			a, b = b, a
		}
		return vitals.RoundHundredths(a - b)
	}
	reference := w.bound
	for _, k := range baseline {
		if k.Parameter == w.Parameter && k.High == w.High && worse(k.Value, reference) > 0 {
			reference = k.Value
		}
	}
	if worse(w.Value, reference) >= vitals.RoundHundredths(w.step) {
		return true
	}
	return w.midpoint != nil && worse(w.Value, *w.midpoint) >= 0 && worse(reference, *w.midpoint) < 0
}
