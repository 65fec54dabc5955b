package vitals

import (
	"cmp"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
)

// maxDeviceID is in characters. Source: docs/decisions/limits.md, "Maximum lengths".
const maxDeviceID = 128

// Envelope is what the body of every kind holds besides the measurement.
type Envelope struct {
	PatientID  validate.String `json:"patient_id"`
	DeviceID   validate.String `json:"device_id"`
	MeasuredAt validate.String `json:"measured_at"`
}

// Read returns the patient's UUID, the device id ("" when unknown) and the time of measurement in UTC, which may lie
// at most maxFuture ahead of now. For a caller who may leave out patient_id, fill it in before.
func (e Envelope) Read(c *validate.Checks, now time.Time, maxFuture time.Duration) (patientID, deviceID string, measuredAt time.Time) {
	patientID = c.UUID("patient_id", e.PatientID, true)
	deviceID = c.Text("device_id", e.DeviceID, validate.Optional(maxDeviceID).Filled().Identifier())
	measuredAt = c.Instant("measured_at", e.MeasuredAt, true)
	c.NotFuture("measured_at", measuredAt, now, maxFuture)
	return patientID, deviceID, measuredAt
}

// Body is the members of an object that holds a measurement, whatever its kind: each kind looks only at its own.
type Body = validate.Sent

func field[T any](b Body, name string) (f validate.Field[T]) {
	if raw := b.Member(name); raw != nil {
		_ = f.UnmarshalJSON(raw) // never fails: a wrong type is kept for the checks
	}
	return f
}

// Read reads the body of a caller of the API: a parameter in another unit has a field of its own. The reading is without
// time and device, and to be used only when c has nothing to complain about.
func (d *Definition) Read(c *validate.Checks, b Body) Reading {
	return d.read(c, b, nil).coherent(c, d)
}

func (d *Definition) read(c *validate.Checks, b Body, outside *Outside) Reading {
	r := Reading{Kind: d.Kind}
	for _, p := range d.All {
		name, number, in := p.Column, field[float64](b, p.Column), (*Unit)(nil)
		for i := range p.Units {
			other := field[float64](b, p.Units[i].Field)
			if !filled(other) {
				continue
			}
			if filled(number) {
				c.Reject(p.Units[i].Field, "Send either "+name+" or "+p.Units[i].Field+", not both.")
				number, in = validate.Number{}, &p.Units[i]
				break
			}
			name, number, in = p.Units[i].Field, other, &p.Units[i]
		}
		if in != nil && !filled(number) {
			continue // two were sent
		}
		r.take(c, p, name, number, in, in.name(), outside)
	}
	for _, m := range d.Marks {
		r.Say(m, m.read(c, b))
	}
	return r
}

// ReadSent reads the values of a gateway, in its words and in the unit it named, one of [Definition.Units] or "".
func (d *Definition) ReadSent(c *validate.Checks, b Body, unit string) Reading {
	return d.readSent(c, b, unit, nil).coherent(c, d)
}

func (d *Definition) readSent(c *validate.Checks, b Body, unit string, outside *Outside) Reading {
	r := Reading{Kind: d.Kind}
	for _, p := range d.All {
		name, number, in := p.Name, field[float64](b, p.Name), (*Unit)(nil)
		if also := d.Fields[p]; also != "" {
			switch other := field[float64](b, also); {
			case !filled(other):
			case !filled(number):
				name, number = also, other
			case other != number:
				c.Reject(also, "Must agree with "+name+".")
			}
		}
		if word, ok := p.shown(b.Member(name)); ok {
			r.values[p.place] = &word.Value
			r.Say(Comparator, word.Comparator)
			continue
		}
		if p == d.Main() {
			in = p.unit(unit)
		}
		if in != nil && !filled(number) {
			number, in = validate.Number{}, nil
		}
		r.take(c, p, name, number, in, unit, outside)
	}
	for _, m := range d.Marks {
		if !m.Unsent {
			r.Say(m, m.read(c, b))
		}
	}
	return r
}

// SentFields are the fields of a gateway's values, of whatever kind.
func SentFields() (names []string) {
	for _, p := range Parameters {
		names = append(names, p.Name)
	}
	for _, m := range Marks {
		if !m.Unsent {
			names = append(names, m.Name)
		}
	}
	return names
}

// take reads one number, which came in another unit when in is not nil; what was sent in one is kept beside what it comes to.
// Source: docs/decisions/observations.md, "Weight in pounds", "Pulse-oximetry and glucose fields" and "Glucose units".
func (r *Reading) take(c *validate.Checks, p *Parameter, name string, number validate.Number, in *Unit, unit string, outside *Outside) {
	if in == nil {
		r.values[p.place] = p.read(c, name, number, slices.Contains(r.Kind.Definition().Must, p), outside)
		return
	}
	sent := c.Number(name, number, true)
	if sent == nil || (in.Range != Range{} && !outside.admits(c, p, in.Range, name, *sent)) {
		return
	}
	value := in.Convert(*sent)
	if in.Range != (Range{}) || outside.admits(c, p, p.Range, name, value) {
		r.values[p.place], r.OriginalValue, r.OriginalUnit = &value, sent, unit
	}
}

func (r Reading) coherent(c *validate.Checks, d *Definition) Reading {
	if d.Coherent != nil {
		d.Coherent(r, c)
	}
	return r
}

// read returns the word of a mark; two fields for it must agree.
func (m *Mark) read(c *validate.Checks, b Body) string {
	if m.Flag() {
		said := c.Boolean(m.Name, field[bool](b, m.Name), false)
		switch {
		case said == nil:
			return ""
		case *said:
			return Yes
		}
		return No
	}
	word := c.Text(m.Name, field[string](b, m.Name), validate.Optional(0).OneOf(m.Words...))
	if m.Also == "" {
		return word
	}
	var words []string
	for _, pair := range m.AlsoWords {
		words = append(words, pair[0])
	}
	other := c.Text(m.Also, field[string](b, m.Also), validate.Optional(0).OneOf(append(words, m.Words...)...))
	for _, pair := range m.AlsoWords {
		if other == pair[0] {
			other = pair[1]
		}
	}
	if word != "" && other != "" && word != other {
		c.Reject(m.Also, "Must agree with "+m.Name+".")
	}
	return cmp.Or(word, other)
}

// unit is the other unit that a gateway's word means, nil for the parameter's own.
func (p *Parameter) unit(word string) *Unit {
	for i := range p.Units {
		if slices.Contains(p.Units[i].Words, word) {
			return &p.Units[i]
		}
	}
	return nil
}

func (u *Unit) name() string {
	if u == nil {
		return ""
	}
	return u.Name
}

// shown is what a device shows in place of a number, in whatever case.
func (p *Parameter) shown(raw jsontext.Value) (Shown, bool) {
	if len(p.Shown) == 0 || raw.Kind() != '"' {
		return Shown{}, false
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return Shown{}, false
	}
	for _, s := range p.Shown {
		if s.Word == strings.ToUpper(strings.TrimSpace(text)) {
			return s, true
		}
	}
	return Shown{}, false
}

// filled reports whether the caller sent something in this field, of whatever type.
func filled(f validate.Number) bool { return f.Sent() && !f.Null() }
