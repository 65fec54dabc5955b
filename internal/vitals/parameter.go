package vitals

import (
	"fmt"
	"strings"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Parameter is one number of a reading.
type Parameter struct {
	// Name is used in alerts, the change log and gateways' values; Column is its name in the contract and the database, with its unit.
	Name, Column string
	// Label is its name in sentences.
	Label string
	// Abnormal states without a value that its group is out of range; AbnormalHigh that it is too high, "" for the same words. A value equal to
	// its bound is too high from HighFrom.
	Abnormal, AbnormalHigh string
	HighFrom               float64
	// Range is the accepted range in the stored unit.
	Range Range
	// OfAdults: the low end of the range is that of adults; children may be below it.
	OfAdults bool
	// Words are the gateways' other words for that unit.
	Words []string
	// Units are the other units in which it may be sent.
	Units []Unit
	// DisplayWords are words that a device shows instead of a number beyond its range.
	DisplayWords []DisplayWord

	// Group is the group of its thresholds and the type of its alerts; "" for none.
	Group string
	// Prefix is the prefix of its bounds in their group.
	Prefix string
	// Bounds are its bounds, and Defaults their values in a new practice.
	Bounds   []Bound
	Defaults Limits
	// AnyAge are the bounds of danger at every age. Source: docs/decisions/alerts.md, "Minors".
	AnyAge Limits
	// Change is the rule of a parameter that is watched for changes instead of bounds.
	Change *Change
	// Suspect is the rule for values that may be another person's; nil for none.
	Suspect *SuspectRule

	FHIR *Quantity // nil for one that is not delivered
	// StandaloneProfile is its US Core profile if it can be an observation of its own.
	StandaloneProfile string

	// Kinds are those that measure it.
	Kinds []Kind
	index int
}

// Unit is another unit of a parameter.
type Unit struct {
	Field string   // in a body, and in an answer that shows it
	Name  string   // as stored with the original value
	Words []string // of the gateways
	// Range is what may be sent; without one, the converted value must be in the parameter's range.
	Range Range
	// Convert converts to the parameter's unit; Back to this unit, nil if it is not shown.
	Convert, Back func(float64) float64
}

// DisplayWord is a word instead of a number: the true value is beyond Value.
type DisplayWord struct {
	Word       string
	Value      float64
	Comparator string
}

// Quantity is a parameter in FHIR: its component code, maximum decimals, unit and UCUM code. Source: docs/decisions/fhir.md, "Rounding";
// LOINC; UCUM.
type Quantity struct {
	Code       Code
	Decimals   int
	Unit, UCUM string
}

// Limits are the bounds of one parameter; nil for none.
type Limits struct {
	CriticalLow, Low, High, Critical *float64
	// FastingHigh is the warning bound of a value marked as fasting; [Limits.At] puts it in the place of High.
	FastingHigh *float64
}

// ForMeal returns the bounds of a value with this meal marker. Without the marker of fasting the looser bound applies, which is High. Of two
// bounds that contradict each other, because the practice's was lowered later, the stricter applies.
// Source: docs/decisions/alerts.md, "Fasting glucose".
func (l Limits) ForMeal(meal string) Limits {
	if meal == MealFasting && l.FastingHigh != nil && (l.High == nil || *l.FastingHigh < *l.High) {
		l.High = l.FastingHigh
	}
	l.FastingHigh = nil
	return l
}

// Bound is one of the bounds.
type Bound string

// The sides of a parameter.
const (
	CriticalLow Bound = "critical_low"
	Low         Bound = "low"
	High        Bound = "high"
	Critical    Bound = "critical"
	FastingHigh Bound = "fasting_high"
)

// allBounds are in ascending order; FastingHigh is not one that every parameter has.
var allBounds = []Bound{CriticalLow, Low, High, Critical}

// Bound returns the bound of a side.
func (l Limits) Bound(side Bound) *float64 {
	switch side {
	case CriticalLow:
		return l.CriticalLow
	case Low:
		return l.Low
	case High:
		return l.High
	case FastingHigh:
		return l.FastingHigh
	}
	return l.Critical
}

// Breached returns the most severe bound that a value breaches; bounds are inclusive. It is "" for none.
// Source: docs/decisions/alerts.md, "Default thresholds".
func (l Limits) Breached(value float64) (side Bound, bound float64) {
	switch {
	case l.Critical != nil && value >= *l.Critical:
		return Critical, *l.Critical
	case l.CriticalLow != nil && value <= *l.CriticalLow:
		return CriticalLow, *l.CriticalLow
	case l.High != nil && value >= *l.High:
		return High, *l.High
	case l.Low != nil && value <= *l.Low:
		return Low, *l.Low
	}
	return "", 0
}

// IsCritical reports whether a side is beyond the range in which a value is only a warning.
func (s Bound) IsCritical() bool { return s == Critical || s == CriticalLow }

// Change is the rule for a change by an amount within a number of days. Source: docs/decisions/alerts.md, "Weight rule" and "Extra
// threshold fields".
type Change struct {
	// The names of the three fields in the group of thresholds, and their ranges.
	Threshold, Critical, Window                string
	ThresholdRange, CriticalRange, WindowRange Range
	// DefaultThreshold is the value in a new practice; DefaultWindow applies if none is set.
	DefaultThreshold float64
	DefaultWindow    int

	// Daily is the bound of a gain between consecutive calendar days; Target is the patient's target value, never the practice's, and Over
	// the permitted excess.
	Daily, Target, Over                string
	DailyRange, TargetRange, OverRange Range
	DefaultDaily, DefaultOver          float64

	// SlowGain and SlowCritical are the bounds of a gain over weeks, Losses those of losses over weeks. Source: docs/decisions/alerts.md,
	// "Weight over weeks".
	SlowGain, SlowCritical           string
	SlowGainRange, SlowCriticalRange Range
	Losses                           []Loss
}

// Loss is the rule for a loss in percent within a number of days.
type Loss struct {
	Field   string
	Days    int
	Range   Range
	Default float64
}

// Shared reports whether more than one kind measures the parameter.
func (p *Parameter) Shared() bool { return len(p.Kinds) > 1 }

// Index returns the parameter's index in Parameters.
func (p *Parameter) Index() int { return p.index }

// Columns returns the columns of parameters, for a statement.
func Columns(parameters []*Parameter) string {
	names := make([]string, len(parameters))
	for i, p := range parameters {
		names[i] = p.Column
	}
	return strings.Join(names, ", ")
}

// Qualifier is a non-numeric part of a reading.
type Qualifier struct {
	Name string
	// Words are its values; nil for [Yes] or [No], which are booleans in JSON.
	Words []string
	// AltField is another field for it, with other words for some of Words.
	AltField string
	AltWords [][2]string
	// Notice is the informative alert for yes; "" for none.
	Notice string
	// Internal qualifiers are not in the gateways' fields, and are shown only if set.
	Internal bool
	// Latest qualifiers are shown with a patient's latest readings.
	Latest bool
	// ComponentCode and Answers are its FHIR component, by word. Bit is the IEEE 11073 bit code of a flag.
	ComponentCode Code
	Answers       map[string]Answer
	Bit           Code

	index int
}

// Answer is a qualifier's value in FHIR: a code, a text, or both.
type Answer struct{ Code, Text string }

// Stored values of a flag.
const (
	Yes = "yes"
	No  = "no"
)

// IsFlag reports whether the qualifier is yes or no.
func (q *Qualifier) IsFlag() bool { return q.Words == nil }

// The units of the contract.
const (
	UnitMmHg    = "mmHg"
	UnitBPM     = "bpm"
	UnitKg      = "kg"
	UnitPounds  = "lbs"
	UnitPercent = "%"
	UnitMgDL    = "mg/dL"
	UnitMmolL   = "mmol/L"
)

// Decimals is the precision of stored values. Source: docs/decisions/observations.md, "Cross-field checks".
const Decimals = 2

// Range is an accepted range from Min to Max, both included, in Unit. Source: the contract's limits; docs/decisions/observations.md,
// "Pulse-oximetry and glucose fields" and "Weight in pounds".
type Range struct {
	Min, Max float64
	Unit     string
}

// Contains reports whether value is in the range; NaN never is.
func (r Range) Contains(value float64) bool { return value >= r.Min && value <= r.Max }

// Message returns the error for a value out of range.
func (r Range) Message() string {
	return fmt.Sprintf("Must be between %g and %g %s.", r.Min, r.Max, r.Unit)
}

// check rejects a value out of range.
func (r Range) check(c *validate.Checks, name string, value float64) bool {
	if r.Contains(value) {
		return true
	}
	c.Reject(name, r.Message())
	return false
}

// read returns the field's number with two decimals if it is in range, else nil after an error. The range applies to the sent value:
// 300.004 mmHg is not 300.
func (p *Parameter) read(c *validate.Checks, name string, f validate.Number, required bool, outside *OutOfRange) *float64 {
	value := c.Number(name, f, required)
	if value == nil || !outside.admits(c, p, p.Range, name, *value) {
		return nil
	}
	return new(RoundHalfUp(*value, Decimals))
}
