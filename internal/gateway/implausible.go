package gateway

import (
	"errors"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Implausible is a measurement that is rejected for values out of range, or because its device has a future clock.
type Implausible struct {
	// Reading has all reported values; OutOfRange are those that no device should report.
	Reading    vitals.Reading
	OutOfRange vitals.OutOfRange
	// Ahead is the device's time if it was in the future; the reading then has the time of receipt. Zero for a right clock.
	Ahead time.Time
	// Additions are those of the event that a confirmation makes of it.
	Additions []string
}

// newImplausible returns an implausible measurement of the event.
func (e Event) newImplausible(r vitals.Reading, outside vitals.OutOfRange) *Implausible {
	i := &Implausible{Reading: r, OutOfRange: outside}
	i.Reading.DeviceID, i.Reading.MeasuredAt = e.DeviceID, e.At
	if e.isFutureClock {
		i.Ahead, i.Reading.MeasuredAt = e.At, e.ReceivedAt.UTC().Truncate(time.Microsecond)
	}
	return i
}

// EffectiveTime returns the time of the event; the time of receipt if the event's is in the future.
func (e Event) EffectiveTime() time.Time {
	if e.isFutureClock {
		return e.ReceivedAt
	}
	return e.At
}

// onlyFutureClock reports whether the only error is a future clock.
func (e Event) onlyFutureClock(err error) bool {
	refused, ok := errors.AsType[*fault.Error](err)
	return ok && e.isFutureClock && len(refused.Fields) == 1 && refused.Fields["timestamp"] != nil
}

// readImplausible parses the values of a rejected measurement again; nil if there are other errors than ranges and the clock.
func (b eventBody) readImplausible(c *validate.Checks, event Event) *Implausible {
	kind, supported := kindOf(event.measurement)
	if !supported || !b.Values.Given() {
		return nil
	}
	for field := range c.Fields {
		if !strings.HasPrefix(field, "values.") && (field != "timestamp" || !event.isFutureClock) {
			return nil
		}
	}
	units, choice := kind.Units()
	unit := readUnit(validate.NewChecks(), b.Unit, units, choice)
	reading, outside, ok := kind.ReadSentOutOfRange(b.Values.Value, unit)
	if !ok && event.isFutureClock { // the clock must be the only error
		own := validate.NewChecks()
		reading, outside = kind.ReadSent(own, b.Values.Value, unit), nil
		ok = own.Err() == nil
	}
	if !ok {
		return nil
	}
	return event.newImplausible(reading, outside)
}

// IsPart reports whether the implausible values belong to a reading that is valid without them.
func (e Event) IsPart() bool {
	return e.Implausible != nil && (e.Reading != nil || e.Addition != "")
}
