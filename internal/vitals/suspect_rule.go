package vitals

import (
	"math"
	"slices"
	"time"
)

// SuspectRule finds values that another person on the same device may have sent: a value far from the patient's usual ones is suspect until
// a second similar one, or a person, confirms it. Only parameters that are watched for changes can have it, because their earlier values
// are loaded. Source: docs/decisions/observations.md, "Suspect reading".
type SuspectRule struct {
	// Prompt is the question to the care team.
	Prompt string
	// Days is the span of the usual values; Among is how many of the latest count, and AtLeast the minimum.
	Days, Among, AtLeast int
	// Percent and Amount are the maximum distance of two values of one person, the larger of both, and Within their maximum interval.
	Percent, Amount float64
	Within          time.Duration
}

// IsClose reports whether both values may be the same person's.
func (r *SuspectRule) IsClose(one, other float64) bool {
	return !isFurther(one, other, max(one*r.Percent/100, r.Amount))
}

// MistakenUnit returns the other unit in which a value would be near the usual one, and the converted value; nil for none.
func (p *Parameter) MistakenUnit(value, usual float64, far Tolerance) (unit *Unit, converted float64) {
	for i := range p.Units {
		if converted = p.Units[i].Convert(value); !far.IsExceeded(converted, usual) {
			return &p.Units[i], converted
		}
	}
	return nil, 0
}

// Tolerance is the permitted distance from the usual value: the larger of a percentage and an amount. Both zero is unlimited.
type Tolerance struct{ Percent, Amount float64 }

// Allowed returns the distance for a usual value.
func (d Tolerance) Allowed(usual float64) float64 { return max(usual*d.Percent/100, d.Amount) }

// IsExceeded reports whether the value is further from the usual one.
func (d Tolerance) IsExceeded(value, usual float64) bool {
	return d != Tolerance{} && isFurther(usual, value, d.Allowed(usual))
}

// isFurther tolerates binary rounding, so that 88 - 78 is 10.
func isFurther(one, other, distance float64) bool { return math.Abs(other-one) > distance+1e-9 }

// Median returns the median; of an even number of values the mean of the middle two.
func Median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
