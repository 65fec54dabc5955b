package visitreport

import (
	"math"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Units are the report's units. The zero value means the stored ones: kg and °C.
type Units struct{ Pounds, Fahrenheit bool }

// of returns the unit of a parameter and the conversion of its values, to a tenth; nil if none is needed.
func (u Units) of(p *vitals.Parameter) (unit string, convert func(float64) float64) {
	switch {
	case p == vitals.WeightKg && u.Pounds:
		return "lb", vitals.PoundsFromKg
	case p == vitals.TemperatureC && u.Fahrenheit:
		return "°F", vitals.FahrenheitFromCelsius
	}
	return p.Range.Unit, nil
}

func (u Units) unit(p *vitals.Parameter) string {
	unit, _ := u.of(p)
	return unit
}

// number formats a value without its unit.
func (u Units) number(p *vitals.Parameter, value float64) string {
	if _, convert := u.of(p); convert != nil {
		value = convert(value)
	}
	return vitals.FormatNumber(value)
}

// value formats a value with its unit.
func (u Units) value(p *vitals.Parameter, value float64) string {
	return u.number(p, value) + " " + u.unit(p)
}

// text formats a measured value with its unit; one that the device showed as a word is "above 600 mg/dL" or "below 20 mg/dL".
func (u Units) text(p *vitals.Parameter, r vitals.Reading) string {
	if r.Qualifier(vitals.Comparator) != "" {
		return r.ValueText(p) + " " + u.unit(p)
	}
	return u.value(p, *r.Value(p))
}

// limitOfChange converts the limit of a difference of weights, without rounding kilograms.
func (u Units) limitOfChange(kg float64) float64 {
	if u.Pounds {
		return vitals.PoundsFromKg(kg)
	}
	return kg
}

// difference converts a difference of values.
func (u Units) difference(p *vitals.Parameter, by float64) float64 {
	switch {
	case p == vitals.WeightKg:
		return u.weightChange(by)
	case p == vitals.TemperatureC && u.Fahrenheit:
		return math.Round(by*18) / 10
	}
	return by
}

// weightChange converts a difference of weights, to a tenth.
func (u Units) weightChange(kg float64) float64 {
	if u.Pounds {
		return vitals.PoundsFromKg(kg)
	}
	return math.Round(kg*10) / 10
}
