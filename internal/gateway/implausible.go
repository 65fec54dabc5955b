package gateway

import (
	"errors"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Implausible is a measurement that is refused for values outside the ranges of what may be sent, or because its device's clock is ahead.
type Implausible struct {
	// Reading holds all values that were reported; Outside are those that no device should report.
	Reading vitals.Reading
	Outside vitals.Outside
	// Ahead is what the device's clock said where that lay in the future; the reading then has the time of receipt. Zero for a right clock.
	Ahead time.Time
	// Additions are those of the event that it makes when somebody confirms it.
	Additions []string
}

// implausible is a measurement of the event's.
func (e Event) implausible(r vitals.Reading, outside vitals.Outside) *Implausible {
	i := &Implausible{Reading: r, Outside: outside}
	i.Reading.DeviceID, i.Reading.MeasuredAt = e.DeviceID, e.At
	if e.ahead {
		i.Ahead, i.Reading.MeasuredAt = e.At, e.ReceivedAt.UTC().Truncate(time.Microsecond)
	}
	return i
}

// KnownAt is when the event was, as far as anybody knows: what a device says of the future was when it came.
func (e Event) KnownAt() time.Time {
	if e.ahead {
		return e.ReceivedAt
	}
	return e.At
}

// onlyAhead reports whether nothing is wrong with what was checked but that the device's clock is ahead.
func (e Event) onlyAhead(err error) bool {
	refused, ok := errors.AsType[*fault.Error](err)
	return ok && e.ahead && len(refused.Fields) == 1 && refused.Fields["timestamp"] != nil
}

// readImplausible reads the values of a measurement that was refused once more; nil when more is wrong with it than their ranges
// and the device's clock.
func (b eventBody) readImplausible(c *validate.Checks, event Event) *Implausible {
	kind, supported := kindOf(event.measurement)
	if !supported || !b.Values.Given() {
		return nil
	}
	for field := range c.Fields {
		if !strings.HasPrefix(field, "values.") && (field != "timestamp" || !event.ahead) {
			return nil
		}
	}
	units, choice := kind.Units()
	unit := readUnit(validate.NewChecks(), b.Unit, units, choice)
	reading, outside, ok := kind.ReadSentOutside(b.Values.Value, unit)
	if !ok && event.ahead { // nothing may be wrong with its values
		own := validate.NewChecks()
		reading, outside = kind.ReadSent(own, b.Values.Value, unit), nil
		ok = own.Err() == nil
	}
	if !ok {
		return nil
	}
	return event.implausible(reading, outside)
}

// Completes reports whether what is implausible was measured with a reading that stands without it.
func (e Event) Completes() bool {
	return e.Implausible != nil && (e.Reading != nil || e.Addition != "")
}
