package gateway

import (
	"strings"

	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Implausible is a measurement with values outside the ranges of what may be sent.
type Implausible struct {
	// Reading holds all values that were reported; Outside are those that no device should report.
	Reading vitals.Reading
	Outside vitals.Outside
	// Additions are those of the event that it makes when somebody confirms it.
	Additions []string
}

// implausible is a measurement of the event's.
func (e Event) implausible(r vitals.Reading, outside vitals.Outside) *Implausible {
	r.DeviceID, r.MeasuredAt = e.DeviceID, e.At
	return &Implausible{Reading: r, Outside: outside}
}

// readImplausible reads the values of a measurement that was refused once more; nil when more is wrong with it than their ranges.
func (b eventBody) readImplausible(c *input.Checks, event Event) *Implausible {
	kind, supported := kindOf(event.measurement)
	if !supported || !b.Values.Given() {
		return nil
	}
	for field := range c.Fields {
		if !strings.HasPrefix(field, "values.") {
			return nil
		}
	}
	units, choice := kind.Units()
	reading, outside, ok := kind.ReadSentOutside(b.Values.Value, readUnit(input.NewChecks(), b.Unit, units, choice))
	if !ok {
		return nil
	}
	return event.implausible(reading, outside)
}

// Completes reports whether what is implausible was measured with a reading that stands without it.
func (e Event) Completes() bool {
	return e.Implausible != nil && (e.Reading != nil || e.Addition != "")
}
