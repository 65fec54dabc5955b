package vitals

import (
	"slices"

	"github.com/vigilhealth/vigil/internal/validate"
)

// OutOfRange are the parameters of a reading with values outside the range that may be sent. Such a reading is rejected, and the care team
// is notified, because it may be the worst value of all. A nil OutOfRange accepts none. Source: docs/decisions/observations.md,
// "Implausible values".
type OutOfRange []*Parameter

// plausibleNumbers bounds what counts as a value at all: a number beyond it is an error of the sender.
var plausibleNumbers = Range{Min: -100_000_000, Max: 100_000_000}

// admits reports whether a value is accepted: it is in range, or recorded as out of range.
func (o *OutOfRange) admits(c *validate.Checks, p *Parameter, r Range, name string, value float64) bool {
	if o == nil || !plausibleNumbers.Contains(value) {
		return r.check(c, name, value)
	}
	if !r.Contains(value) && !slices.Contains(*o, p) {
		*o = append(*o, p)
	}
	return true
}

// ReadOutOfRange reads a body that [Definition.Read] rejected. ok: its only errors are values out of range.
func (d *Definition) ReadOutOfRange(b Body) (r Reading, outside OutOfRange, ok bool) {
	c := validate.NewChecks()
	r = d.read(c, b, &outside)
	return r, outside, c.Err() == nil && len(outside) > 0
}

// ReadGatewayOutOfRange reads the values of a rejected gateway event, as far as they can be read.
func (d *Definition) ReadGatewayOutOfRange(b Body, unit string) (r Reading, outside OutOfRange) {
	r = d.readGateway(validate.NewChecks(), validate.NewChecks(), b, unit, &outside)
	return r, outside
}

// LikelyUnit returns the unit of values without a readable one: the only unit with the main value in its range, or the parameter's own if
// several are possible and the value has bounds, so that a dangerous value in either unit is one. known is false if the unit is uncertain.
func (d *Definition) LikelyUnit(b Body) (unit string, known bool) {
	words, _ := d.Units()
	possible := map[*Unit]string{}
	for _, word := range words {
		unit := d.Main().unit(word)
		if r := d.readGateway(validate.NewChecks(), validate.NewChecks(), b, word, nil); r.Value(d.Main()) != nil && possible[unit] == "" {
			possible[unit] = word
		}
	}
	if len(possible) == 1 {
		for _, unit = range possible {
			return unit, true
		}
	}
	return words[0], len(d.Main().Bounds) > 0
}

// OutOfRange finds the values out of range in a reading that was not read from a [Body]. ok: there are no other errors.
func (r Reading) OutOfRange() (outside OutOfRange, ok bool) {
	c := validate.NewChecks()
	r.check(c, &outside)
	return outside, c.Err() == nil && len(outside) > 0
}

// OutOfRange returns the parameter if the value is out of range.
func (p *Parameter) OutOfRange(value float64) (outside OutOfRange) {
	outside.admits(validate.NewChecks(), p, p.Range, p.Column, value)
	return outside
}

// OnlyValues returns the reading with only these parameters, and without qualifiers.
func (r Reading) OnlyValues(parameters []*Parameter) Reading {
	rest := Reading{Kind: r.Kind, MeasuredAt: r.MeasuredAt, DeviceID: r.DeviceID}
	for _, p := range parameters {
		rest.values[p.index] = r.values[p.index]
	}
	return rest
}

// IsIncoherent reports whether the only errors of a rejected body are values that contradict each other.
func (d *Definition) IsIncoherent(b Body) bool {
	values, relation := validate.NewChecks(), validate.NewChecks()
	r := d.read(values, b, nil)
	if d.CheckCoherence != nil {
		d.CheckCoherence(r, relation)
	}
	return values.Err() == nil && relation.Err() != nil
}
