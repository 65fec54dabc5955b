package gateway

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Implausible is a measurement that is rejected: for values out of range, because its device has a future clock, or for other errors.
type Implausible struct {
	// Reading has all reported values; OutOfRange are those that no device should report.
	Reading    vitals.Reading
	OutOfRange vitals.OutOfRange
	// FutureTime is the device's time if it was in the future. Zero for a right clock.
	FutureTime time.Time
	// IsDatedByReceipt: the reading has the time of receipt, because the device's is in the future or cannot be read.
	IsDatedByReceipt bool
	// RejectedFor are the fields with errors other than a value out of range and a time in the future.
	RejectedFor []string
	// IsIncomplete: required values are missing or cannot be read, so it cannot be confirmed.
	IsIncomplete bool
	// Parts are those of the event that a confirmation makes of it.
	Parts []string
}

// newImplausible returns an implausible measurement of the event.
func (e Event) newImplausible(r vitals.Reading, outside vitals.OutOfRange) *Implausible {
	i := &Implausible{Reading: r, OutOfRange: outside}
	i.Reading.DeviceID, i.Reading.MeasuredAt = e.DeviceID, e.At
	if e.isFutureClock {
		i.FutureTime = e.At
	}
	if e.isFutureClock || e.At.IsZero() {
		i.IsDatedByReceipt, i.Reading.MeasuredAt = true, e.ReceivedAt.UTC().Truncate(time.Microsecond)
	}
	return i
}

// AsConflicting returns the event of a reading that has the time of another one with other values: the device's clock may have stopped, so the
// reading has the time of receipt.
func (e Event) AsConflicting() Event {
	i := &Implausible{Reading: *e.Reading, IsDatedByReceipt: true, RejectedFor: []string{"timestamp"}, Parts: e.Parts}
	i.Reading.MeasuredAt = e.ReceivedAt.UTC().Truncate(time.Microsecond)
	e.Implausible, e.Reading = i, nil
	return e
}

// EffectiveTime returns the time of the event; the time of receipt if the event's is in the future or cannot be read.
func (e Event) EffectiveTime() time.Time {
	if e.isFutureClock || e.At.IsZero() {
		return e.ReceivedAt
	}
	return e.At
}

// onlyFutureClock reports whether the only error is a future clock.
func (e Event) onlyFutureClock(err error) bool {
	refused, ok := errors.AsType[*fault.Error](err)
	return ok && e.isFutureClock && len(refused.Fields) == 1 && refused.Fields["timestamp"] != nil
}

// readImplausible parses the readable values of a rejected measurement; nil for none. Without a
// known kind, the names of the values determine it.
func (b eventBody) readImplausible(raw []byte, rejected fault.Fields, event Event) *Implausible {
	values := readLenient(b, raw)
	kind, supported := kindOf(event.measurement)
	isOwn := func(m validate.Member) bool { return supported && kind.HasField(m.Name) }
	if !slices.ContainsFunc(values.body, isOwn) {
		kind = likelyKind(values.body)
	}
	if kind == nil {
		return nil
	}
	if values.unit != "" {
		b.Unit = validate.Of(values.unit)
	}
	if kind.Kind == vitals.BloodPressure && (!b.Unit.Given() || b.Unit.Value == "" || isKPa(b.Unit.Value)) {
		if converted, ok := fromKPa(values.body); ok { // as the only unit in which they are possible
			values.body = converted
		}
	}
	if kind.Kind == vitals.BloodPressure {
		if converted, ok := fromPressureUnit(values.body, mmHgPerPa); ok { // with any stated unit: no other makes them possible
			values.body, b.Unit = converted, validate.Of(vitals.UnitMmHg)
		}
	}
	units, choice := kind.Units()
	unit, known := readUnit(validate.NewChecks(), b.Unit, units, choice), true
	if choice && unit == "" {
		unit, known = kind.LikelyUnit(values.body)
	}
	reading, outside := kind.ReadGatewayOutOfRange(values.body, unit)
	if !known || len(reading.ByColumn()) == 0 {
		return nil
	}
	i := event.newImplausible(reading, outside)
	i.IsIncomplete = slices.ContainsFunc(kind.Required, func(p *vitals.Parameter) bool { return reading.Value(p) == nil })
	for _, field := range slices.Sorted(maps.Keys(rejected)) {
		name, isValue := strings.CutPrefix(field, "values.")
		isRange := slices.ContainsFunc(outside, func(p *vitals.Parameter) bool { return p.Name == name || kind.FieldAliases[p] == name })
		if isValue && isRange || field == "timestamp" && event.isFutureClock {
			continue
		}
		i.RejectedFor = append(i.RejectedFor, field)
	}
	return i
}

// readUnknown reads an event of an unknown type. With measured values it counts as a measurement of
// an unsupported kind, so that a misspelled type does not hide dangerous values.
func (b eventBody) readUnknown(raw []byte, maxFuture time.Duration, event *Event) {
	c := validate.NewChecks()
	b.readEnvelope(c, c, event)
	if event.Vendor != Contract { // the adapters name what is no patient's
		return
	}
	event.At = c.Instant("timestamp", b.Timestamp, false)
	event.isFutureClock = event.At.After(event.ReceivedAt.Add(maxFuture))
	measured := *event
	measured.MeasurementType = c.Text("measurement_type", b.MeasurementType, validate.Optional(maxWord))
	measured.measurement = strings.ToLower(measured.MeasurementType)
	measured.Implausible = b.readImplausible(raw, fault.Fields{"event_type": nil}, measured)
	if measured.Implausible == nil {
		event.At, event.isFutureClock = time.Time{}, false
		return
	}
	*event = measured
	event.Type, event.isUnknownType, event.measurement = MeasurementCreated, true, ""
}

// dangerousForeignValues returns the values of another kind and their errors if one is dangerous: they alert
// like an event of their own. It is nil if they may be left out.
func (b eventBody) dangerousForeignValues(raw []byte, leftOut fault.Fields, event Event) (found *Implausible, rejected fault.Fields) {
	foreign := vitals.Body{}
	rejected = fault.Fields{}
	for _, m := range b.Values.Value {
		if field := "values." + m.Name; slices.Contains(leftOut[field], foreignValue) {
			foreign, rejected[field] = append(foreign, m), leftOut[field]
		}
	}
	if len(foreign) == 0 {
		return nil, nil
	}
	b.Values = validate.Of(foreign)
	if found = b.readImplausible(raw, rejected, event); !found.IsDangerous() {
		return nil, nil
	}
	found.RejectedFor = slices.Sorted(maps.Keys(rejected))
	return found, rejected
}

// IsDangerous reports whether a value is out of range or beyond a default critical bound.
func (i *Implausible) IsDangerous() bool {
	return i != nil && isDangerousReading(i.Reading, i.OutOfRange)
}

// IsDangerous reports the same of an event, whether its values can be stored or not.
func (e Event) IsDangerous() bool {
	return e.Implausible.IsDangerous() || e.Reading != nil && isDangerousReading(*e.Reading, nil)
}

func isDangerousReading(r vitals.Reading, outside vitals.OutOfRange) bool {
	return len(outside) > 0 || slices.ContainsFunc(r.Kind.Definition().All, func(p *vitals.Parameter) bool {
		value := r.Value(p)
		return value != nil && isBeyondDefaults(p, *value)
	})
}

// IsPartImplausible reports whether the implausible values belong to a reading that is valid without them.
func (e Event) IsPartImplausible() bool {
	return e.Implausible != nil && (e.Reading != nil && e.Reading.Kind == e.Implausible.Reading.Kind || e.Part != "")
}
