package alerts

import (
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// SuspectValue is a value that may not be the patient's, and why.
type SuspectValue struct {
	Parameter *vitals.Parameter
	// Usual is the median of the Count values before it, and Bound the last value that would not be suspect.
	Value, Usual, Bound float64
	Count               int
	// Unit is the one in which it would be a usual value, and InUnit that value; nil if there is none.
	Unit   *vitals.Unit
	InUnit float64
}

// Finding returns the warning that requests confirmation of a suspect value, which may be late. Source: docs/decisions/observations.md,
// "Suspect reading".
func (v SuspectValue) Finding(measuredAt time.Time, late bool) Finding {
	unit := v.Parameter.Range.Unit
	finding := Finding{
		Type: TypeSuspectReading, Level: Warning, Parameter: v.Parameter.Name, Value: v.Value, Threshold: vitals.RoundHundredths(v.Bound),
		Message: fmt.Sprintf("%s %s %s %s is far from the usual %s %s, the median of the last %d. It does not count until a clinician confirms it.",
			v.Parameter.Suspect.Prompt, v.Parameter.Label, vitals.FormatNumber(v.Value), unit, vitals.FormatNumber(vitals.RoundHundredths(v.Usual)), unit, v.Count),
	}
	if v.Bound == 0 { // raised later, when the usual value has changed
		finding.Message = fmt.Sprintf("%s %s %s %s was suspect when it arrived. It does not count until a clinician confirms it.",
			v.Parameter.Suspect.Prompt, v.Parameter.Label, vitals.FormatNumber(v.Value), unit)
	}
	if v.Unit != nil {
		finding.Message += fmt.Sprintf(" In %s it would be %s %s.", v.Unit.Name, vitals.FormatNumber(v.InUnit), unit)
	}
	if late {
		finding.AddMeasuredAt(measuredAt)
	}
	return finding
}
