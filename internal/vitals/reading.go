// Package vitals knows the four kinds of measurement: what belongs to each, in which unit, within which range, how
// pounds and mmol/L become kilograms and mg/dL, and what a caller's body must look like to become a reading. It
// refuses to know whose reading it is, what is a dangerous value for that person (see alerts), how it is stored and
// how it is sent on.
package vitals

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/input"
)

// Kind is the kind of a reading, the contract's observation_type.
type Kind string

// The kinds.
const (
	BloodPressure Kind = "blood_pressure"
	Weight        Kind = "weight"
	PulseOximetry Kind = "pulse_oximetry"
	BloodGlucose  Kind = "blood_glucose"
)

// Kinds lists every kind in the contract's order.
var Kinds = []Kind{BloodPressure, Weight, PulseOximetry, BloodGlucose}

// Valid reports whether k is one of Kinds.
func (k Kind) Valid() bool { return slices.Contains(Kinds, k) }

// Source says by which way a reading came.
type Source string

// The sources.
const (
	SourceGateway Source = "gateway"
	SourceAPI     Source = "api"
	SourcePortal  Source = "patient_portal"
)

// Reading.MealContext when known.
const (
	MealFasting = "fasting"
	MealBefore  = "before_meal"
	MealAfter   = "after_meal"
	MealBedtime = "bedtime"
	MealRandom  = "random"
)

// MealContexts lists what Reading.MealContext may be besides "".
var MealContexts = []string{MealFasting, MealBefore, MealAfter, MealBedtime, MealRandom}

// Reading.Comparator of a meter that shows LO or HI: the true value lies beyond the one given.
const (
	ComparatorBelow = "<"
	ComparatorAbove = ">"
)

// Reading is a measurement that has been checked, in memory. Values are in the canonical unit, with at most two
// decimals; nil means not measured.
type Reading struct {
	Kind       Kind
	MeasuredAt time.Time // UTC, microseconds
	DeviceID   string    // "" when unknown

	Systolic, Diastolic *float64 // mmHg
	Pulse               *float64 // bpm
	WeightKg            *float64
	SpO2                *float64 // %
	PerfusionIndex      *float64 // %
	GlucoseMgDL         *float64

	IrregularHeartbeat *bool
	MealContext        string // one of MealContexts or ""
	Comparator         string // ComparatorBelow, ComparatorAbove or ""

	// What the caller sent, when it was converted.
	OriginalValue *float64
	OriginalUnit  string
}

// Format keeps readings out of logs and error texts.
func (Reading) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[reading]") }

// LogValue keeps readings out of structured logs.
func (Reading) LogValue() slog.Value { return slog.StringValue("[reading]") }

// measure is one numeric value of a reading under the contract's name.
type measure struct {
	name    string
	value   *float64
	allowed Range
}

func (r Reading) measures() []measure {
	return []measure{
		{"systolic", r.Systolic, SystolicRange},
		{"diastolic", r.Diastolic, DiastolicRange},
		{"pulse", r.Pulse, PulseRange},
		{"weight_kg", r.WeightKg, WeightRange},
		{"spo2", r.SpO2, SpO2Range},
		{"perfusion_index", r.PerfusionIndex, PerfusionIndexRange},
		{"glucose_mg_dl", r.GlucoseMgDL, GlucoseRange},
	}
}

// SameValues reports whether both readings are of one kind and say the same, whenever and by whatever device they
// were taken and in whatever unit they came.
func (r Reading) SameValues(o Reading) bool { return r.ValuesKey() == o.ValuesKey() }

// ValuesKey is a canonical text of the kind and all values, equal exactly when SameValues. It holds health
// information: hash or seal it before it leaves the process.
// Source: docs/decisions/observations.md, "Duplicate readings outside the webhook".
func (r Reading) ValuesKey() string {
	var key strings.Builder
	key.WriteString(string(r.Kind))
	add := func(name, value string) { key.WriteString(" " + name + "=" + value) }
	for _, m := range r.measures() {
		if m.value != nil {
			add(m.name, strconv.FormatFloat(*m.value, 'f', -1, 64))
		}
	}
	if r.IrregularHeartbeat != nil {
		add("irregular_heartbeat", strconv.FormatBool(*r.IrregularHeartbeat))
	}
	if r.MealContext != "" {
		add("meal_context", r.MealContext)
	}
	if r.Comparator != "" {
		add("comparator", r.Comparator)
	}
	return key.String()
}

// belongs says which values a reading of each kind must and may hold.
var belongs = map[Kind]struct{ must, may []string }{
	BloodPressure: {[]string{"systolic", "diastolic"}, []string{"pulse", "irregular_heartbeat"}},
	Weight:        {[]string{"weight_kg"}, nil},
	PulseOximetry: {[]string{"spo2"}, []string{"pulse", "perfusion_index"}},
	BloodGlucose:  {[]string{"glucose_mg_dl"}, []string{"meal_context", "comparator"}},
}

const (
	msgMissing = "This field is required."
	msgForeign = "Does not belong to this observation type."
)

// Check complains, under the contract's field names, about a reading that did not come through a body of this
// package: a kind that does not exist, values that are missing, foreign to the kind or out of range.
func (r Reading) Check(c *input.Checks) {
	rule, ok := belongs[r.Kind]
	if !ok {
		c.Reject("observation_type", oneOf(Kinds))
		return
	}
	for _, m := range r.measures() {
		switch {
		case m.value == nil && slices.Contains(rule.must, m.name):
			c.Reject(m.name, msgMissing)
		case m.value == nil:
		case !slices.Contains(rule.must, m.name) && !slices.Contains(rule.may, m.name):
			c.Reject(m.name, msgForeign)
		default:
			m.allowed.check(c, m.name, *m.value)
		}
	}
	r.checkPressure(c)
	if r.IrregularHeartbeat != nil && !slices.Contains(rule.may, "irregular_heartbeat") {
		c.Reject("irregular_heartbeat", msgForeign)
	}
	checkWord(c, rule.may, "meal_context", r.MealContext, MealContexts)
	checkWord(c, rule.may, "comparator", r.Comparator, []string{ComparatorBelow, ComparatorAbove})
}

// checkPressure complains when the diastolic value is not the lower one.
// Source: docs/decisions/observations.md, "Cross-field checks".
func (r Reading) checkPressure(c *input.Checks) {
	if r.Systolic != nil && r.Diastolic != nil && *r.Diastolic >= *r.Systolic {
		c.Reject("diastolic", "Must be lower than systolic.")
	}
}

func checkWord(c *input.Checks, may []string, name, word string, words []string) {
	switch {
	case word == "":
	case !slices.Contains(may, name):
		c.Reject(name, msgForeign)
	case !slices.Contains(words, word):
		c.Reject(name, oneOf(words))
	}
}

func oneOf[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return "Must be one of: " + strings.Join(texts, ", ") + "."
}
