package vitals

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Parameter is one number that readings hold.
type Parameter struct {
	// Name is the word for it in alerts, in the change log and in the gateways' values; Column is its name in the
	// contract and in the database, with its unit.
	Name, Column string
	// Label is the word for it in sentences.
	Label string
	// Range is what it may be, in the unit in which it is kept.
	Range Range
	// OfAdults: the low end of the range is that of adults, and children lie below it.
	OfAdults bool
	// Words are the gateways' other words for that unit.
	Words []string
	// Units are the other units in which it may come.
	Units []Unit
	// Shown are words that a device shows in place of a number beyond its range.
	Shown []Shown

	// Group is the group of its thresholds, and the type of its alerts; "" for one that has none.
	Group string
	// Prefix is what its bounds begin with in their group.
	Prefix string
	// Sides are the bounds that it has, and Defaults what a new practice begins with.
	Sides    []Side
	Defaults Limits
	// AnyAge are the bounds beyond which a value means danger at every age. Source: docs/decisions/alerts.md, "Minors".
	AnyAge Limits
	// Change is the rule of a parameter that is watched for changes, in place of bounds.
	Change *Change
	// Doubt is the rule of a parameter whose values may be somebody else's; nil where nobody asks.
	Doubt *Doubt

	FHIR *Quantity // nil for one that is not sent on
	// Alone is its US Core profile where it can be an observation of its own besides the kind's.
	Alone string

	// Kinds are those that measure it.
	Kinds []Kind
	place int
}

// Unit is another unit in which a parameter may come.
type Unit struct {
	Field string   // in a body, and in an answer when it is shown
	Name  string   // as it is kept beside the value that came in it
	Words []string // of the gateways
	// Range is what may be sent. Without one it is the converted value that must lie in the parameter's range.
	Range Range
	// Convert gives the value in the unit of the parameter; Back gives the one in this unit, nil when it is not shown.
	Convert, Back func(float64) float64
}

// Shown is a word in place of a number: the true value lies beyond the one given.
type Shown struct {
	Word       string
	Value      float64
	Comparator string
}

// Quantity is how a parameter is sent on: its code where it is a component, at most so many decimals, the words of the
// unit and its UCUM code. Source: docs/decisions/fhir.md, "Rounding"; LOINC; UCUM.
type Quantity struct {
	Code       Code
	Decimals   int
	Unit, UCUM string
}

// Limits are the bounds of one parameter; nil where there is none.
type Limits struct{ CriticalLow, Low, High, Critical *float64 }

// Side is one of the bounds.
type Side string

// The sides of a parameter.
const (
	CriticalLow Side = "critical_low"
	Low         Side = "low"
	High        Side = "high"
	Critical    Side = "critical"
)

// allSides are in ascending order.
var allSides = []Side{CriticalLow, Low, High, Critical}

// Of is the bound of a side.
func (l Limits) Of(side Side) *float64 {
	switch side {
	case CriticalLow:
		return l.CriticalLow
	case Low:
		return l.Low
	case High:
		return l.High
	}
	return l.Critical
}

// Change is the rule of a parameter that deserves attention when it changes by so much within so many days.
// Source: docs/decisions/alerts.md, "Weight rule" and "Extra threshold fields".
type Change struct {
	// The names of the three in the group of thresholds, and what each may be.
	Threshold, Critical, Window                string
	ThresholdRange, CriticalRange, WindowRange Range
	// DefaultThreshold is what a new practice begins with, DefaultWindow holds wherever nobody set one.
	DefaultThreshold float64
	DefaultWindow    int

	// Daily is the bound of a gain from one calendar day to the next; Target is what the value ought to be, of a patient and never of
	// the practice, and Over by how much it may lie above that.
	Daily, Target, Over                string
	DailyRange, TargetRange, OverRange Range
	DefaultDaily, DefaultOver          float64
}

// Shared reports whether more than one kind measures the parameter.
func (p *Parameter) Shared() bool { return len(p.Kinds) > 1 }

// Place is where the parameter stands in Parameters.
func (p *Parameter) Place() int { return p.place }

