package visitreport

import (
	"math"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Units are what the sheet is written in. The zero value is what readings are stored in: kg and °C.
type Units struct{ Pounds, Fahrenheit bool }

// of is what a parameter is written in, and convert what one of its values comes to then, to a tenth; nil where it stands as it is stored.
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

// number is a value of a parameter without its unit.
func (u Units) number(p *vitals.Parameter, value float64) string {
	if _, convert := u.of(p); convert != nil {
		value = convert(value)
	}
	return number(value)
}

// value is the same with its unit.
func (u Units) value(p *vitals.Parameter, value float64) string {
	return u.number(p, value) + " " + u.unit(p)
}

// weightChange is a difference of weights, to a tenth.
func (u Units) weightChange(kg float64) float64 {
	if u.Pounds {
		return vitals.PoundsFromKg(kg)
	}
	return math.Round(kg*10) / 10
}
