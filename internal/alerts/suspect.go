package alerts

import (
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Doubt is why a value may not be the patient's.
type Doubt struct {
	Of *vitals.Parameter
	// Value is the one in doubt. Usual is the median of so many before it, and Bound the last value that would not be doubted.
	Value, Usual, Bound float64
	Among               int
	// Unit is the one in which it would be a usual value, and Meant that value; nil where there is none.
	Unit  *vitals.Unit
	Meant float64
}

// Ask is the question about a value in doubt, which may come late: who measured it. Source: docs/decisions/observations.md, "Suspect reading".
func (d Doubt) Ask(measuredAt time.Time, late bool) Finding {
	unit := d.Of.Range.Unit
	finding := Finding{
		Type: TypeSuspectReading, Level: Warning, Parameter: d.Of.Name, Value: d.Value, Threshold: cents(d.Bound),
		Message: fmt.Sprintf("%s %s %s %s is far from the usual %s %s, the median of the last %d. It counts for nothing until somebody confirms it.",
			d.Of.Doubt.Question, d.Of.Label, number(d.Value), unit, number(cents(d.Usual)), unit, d.Among),
	}
	if d.Bound == 0 { // asked later, when what was usual has changed
		finding.Message = fmt.Sprintf("%s %s %s %s was in doubt when it came. It counts for nothing until somebody confirms it.",
			d.Of.Doubt.Question, d.Of.Label, number(d.Value), unit)
	}
	if d.Unit != nil {
		finding.Message += fmt.Sprintf(" In %s it would be %s %s.", d.Unit.Name, number(d.Meant), unit)
	}
	if late {
		finding.Date(measuredAt)
	}
	return finding
}
