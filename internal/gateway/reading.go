package gateway

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// kinds are the gateway's words for what was measured, in lower case.
// Source: docs/decisions/gateway.md, "`values` shapes".
var kinds = map[string]vitals.Kind{
	"blood_pressure": vitals.BloodPressure,
	"bp":             vitals.BloodPressure,
	"weight":         vitals.Weight,
	"body_weight":    vitals.Weight,
	"pulse_oximetry": vitals.PulseOximetry,
	"pulse_ox":       vitals.PulseOximetry,
	"spo2":           vitals.PulseOximetry,
	"oximetry":       vitals.PulseOximetry,
	"blood_glucose":  vitals.BloodGlucose,
	"glucose":        vitals.BloodGlucose,
}

const unitPound = "lb"

// units lists how each kind may be sent. Where there is a choice the unit must be named: to guess is unsafe.
var units = map[vitals.Kind][]string{
	vitals.BloodPressure: {vitals.UnitMmHg},
	vitals.Weight:        {vitals.UnitKg, unitPound, vitals.UnitPounds},
	vitals.PulseOximetry: {vitals.UnitPercent},
	vitals.BloodGlucose:  {vitals.UnitMgDL, vitals.UnitMmolL},
}

// values is the union of what the measurement types carry; each looks only at its own.
type values struct {
	Systolic           input.Number  `json:"systolic"`
	Diastolic          input.Number  `json:"diastolic"`
	Pulse              input.Number  `json:"pulse"`
	PulseRate          input.Number  `json:"pulse_rate"`
	IrregularHeartbeat input.Boolean `json:"irregular_heartbeat"`
	Weight             input.Number  `json:"weight"`
	SpO2               input.Number  `json:"spo2"`
	PerfusionIndex     input.Number  `json:"perfusion_index"`
	Glucose            glucose       `json:"glucose"`
	MealMarker         input.String  `json:"meal_marker"`
	MealContext        input.String  `json:"meal_context"`
}

// glucose is a number, or what a meter shows in its place when the value lies beyond its range: "HI" or "LO".
type glucose struct {
	input.Number
	comparator string
}

// UnmarshalJSON turns HI into 600 with ">" and LO into 20 with "<", in mg/dL.
func (g *glucose) UnmarshalJSON(raw []byte) error {
	var shown string
	if json.Unmarshal(raw, &shown) == nil {
		switch strings.ToUpper(strings.TrimSpace(shown)) {
		case "HI":
			*g = glucose{input.Of(vitals.GlucoseRange.Max), vitals.ComparatorAbove}
			return nil
		case "LO":
			*g = glucose{input.Of(vitals.GlucoseRange.Min), vitals.ComparatorBelow}
			return nil
		}
	}
	return g.Number.UnmarshalJSON(raw)
}

// readMeasurement translates the measurement into the body that callers of the API send and lets vitals read that:
// one set of rules, whoever sends. A measurement type without a kind gives a reading without a kind.
func (b eventBody) readMeasurement(c *input.Checks, event *Event) vitals.Reading {
	event.MeasurementType = c.Text("measurement_type", b.MeasurementType, input.Required(maxWord))
	event.measurement = strings.ToLower(event.MeasurementType)
	kind, supported := kinds[event.measurement]
	if !supported && event.measurement != "" {
		return vitals.Reading{}
	}
	if !b.Values.Given() {
		c.Reject("values", "An object is required.")
	}
	if !supported {
		return vitals.Reading{}
	}
	event.measurement = string(kind)
	unit := readUnit(c, b.Unit, kind)
	if !b.Values.Given() {
		return vitals.Reading{}
	}
	own := input.NewChecks()
	reading, names := b.Values.Value.read(own, kind, unit)
	for field, messages := range own.Fields {
		for _, message := range messages {
			if unit == "" && slices.Contains(unitless, message) {
				continue
			}
			c.Reject("values."+cmp.Or(names[field], field), message)
		}
	}
	return reading
}

// unitless are the complaints that mean nothing about a value whose unit is missing or unknown.
var unitless = []string{vitals.WeightRange.Message(), vitals.GlucoseRange.Message()}

// readUnit returns the unit in the spelling of units, or "" when it may be and is left out, or after a complaint.
func readUnit(c *input.Checks, f input.String, kind vitals.Kind) string {
	known := units[kind]
	unit := text(c, "unit", f, len(known) > 1, maxWord)
	if unit == "" {
		return ""
	}
	i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, unit) })
	if i < 0 {
		c.Reject("unit", "Must be one of: "+strings.Join(known, ", ")+".")
		return ""
	}
	return known[i]
}

// read reads the values of one kind through the API's body for it. names tells what the gateway calls a field of
// that body, where it has another name for it.
func (v values) read(c *input.Checks, kind vitals.Kind, unit string) (reading vitals.Reading, names map[string]string) {
	switch kind {
	case vitals.BloodPressure:
		return vitals.BloodPressureBody{
			Systolic: v.Systolic, Diastolic: v.Diastolic, Pulse: v.Pulse, IrregularHeartbeat: v.IrregularHeartbeat,
		}.Read(c), nil
	case vitals.Weight:
		reading, names = v.readWeight(c, unit)
	case vitals.PulseOximetry:
		reading, names = v.readOximetry(c)
	case vitals.BloodGlucose:
		reading, names = v.readGlucose(c, unit)
	}
	if reading.OriginalValue != nil {
		reading.OriginalUnit = unit
	}
	return reading, names
}

func (v values) readWeight(c *input.Checks, unit string) (vitals.Reading, map[string]string) {
	own := vitals.WeightBody{WeightKg: v.Weight}
	if unit == unitPound || unit == vitals.UnitPounds {
		own = vitals.WeightBody{WeightLbs: v.Weight}
	}
	return own.Read(c), map[string]string{"weight_kg": "weight", "weight_lbs": "weight"}
}

func (v values) readOximetry(c *input.Checks) (vitals.Reading, map[string]string) {
	own := vitals.PulseOximetryBody{SpO2: v.SpO2, Pulse: v.Pulse, PerfusionIndex: v.PerfusionIndex}
	switch {
	case !v.PulseRate.Sent() || v.PulseRate.Null():
	case !v.Pulse.Sent() || v.Pulse.Null():
		own.Pulse = v.PulseRate
		return own.Read(c), map[string]string{"pulse": "pulse_rate"}
	case v.Pulse != v.PulseRate:
		c.Reject("pulse_rate", "Must agree with pulse.")
	}
	return own.Read(c), nil
}

func (v values) readGlucose(c *input.Checks, unit string) (vitals.Reading, map[string]string) {
	own := vitals.BloodGlucoseBody{MealContext: v.MealContext, MealMarker: v.MealMarker}
	switch {
	case v.Glucose.comparator != "":
		own.GlucoseMgDL, own.Comparator = v.Glucose.Number, input.Of(v.Glucose.comparator)
	case unit == vitals.UnitMmolL:
		own.GlucoseMmolL = v.Glucose.Number
	default:
		own.GlucoseMgDL = v.Glucose.Number
	}
	return own.Read(c), map[string]string{"glucose_mg_dl": "glucose", "glucose_mmol_l": "glucose"}
}