// Columns are the columns of parameters, for a statement.
func Columns(parameters []*Parameter) string {
	names := make([]string, len(parameters))
	for i, p := range parameters {
		names[i] = p.Column
	}
	return strings.Join(names, ", ")
}

// Mark is something that a reading says besides its numbers.
type Mark struct {
	Name string
	// Words are what it may say; nil for [Yes] or [No], which callers know as true and false.
	Words []string
	// Also is another field for it, with words of its own for some of Words.
	Also      string
	AlsoWords [][2]string
	// Informs is what people are told without alarm when the mark says yes; "" for nothing.
	Informs string
	// Unsent marks are none of the gateways' fields.
	Unsent bool
	// Latest marks are shown with a patient's latest readings.
	Latest bool
	// Question and Answers are its FHIR component; Answers by word. Bit is that of a flag: the code of a bit of IEEE 11073, true or false.
	Question Code
	Answers  map[string]Answer
	Bit      Code

	place int
}

// Answer is what a mark says as FHIR has it: a code, a text, or both.
type Answer struct{ Code, Text string }

// What a mark without words says, as it is stored.
const (
	Yes = "yes"
	No  = "no"
)

// Flag reports whether the mark says yes or no.
func (m *Mark) Flag() bool { return m.Words == nil }

var (
	zero = new(big.Rat)
	one  = big.NewRat(1, 1)
	half = big.NewRat(1, 2)
)

// RoundHalfUp rounds to the given number of decimals, halves upwards: 2.675 becomes 2.68. NaN and the infinities
// come back as they are.
func RoundHalfUp(value float64, decimals int) float64 {
	var buffer [32]byte
	text := strconv.AppendFloat(buffer[:0], value, 'f', -1, 64)
	if _, fraction, _ := strings.Cut(string(text), "."); len(fraction) <= decimals {
		return value + 0 // nothing to round; the sum turns -0 into 0
	}
	return convert(value, zero, one, decimals)
}

// convert adds, multiplies and rounds without a binary rounding error on the way; what is added and multiplied by are exact fractions. The float 2.675 really is
// 2.67499999999999982236431605997495353221893310546875, which would round down; the shortest decimal that reads back
// as the same float is what the caller wrote, so that decimal, as an exact fraction, is what is multiplied and
// rounded. Only the result becomes a float again, the one nearest to the rounded decimal.
func convert(value float64, plus, times *big.Rat, decimals int) float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return value
	}
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(value, 'g', -1, 64))
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	exact.Mul(exact.Add(exact, plus), times)
	exact.Mul(exact, new(big.Rat).SetInt(unit))
	exact.Add(exact, half)
	whole := new(big.Int).Div(exact.Num(), exact.Denom()) // the floor, as the denominator is positive
	result, _ := new(big.Rat).SetFrac(whole, unit).Float64()
	return result
}

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

// Decimals is the precision at which values are kept. Source: docs/decisions/observations.md, "Cross-field checks".
const Decimals = 2

// Range is what a measurement may be: from Min to Max, both included, in Unit.
// Source: the contract's limits; docs/decisions/observations.md, "Pulse-oximetry and glucose fields" and "Weight in pounds".
type Range struct {
	Min, Max float64
	Unit     string
}

// Contains reports whether value lies in the range; NaN never does.
func (r Range) Contains(value float64) bool { return value >= r.Min && value <= r.Max }

// Message is the complaint about a value outside the range.
func (r Range) Message() string {
	return fmt.Sprintf("Must be between %g and %g %s.", r.Min, r.Max, r.Unit)
}

// check complains when value lies outside the range.
func (r Range) check(c *validate.Checks, name string, value float64) bool {
	if r.Contains(value) {
		return true
	}
	c.Reject(name, r.Message())
	return false
}

// read returns the field's number with two decimals when it lies in the range, else nil after a complaint. The range is
// held against what was sent: 300.004 mmHg is not 300.
func (p *Parameter) read(c *validate.Checks, name string, f validate.Number, required bool, outside *Outside) *float64 {
	value := c.Number(name, f, required)
	if value == nil || !outside.admits(c, p, p.Range, name, *value) {
		return nil
	}
	return new(RoundHalfUp(*value, Decimals))
}
