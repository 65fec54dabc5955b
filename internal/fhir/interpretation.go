package fhir

import "github.com/vigilhealth/vigil/internal/vitals"

// referenceRange is the range of usual values, with the bounds in words because FHIR's ends belong to the range and a bound's own value raises
// an alert.
type referenceRange struct {
	Low  *quantity `json:"low,omitempty"`
	High *quantity `json:"high,omitempty"`
	Type *concept  `json:"type,omitempty"`
	Text string    `json:"text,omitempty"`
}

// judgment is a value's interpretation and the range by which it was evaluated; empty without bounds.
type judgment struct {
	interpretation []concept
	ranges         []referenceRange
}

// judge interprets a value by the bounds in force at its evaluation. Source: docs/decisions/fhir.md, "Interpretation and reference range"; HL7
// Terminology, ObservationInterpretation.
func (s StoredObservation) judge(p *vitals.Parameter, value *float64) (j judgment) {
	limits, evaluated := s.Bounds[p.Name]
	if !evaluated || value == nil || p.FHIR == nil {
		return j
	}
	j.interpretation = []concept{{Coding: []coding{interpret(*value, limits)}}}
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

// boundQuantity is a bound as it was set, without rounding.
func boundQuantity(v float64, in *vitals.Quantity) *quantity {
	return &quantity{Value: v, Unit: in.Unit, System: ucumSystem, Code: in.UCUM}
}

// interpret returns the code of a value: critical, abnormal or normal, as its alert was.
func interpret(value float64, limits vitals.Limits) coding {
	code, display := "N", "Normal"
	switch {
	case limits.Critical != nil && value >= *limits.Critical:
		code, display = "HH", "Critical high"
	case limits.CriticalLow != nil && value <= *limits.CriticalLow:
		code, display = "LL", "Critical low"
	case limits.High != nil && value >= *limits.High:
		code, display = "H", "High"
	case limits.Low != nil && value <= *limits.Low:
		code, display = "L", "Low"
	}
	return coding{"http://terminology.hl7.org/CodeSystem/v3-ObservationInterpretation", code, display}
}
