package vitals

import (
	"fmt"

	"github.com/vigilhealth/vigil/internal/input"
)

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

// decimals is the precision at which values are kept. Source: docs/decisions/observations.md, "Cross-field checks".
const decimals = 2

// Range is what a measurement may be: from Min to Max, both included, in Unit.
type Range struct {
	Min, Max float64
	Unit     string
}

// The ranges a reading must keep.
// Source: the contract's limits; docs/decisions/observations.md, "Pulse-oximetry and glucose fields" and "Weight in pounds".
var (
	SystolicRange       = Range{60, 300, UnitMmHg}
	DiastolicRange      = Range{30, 200, UnitMmHg}
	PulseRange          = Range{30, 250, UnitBPM}
	WeightRange         = Range{20, 500, UnitKg}
	SpO2Range           = Range{50, 100, UnitPercent}
	PerfusionIndexRange = Range{0, 20, UnitPercent}
	GlucoseRange        = Range{20, 600, UnitMgDL}
	// GlucoseMmolRange is GlucoseRange for callers that send mmol/L: its ends convert to 20 and 600 mg/dL.
	GlucoseMmolRange = Range{1.1, 33.3, UnitMmolL}
)

// Contains reports whether value lies in the range; NaN never does.
func (r Range) Contains(value float64) bool { return value >= r.Min && value <= r.Max }

// Message is the complaint about a value outside the range.
func (r Range) Message() string {
	return fmt.Sprintf("Must be between %g and %g %s.", r.Min, r.Max, r.Unit)
}

// check complains when value lies outside the range.
func (r Range) check(c *input.Checks, name string, value float64) bool {
	if r.Contains(value) {
		return true
	}
	c.Reject(name, r.Message())
	return false
}

// number returns the field's number as sent when it lies in the range, else nil after a complaint.
func (r Range) number(c *input.Checks, name string, f input.Number, required bool) *float64 {
	value := c.Number(name, f, required)
	if value == nil || !r.check(c, name, *value) {
		return nil
	}
	return value
}

// read is number, kept with two decimals. The range is held against what was sent: 300.004 mmHg is not 300.
func (r Range) read(c *input.Checks, name string, f input.Number, required bool) *float64 {
	value := r.number(c, name, f, required)
	if value == nil {
		return nil
	}
	return new(RoundHalfUp(*value, decimals))
}
