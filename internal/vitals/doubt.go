package vitals

import (
	"math"
	"slices"
	"time"
)

// Doubt is the rule of a parameter that whoever stands on the device sends in the patient's name: a value far from the patient's usual
// ones is doubted until a second one like it, or a person, bears it out. Only what is watched for changes can have it: there earlier
// values are at hand. Source: docs/decisions/observations.md, "Suspect reading".
type Doubt struct {
	// Question is what the care team is asked.
	Question string
	// Days is how far back the usual values reach; Among is how many of the latest count, and AtLeast how many there must be.
	Days, Among, AtLeast int
	// Percent and Amount, of which the larger holds, say how close together two values of one person lie, and Within when.
	Percent, Amount float64
	Within          time.Duration
}

// Close reports whether another value lies so close to one that both may be the same person's.
func (d *Doubt) Close(one, other float64) bool {
	return !further(one, other, max(one*d.Percent/100, d.Amount))
}

// Mistook is the other unit in which a value would not be far from the usual one, and what it is then; nil where there is none.
func (p *Parameter) Mistook(value, usual float64, far Distance) (unit *Unit, meant float64) {
	for i := range p.Units {
		if meant = p.Units[i].Convert(value); !far.Exceeded(meant, usual) {
			return &p.Units[i], meant
		}
	}
	return nil, 0
}

// Distance is how far a value may lie from the usual one: the larger of a share in percent and an amount. Both zero is any distance.
type Distance struct{ Percent, Amount float64 }

// Of is the distance from a usual value.
func (d Distance) Of(usual float64) float64 { return max(usual*d.Percent/100, d.Amount) }

// Exceeded reports whether the value lies further from the usual one.
func (d Distance) Exceeded(value, usual float64) bool {
	return d != Distance{} && further(usual, value, d.Of(usual))
}

// further takes the binary dust off the difference, so that 88 - 78 is 10.
func further(one, other, distance float64) bool { return math.Abs(other-one) > distance+1e-9 }

// Usual is the median of values; of an even number the mean of the two in the middle.
func Usual(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
