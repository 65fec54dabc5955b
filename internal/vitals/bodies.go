package vitals

import (
	"cmp"
	"time"

	"github.com/vigilhealth/vigil/internal/input"
)

// maxDeviceID is in characters. Source: docs/decisions/limits.md, "Maximum lengths".
const maxDeviceID = 128

// Envelope is what the body of every kind holds besides the measurement. Embed it next to one of the bodies.
type Envelope struct {
	PatientID  input.String `json:"patient_id"`
	DeviceID   input.String `json:"device_id"`
	MeasuredAt input.String `json:"measured_at"`
}

// Read returns the patient's UUID, the device id ("" when unknown) and the time of measurement in UTC, which may lie
// at most maxFuture ahead of now. For a caller who may leave out patient_id, fill it in before.
func (e Envelope) Read(c *input.Checks, now time.Time, maxFuture time.Duration) (patientID, deviceID string, measuredAt time.Time) {
	patientID = c.UUID("patient_id", e.PatientID, true)
	deviceID = c.Text("device_id", e.DeviceID, input.Optional(maxDeviceID).Filled().Identifier())
	measuredAt = c.Instant("measured_at", e.MeasuredAt, true)
	c.NotFuture("measured_at", measuredAt, now, maxFuture)
	return patientID, deviceID, measuredAt
}

// The bodies below hold the measurement fields of each kind. Their Read returns a reading without time and device,
// to be used only when c has nothing to complain about.

// BloodPressureBody is in mmHg and bpm.
type BloodPressureBody struct {
	Systolic           input.Number  `json:"systolic"`
	Diastolic          input.Number  `json:"diastolic"`
	Pulse              input.Number  `json:"pulse"`
	IrregularHeartbeat input.Boolean `json:"irregular_heartbeat"`
}

// Read checks types, ranges and that the diastolic value is the lower one.
func (b BloodPressureBody) Read(c *input.Checks) Reading {
	reading := Reading{
		Kind:               BloodPressure,
		Systolic:           SystolicRange.read(c, "systolic", b.Systolic, true),
		Diastolic:          DiastolicRange.read(c, "diastolic", b.Diastolic, true),
		Pulse:              PulseRange.read(c, "pulse", b.Pulse, false),
		IrregularHeartbeat: c.Boolean("irregular_heartbeat", b.IrregularHeartbeat, false),
	}
	reading.checkPressure(c)
	return reading
}

// WeightBody holds exactly one of kilograms and pounds.
type WeightBody struct {
	WeightKg  input.Number `json:"weight_kg"`
	WeightLbs input.Number `json:"weight_lbs"`
}

// Read converts pounds, rounds and then holds the kilograms against the range.
// Source: docs/decisions/observations.md, "Weight in pounds".
func (b WeightBody) Read(c *input.Checks) Reading {
	reading := Reading{Kind: Weight}
	switch {
	case filled(b.WeightKg) && filled(b.WeightLbs):
		c.Reject("weight_lbs", "Send either weight_kg or weight_lbs, not both.")
	case filled(b.WeightLbs):
		pounds := c.Number("weight_lbs", b.WeightLbs, true)
		if pounds == nil {
			break
		}
		kg := KgFromPounds(*pounds)
		if WeightRange.check(c, "weight_lbs", kg) {
			reading.WeightKg, reading.OriginalValue, reading.OriginalUnit = &kg, pounds, UnitPounds
		}
	default:
		reading.WeightKg = WeightRange.read(c, "weight_kg", b.WeightKg, true)
	}
	return reading
}

// PulseOximetryBody is in percent and bpm.
type PulseOximetryBody struct {
	SpO2           input.Number `json:"spo2"`
	Pulse          input.Number `json:"pulse"`
	PerfusionIndex input.Number `json:"perfusion_index"`
}

// Read checks types and ranges.
func (b PulseOximetryBody) Read(c *input.Checks) Reading {
	return Reading{
		Kind:           PulseOximetry,
		SpO2:           SpO2Range.read(c, "spo2", b.SpO2, true),
		Pulse:          PulseRange.read(c, "pulse", b.Pulse, false),
		PerfusionIndex: PerfusionIndexRange.read(c, "perfusion_index", b.PerfusionIndex, false),
	}
}

// BloodGlucoseBody holds exactly one of mg/dL and mmol/L. MealMarker is another name for MealContext.
type BloodGlucoseBody struct {
	GlucoseMgDL  input.Number `json:"glucose_mg_dl"`
	GlucoseMmolL input.Number `json:"glucose_mmol_l"`
	MealContext  input.String `json:"meal_context"`
	MealMarker   input.String `json:"meal_marker"`
	Comparator   input.String `json:"comparator"`
}

// Read checks each unit against its own range, then converts mmol/L.
// Source: docs/decisions/observations.md, "Pulse-oximetry and glucose fields" and "Glucose units".
func (b BloodGlucoseBody) Read(c *input.Checks) Reading {
	reading := Reading{
		Kind:        BloodGlucose,
		MealContext: b.readMeal(c),
		Comparator:  c.Text("comparator", b.Comparator, input.Optional(0).OneOf(ComparatorBelow, ComparatorAbove)),
	}
	switch {
	case filled(b.GlucoseMgDL) && filled(b.GlucoseMmolL):
		c.Reject("glucose_mmol_l", "Send either glucose_mg_dl or glucose_mmol_l, not both.")
	case filled(b.GlucoseMmolL):
		if mmolL := GlucoseMmolRange.number(c, "glucose_mmol_l", b.GlucoseMmolL, true); mmolL != nil {
			reading.GlucoseMgDL = new(MgDLFromMmolL(*mmolL))
			reading.OriginalValue, reading.OriginalUnit = mmolL, UnitMmolL
		}
	default:
		reading.GlucoseMgDL = GlucoseRange.read(c, "glucose_mg_dl", b.GlucoseMgDL, true)
	}
	return reading
}

// mealAliases are the words of meal_marker that meal_context has others for.
var mealAliases = map[string]string{"pre_meal": MealBefore, "post_meal": MealAfter}

func (b BloodGlucoseBody) readMeal(c *input.Checks) string {
	markers := append([]string{"pre_meal", "post_meal"}, MealContexts...)
	context := c.Text("meal_context", b.MealContext, input.Optional(0).OneOf(MealContexts...))
	marker := c.Text("meal_marker", b.MealMarker, input.Optional(0).OneOf(markers...))
	marker = cmp.Or(mealAliases[marker], marker)
	if context != "" && marker != "" && context != marker {
		c.Reject("meal_marker", "Must agree with meal_context.")
	}
	return cmp.Or(context, marker)
}

// filled reports whether the caller sent something in this field, of whatever type.
func filled(f input.Number) bool { return f.Sent() && !f.Null() }
