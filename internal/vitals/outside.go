package vitals

import (
	"slices"
	"strconv"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Outside are the parameters of a reading whose values lie outside the range of what may be sent. Such a reading is no reading: it is
// refused, and people are told of it, because it may be the worst value of all. A nil Outside lets nothing through.
// Source: docs/decisions/observations.md, "Implausible values".
type Outside []*Parameter

// conceivable bounds what counts as a value at all: a number further out is a fault of whoever wrote it.
var conceivable = Range{Min: -10_000, Max: 10_000}

// admits reports whether a value may be taken: it lies in the range, or it is noted that it does not.
func (o *Outside) admits(c *validate.Checks, p *Parameter, r Range, name string, value float64) bool {
	if o == nil || !conceivable.Contains(value) {
		return r.check(c, name, value)
	}
	if !r.Contains(value) && !slices.Contains(*o, p) {
		*o = append(*o, p)
	}
	return true
}

// ReadOutside reads a body that [Definition.Read] refused. ok: nothing was wrong with it but values outside their ranges.
func (d *Definition) ReadOutside(b Body) (r Reading, outside Outside, ok bool) {
	c := validate.NewChecks()
	r = d.read(c, b, &outside)
	return r, outside, c.Err() == nil && len(outside) > 0
}

// ReadSentOutside reads the values of a gateway that [Definition.ReadSent] refused.
func (d *Definition) ReadSentOutside(b Body, unit string) (r Reading, outside Outside, ok bool) {
	c := validate.NewChecks()
	r = d.readSent(c, b, unit, &outside)
	return r, outside, c.Err() == nil && len(outside) > 0
}

// Outside finds the values outside their ranges of a reading that did not come through a [Body]. ok: nothing else is wrong with it.
func (r Reading) Outside() (outside Outside, ok bool) {
	c := validate.NewChecks()
	r.check(c, &outside)
	return outside, c.Err() == nil && len(outside) > 0
}

// Outside is the parameter, when the value lies outside its range.
func (p *Parameter) Outside(value float64) (outside Outside) {
	outside.admits(validate.NewChecks(), p, p.Range, p.Column, value)
	return outside
}

// Only returns the reading with no values but those of the parameters, and without marks.
func (r Reading) Only(parameters []*Parameter) Reading {
	rest := Reading{Kind: r.Kind, MeasuredAt: r.MeasuredAt, DeviceID: r.DeviceID}
	for _, p := range parameters {
		rest.values[p.place] = r.values[p.place]
	}
	return rest
}

// Say is a value in words: Systolic 204 mmHg.
func (p *Parameter) Say(value float64) string {
	return p.Label + " " + strconv.FormatFloat(value, 'f', -1, 64) + " " + p.Range.Unit
}
