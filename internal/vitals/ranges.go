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
func (r Range) check(c *input.Checks, name string, value float64) bool {
	if r.Contains(value) {
		return true
	}
	c.Reject(name, r.Message())
	return false
}

// read returns the field's number with two decimals when it lies in the range, else nil after a complaint. The range is
// held against what was sent: 300.004 mmHg is not 300.
func (r Range) read(c *input.Checks, name string, f input.Number, required bool) *float64 {
	value := c.Number(name, f, required)
	if value == nil || !r.check(c, name, *value) {
		return nil
	}
	return new(RoundHalfUp(*value, Decimals))
}
