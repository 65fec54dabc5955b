package vitals

import "math/big"

// BodyTemperature is measured by any thermometer.
const BodyTemperature Kind = "body_temperature"

// TemperatureC is sent in degrees Celsius or Fahrenheit. Source: docs/decisions/observations.md, "Body temperature": the range, and the
// bounds of NEWS2 (Royal College of Physicians, 2017) with the fever of the CDC.
var TemperatureC = &Parameter{
	Name: "temperature", Column: "temperature_c", Label: "Temperature", Range: Range{25, 45, "°C"}, Words: []string{"Cel", "C", "degC"},
	Units: []Unit{{
		Field: "temperature_f", Name: "°F", Words: []string{"°F", "[degF]", "F", "degF"}, Range: Range{77, 113, "°F"},
		Convert: CelsiusFromFahrenheit, Back: FahrenheitFromCelsius,
	}},
	Abnormal: "abnormal temperature", Group: string(BodyTemperature), Bounds: allBounds, Defaults: Limits{CriticalLow: new(35.0), Low: new(36.0), High: new(38.0), Critical: new(39.1)},
	AnyAge: Limits{CriticalLow: new(35.0), Critical: new(40.0)},
	FHIR:   &Quantity{Decimals: 2, Unit: "°C", UCUM: "Cel"},
}

func init() {
	register(Definition{
		Kind: BodyTemperature, Position: 5, Required: []*Parameter{TemperatureC},
		Words: []string{"temperature"}, Devices: []string{"thermometer"},
		Stale: Stale{Days: 5, Of: []*Parameter{TemperatureC}, Decimals: 2},
		FHIR: Form{
			Profile: "us-core-body-temperature", Codes: []Code{{"8310-5", "Body temperature"}}, Value: TemperatureC,
			Device: Code{"27991004", "Thermometer, device"},
		},
	})
}

// °C = (°F - 32) × 5/9, exactly. Source: docs/decisions/observations.md, "Body temperature" (NIST SP 811, appendix B).
var (
	minusFreezing     = big.NewRat(-32, 1)
	celsiusPerDegree  = big.NewRat(5, 9)
	freezingInCelsius = big.NewRat(160, 9)
	degreesPerCelsius = big.NewRat(9, 5)
)

// CelsiusFromFahrenheit converts half up to two decimals: 100.4 °F is 38 °C.
func CelsiusFromFahrenheit(f float64) float64 {
	return convert(f, minusFreezing, celsiusPerDegree, Decimals)
}

// FahrenheitFromCelsius converts half up to one decimal: 38.05 °C is 100.5 °F.
func FahrenheitFromCelsius(c float64) float64 {
	return convert(c, freezingInCelsius, degreesPerCelsius, 1)
}
