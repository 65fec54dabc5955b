package emr

import "math"

// resembles reports a result that may be the observation although it does not match: EMRs store times to the minute, round values, convert units, and
// split panels. It has a code in common, and no value that is plainly another.
func (s sought) resembles(r foundObservation) bool {
	if r.hasVigilIdentifier() || s.isOutside(r) {
		return false
	}
	hasCommon := false
	for _, own := range s.own.parts() {
		for _, found := range r.parts() {
			if !own.Code.overlaps(found.Code) {
				continue
			}
			if own.differsFrom(found) {
				return false
			}
			hasCommon = true
		}
	}
	return hasCommon || len(r.Code.Coding) == 0
}

// parts are the observation's own code and value, and those of its components.
func (o foundObservation) parts() []codedValue {
	return append([]codedValue{o.codedValue}, o.Component...)
}

// differsFrom reports whether an EMR's value is plainly another than the own. One in another unit or form may be the same.
func (v codedValue) differsFrom(found codedValue) bool {
	switch {
	case v.ValueQuantity != nil && found.ValueQuantity != nil:
		own, other := v.ValueQuantity, found.ValueQuantity
		isSameUnit := own.Code == other.Code && own.Unit == other.Unit
		return isSameUnit && !isRounded(own.Value, other.Value)
	case v.ValueBoolean != nil && found.ValueBoolean != nil:
		return *v.ValueBoolean != *found.ValueBoolean
	case v.ValueInteger != nil && found.ValueInteger != nil:
		return *v.ValueInteger != *found.ValueInteger
	}
	return false
}

// isRounded reports whether a stored number is a value with as many or fewer decimals, rounded or cut.
func isRounded(value, stored float64) bool {
	for _, scale := range []float64{1, 10, 100, 1000} {
		scaled := value * scale
		for _, of := range []float64{math.Round(scaled), math.Trunc(scaled)} {
			if math.Abs(of/scale-stored) < 1e-6 {
				return true
			}
		}
	}
	return math.Abs(value-stored) < 1e-6
}
