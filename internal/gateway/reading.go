package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// kindOf returns the kind of a gateway's word in any spelling. Source: docs/decisions/gateway.md, "`values` shapes".
func kindOf(word string) (*vitals.Definition, bool) {
	isSpelling := func(known string) bool { return fold(known) == fold(word) }
	for _, d := range vitals.Definitions {
		if isSpelling(string(d.Kind)) || slices.ContainsFunc(d.Words, isSpelling) {
			return d, true
		}
	}
	return nil, false
}

// foreignValue is the error of a value that another kind has.
const foreignValue = "This is not a value of the measurement type."

// readMeasurement reads the values by the rules of the kind, the same for every vendor. An unsupported measurement type gives a reading
// without a kind. Errors of side values go to side.
func (b eventBody) readMeasurement(c, side *validate.Checks, event *Event) vitals.Reading {
	event.MeasurementType = c.Text("measurement_type", b.MeasurementType, validate.Required(maxWord))
	event.measurement = strings.ToLower(event.MeasurementType)
	kind, supported := kindOf(event.measurement)
	if !supported && event.measurement != "" {
		return vitals.Reading{}
	}
	if !b.Values.Given() {
		c.Reject("values", "An object is required.")
	}
	if !supported {
		return vitals.Reading{}
	}
	event.measurement = string(kind.Kind)
	if isKPa(b.Unit.Value) && kind.Kind == vitals.BloodPressure && b.Values.Given() {
		if values, ok := fromKPa(b.Values.Value); ok {
			b.Values, b.Unit = validate.Of(values), validate.Of(vitals.UnitMmHg)
		}
	}
	units, choice := kind.Units()
	unit := readUnit(c, b.Unit, units, choice)
	if !b.Values.Given() {
		return vitals.Reading{}
	}
	for _, m := range b.Values.Value {
		isOther := func(d *vitals.Definition) bool { return d.HasField(m.Name) }
		if m.Raw.Kind() != 'n' && !kind.HasField(m.Name) && slices.ContainsFunc(vitals.Definitions, isOther) {
			side.Reject("values."+m.Name, foreignValue)
		}
	}
	own, ownSide := validate.NewChecks(), validate.NewChecks()
	reading := kind.ReadGateway(own, ownSide, b.Values.Value, unit)
	for field, messages := range ownSide.Fields {
		side.Fields["values."+field] = messages
	}
	for field, messages := range own.Fields {
		for _, message := range messages {
			if choice && unit == "" && message == kind.Main().Range.Message() {
				continue // the range does not apply if the unit is missing or unknown
			}
			c.Reject("values."+field, message)
		}
	}
	return reading
}

// readUnit returns the unit in the spelling of units; "" if it is optional and missing, or after an error.
func readUnit(c *validate.Checks, f validate.String, units []string, must bool) string {
	unit := text(c, "unit", f, must, maxWord)
	if unit == "" {
		return ""
	}
	i := slices.IndexFunc(units, func(k string) bool { return strings.EqualFold(k, unit) })
	if i < 0 {
		c.Reject("unit", "Must be one of: "+strings.Join(units, ", ")+".")
		return ""
	}
	return units[i]
}

// Measurement is an event as the gateway sends it, for the simulator and tests: Body and Sign make a delivery of it. Empty members are not
// sent, so with another EventType it makes device and hub events.
type Measurement struct {
	EventType       EventType `json:"event_type"` // measurement.created if empty
	DeviceID        string    `json:"device_id,omitempty"`
	PatientID       string    `json:"patient_id,omitempty"`
	MeasurementType string    `json:"measurement_type,omitempty"`
	Values          Values    `json:"values,omitzero"`
	Unit            string    `json:"unit,omitempty"`
	Timestamp       time.Time `json:"timestamp,omitzero"`
	DeviceModel     string    `json:"device_model,omitempty"`
	BatteryLevel    *int      `json:"battery_level,omitempty"`   // percent
	SignalStrength  *int      `json:"signal_strength,omitempty"` // dBm
	HubID           string    `json:"hub_id,omitempty"`
}

// Values are the values of a Measurement, in its Unit.
type Values = validate.OrderedObject

// Body returns the JSON of the event.
func (m Measurement) Body() ([]byte, error) {
	m.EventType = cmp.Or(m.EventType, MeasurementCreated)
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s event: %w", m.EventType, err)
	}
	return body, nil
}

// PatientIdentifier returns the patient that the body of an event names, also if the body is invalid; "" for none. For a list it is the
// first one's.
func PatientIdentifier(body []byte) string {
	var all []json.RawMessage
	if json.Unmarshal(body, &all) == nil && len(all) > 0 {
		body = all[0]
	}
	var sent struct {
		PatientID validate.String `json:"patient_id"`
	}
	if err := validate.DecodeObject(body, &sent); err != nil || utf8.RuneCountInString(sent.PatientID.Value) > maxPatientID {
		return ""
	}
	return validate.CleanLine(sent.PatientID.Value)
}
