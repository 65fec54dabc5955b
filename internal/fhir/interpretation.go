package fhir

import (
	"maps"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// referenceRange is the range of usual values, with the bounds in words because FHIR's ends belong to the range and a bound's own value raises
// an alert.
type referenceRange struct {
	Low  *quantity `json:"low,omitempty"`
	High *quantity `json:"high,omitempty"`
	Type *concept  `json:"type,omitempty"`
	Text string    `json:"text,omitempty"`
}

const interpretationSystem = "http://terminology.hl7.org/CodeSystem/v3-ObservationInterpretation"

// evaluation is a value's interpretation and the range by which it was evaluated; empty without bounds.
type evaluation struct {
	interpretation []concept
	ranges         []referenceRange
}

// interpret interprets a value by the bounds in force at its evaluation. Source: docs/decisions/fhir.md, "Interpretation and reference range"; HL7
// Terminology, ObservationInterpretation.
func (s StoredObservation) interpret(p *vitals.Parameter, value *float64) (j evaluation) {
	if value == nil || p.FHIR == nil {
		return j
	}
	limits, evaluated := s.Bounds[p.Name]
	if p.Change != nil {
		j.interpretation = s.interpretChange(p, *value)
	} else if evaluated {
		j.interpretation = []concept{{Coding: []coding{interpret(*value, limits)}}}
	}
	if !evaluated {
		return j
	}
	low, high := limits.Low, limits.High
	if low == nil {
		low = limits.CriticalLow
	}
	if high == nil {
		high = limits.Critical
	}
	r := referenceRange{Type: &concept{Coding: []coding{{"http://terminology.hl7.org/CodeSystem/referencerange-meaning", "normal", "Normal Range"}}}}
	unit := " " + p.FHIR.Unit
	switch {
	case low != nil && high != nil:
		r.Text = "more than " + vitals.FormatNumber(*low) + " and less than " + vitals.FormatNumber(*high) + unit
	case low != nil:
		r.Text = "more than " + vitals.FormatNumber(*low) + unit
	default:
		r.Text = "less than " + vitals.FormatNumber(*high) + unit
	}
	if low != nil {
		r.Low = boundQuantity(*low, p.FHIR)
	}
	if high != nil {
		r.High = boundQuantity(*high, p.FHIR)
	}
	j.ranges = []referenceRange{r}
	return j
}

// interpretChange interprets a value that is watched for changes: high over its target, and abnormal, with the direction, if its change met a
// bound; a change has no range, so it is neither high nor low. It is normal if it was evaluated and none of these.
func (s StoredObservation) interpretChange(p *vitals.Parameter, value float64) (list []concept) {
	add := func(code, display string) {
		list = append(list, concept{Coding: []coding{{interpretationSystem, code, display}}})
	}
	target, evaluated := s.Bounds[p.Name]
	if evaluated && target.High != nil && value >= *target.High {
		add("H", "High")
	}
	for _, rule := range slices.Sorted(maps.Keys(s.Bounds)) {
		if !strings.HasPrefix(rule, p.Name+"_") {
			continue
		}
		evaluated = true
		switch met := s.Bounds[rule]; {
		case met.Critical != nil:
			add("AA", "Critical abnormal")
			add("U", "Significant change up")
		case met.High != nil:
			add("A", "Abnormal")
			add("U", "Significant change up")
		case met.Low != nil:
			add("A", "Abnormal")
			add("D", "Significant change down")
		}
	}
	if evaluated && len(list) == 0 {
		add("N", "Normal")
	}
	return list
}

// boundQuantity is a bound as it was set, without rounding.
func boundQuantity(v float64, in *vitals.Quantity) *quantity {
	return &quantity{Value: v, Unit: in.Unit, System: ucumSystem, Code: in.UCUM}
}

// interpret returns the code of a value: critical, abnormal or normal, as its alert was.
func interpret(value float64, limits vitals.Limits) coding {
	code, display := "N", "Normal"
	switch side, _ := limits.Breached(value); side {
	case vitals.Critical:
		code, display = "HH", "Critical high"
	case vitals.CriticalLow:
		code, display = "LL", "Critical low"
	case vitals.High:
		code, display = "H", "High"
	case vitals.Low:
		code, display = "L", "Low"
	}
	return coding{interpretationSystem, code, display}
}
