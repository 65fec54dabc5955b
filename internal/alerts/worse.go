package alerts

import "github.com/vigilhealth/vigil/internal/vitals"

// Worse reports whether a critical finding is more than what people have heard of, as a snooze would be broken: worse by a tenth of the way
// to the end of what can be measured, in another parameter, or in the other direction.
// Source: docs/decisions/alerts.md, "Worse than last notified".
func Worse(f Finding, r vitals.Reading, t Thresholds, told []Known) bool {
	return worse(extremes(f, r, t), told, false)
}

// WorseReported is [Worse] of values that are no reading yet.
func WorseReported(values []Reported, t Thresholds, told []Known) bool {
	var found []extreme
	for _, v := range values {
		found = append(found, t.extreme(v.Of, v.Value)...)
	}
	return worse(found, told, false)
}

// MayBeCritical reports whether a value of a reading lies at or beyond a critical bound, or is one whose changes are watched.
func MayBeCritical(r vitals.Reading, t Thresholds) bool {
	for _, group := range r.Kind.Definition().Groups {
		for _, p := range group {
			value := r.Value(p)
			if value == nil {
				continue
			}
			if limits := t.Of(p); p.Change != nil || limits.Critical != nil && *value >= *limits.Critical ||
				limits.CriticalLow != nil && *value <= *limits.CriticalLow {
				return true
			}
		}
	}
	return false
}

// Extremes are the critical values that an alert is about, by the bounds in force.
func (o Open) Extremes(t Thresholds) (known []Known) {
	for _, v := range o.Values() {
		if v.Of.Change != nil {
			known = append(known, Known{o.Parameter, v.Value >= 0, v.Value})
			continue
		}
		for _, e := range t.extreme(v.Of, v.Value) {
			known = append(known, e.Known)
		}
	}
	return known
}
