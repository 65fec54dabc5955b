package gateway

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const pulseField = "values.pulse"

// vendorEvent is another vendor's event in the contract's format, so that the same rules check it.
type vendorEvent struct {
	vendor Vendor
	event  map[string]any
	values map[string]any
	unit   string
	// fieldNames are the vendor's names of fields, if different.
	fieldNames map[string]string
	// leftOut are the side values, in the contract's names, that the vendor sends without a unit.
	leftOut []string
}

// parse parses the event; raw is the vendor's body. A pulse that cannot be read is rejected without the rest of its reading, because it may be
// dangerous.
func (e vendorEvent) parse(raw []byte, maxFuture time.Duration, now time.Time) (Event, error) {
	event, err := e.parseContract(raw, maxFuture, now)
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok || refused.Fields[pulseField] == nil {
		return event, withFieldNames(err, e.nameOf)
	}
	delete(e.values, vitals.Pulse.Name)
	rest, restErr := e.parseContract(raw, maxFuture, now)
	if event.Implausible != nil { // with the pulse
		rest.Implausible = event.Implausible
	}
	if restErr != nil {
		event.Implausible = rest.Implausible
		return event, withFieldNames(err, e.nameOf)
	}
	rest.LeftOut = append(rest.LeftOut, vitals.Pulse.Name)
	rest.RejectedValues = fault.Fields{e.nameOf(pulseField): refused.Fields[pulseField]}
	return rest, nil
}

func (e vendorEvent) parseContract(raw []byte, maxFuture time.Duration, now time.Time) (Event, error) {
	if e.values != nil {
		e.event["values"], e.event["unit"] = e.values, e.unit
	}
	body, err := json.Marshal(e.event)
	if err != nil {
		return Event{Vendor: e.vendor}, fault.New(fault.Invalid, "parse_error", "The request body cannot be read.").Because(err)
	}
	event, err := ContractAdapter{MaxFuture: maxFuture, vendor: e.vendor}.Parse(body, now)
	event.Vendor, event.bodyHash = e.vendor, sha256.Sum256(raw)
	if err == nil {
		event.LeftOut = slices.Compact(slices.Sorted(slices.Values(append(event.LeftOut, e.leftOut...))))
	}
	return event, err
}

// addUndocumented adds the values of a measurement in a member of the vendor's body that its documentation does not have, for an alert: other
// members, or a text in place of the object.
func (e *vendorEvent) addUndocumented(raw []byte, member string, documented shape) {
	if e.event["event_type"] != string(MeasurementCreated) {
		return
	}
	members, _ := membersOf(raw)
	for _, m := range members {
		if m.Name != member {
			continue
		}
		if m.Raw.Kind() == '"' {
			e.values, e.event["values"] = nil, m.Raw
			continue
		}
		values, _ := membersOf(m.Raw)
		for _, v := range values {
			if _, known := documented[v.Name]; !known && e.values != nil {
				e.values[v.Name] = v.Raw
				var text string
				if json.Unmarshal(v.Raw, &text) == nil { // a number as a text, as this vendor sends them
					e.values[v.Name] = cellValue(strings.TrimSpace(text))
				}
			}
		}
	}
}

// nameOf returns the sender's name of a field.
func (e vendorEvent) nameOf(field string) string {
	field = strings.TrimPrefix(field, "values.")
	if name, other := e.fieldNames[field]; other {
		return name
	}
	return field
}

// withFieldNames returns a validation fault with the sender's field names.
func withFieldNames(err error, name func(field string) string) error {
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok || len(refused.Fields) == 0 {
		return err
	}
	fields := fault.Fields{}
	for field, messages := range refused.Fields {
		for _, message := range messages {
			fields.Add(name(field), message)
		}
	}
	return fault.Validation(fields)
}

// scalar is a JSON value as text, for vendors that send numbers as numbers and as strings; null is "".
type scalar string

// UnmarshalJSON never fails: what is no scalar becomes a text that every check rejects.
func (s *scalar) UnmarshalJSON(raw []byte) error {
	var text string
	switch {
	case json.Unmarshal(raw, &text) == nil:
		*s = scalar(strings.TrimSpace(text))
	case string(raw) != "null":
		*s = scalar(raw)
	}
	return nil
}

// texts returns the members of an event that were sent.
func texts(members map[string]scalar) map[string]any {
	event := map[string]any{}
	for name, value := range members {
		if value != "" {
			event[name] = string(value)
		}
	}
	return event
}

// numbers returns the values of a measurement, numeric where possible.
func numbers(members map[string]scalar) map[string]any {
	values := map[string]any{}
	for name, value := range members {
		if value != "" && name != "" {
			values[name] = cellValue(string(value))
		}
	}
	return values
}

// decode decodes one object.
func decode[T any](raw []byte) (T, error) {
	var sent T
	err := validate.DecodeObject(raw, &sent)
	return sent, err
}
