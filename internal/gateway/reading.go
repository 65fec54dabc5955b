package gateway

import (
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// kindOf is the kind that the gateway means by a word in lower case.
// Source: docs/decisions/gateway.md, "`values` shapes".
func kindOf(word string) (*vitals.Definition, bool) {
	for _, d := range vitals.Definitions {
		if word == string(d.Kind) || slices.Contains(d.Words, word) {
			return d, true
		}
	}
	return nil, false
}

// readMeasurement reads the values by the rules of the kind: one set of rules, whoever sends. A measurement type without
// a kind gives a reading without a kind.
func (b eventBody) readMeasurement(c *input.Checks, event *Event) vitals.Reading {
	event.MeasurementType = c.Text("measurement_type", b.MeasurementType, input.Required(maxWord))
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
	units, choice := kind.Units()
	unit := readUnit(c, b.Unit, units, choice)
	if !b.Values.Given() {
		return vitals.Reading{}
	}
	own := input.NewChecks()
	reading := kind.ReadSent(own, b.Values.Value, unit)
	for field, messages := range own.Fields {
		for _, message := range messages {
			if choice && unit == "" && message == kind.Main().Range.Message() {
				continue // it means nothing about a value whose unit is missing or unknown
			}
			c.Reject("values."+field, message)
		}
	}
	return reading
}

// readUnit returns the unit in the spelling of known, or "" when it may be and is left out, or after a complaint.
func readUnit(c *input.Checks, f input.String, known []string, must bool) string {
	unit := text(c, "unit", f, must, maxWord)
	if unit == "" {
		return ""
	}
	i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, unit) })
	if i < 0 {
		c.Reject("unit", "Must be one of: "+strings.Join(known, ", ")+".")
		return ""
	}
	return known[i]
}
