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

// Envelope is the part of a request body that all kinds share. A medical record number or the EMR's id may take the place of the patient's id.
type Envelope struct {
	PatientID         validate.String `json:"patient_id"`
	PatientMRN        validate.String `json:"patient_mrn"`
	PatientExternalID validate.String `json:"patient_external_id"`
	DeviceID          validate.String `json:"device_id"`
	MeasuredAt        validate.String `json:"measured_at"`
}

// WithoutZone reports whether the time was sent without an offset.
func (e Envelope) WithoutZone() bool {
	return e.MeasuredAt.Given() && !validate.HasZone(e.MeasuredAt.Value)
}

// Read returns the patient's UUID, the device id ("" if unknown) and the time of measurement in UTC, at most maxFuture ahead of now. If
// patient_id is optional for the caller, set it before.
func (e Envelope) Read(c *validate.Checks, now time.Time, maxFuture time.Duration) (patientID, deviceID string, measuredAt time.Time) {
	patientID = c.UUID("patient_id", e.PatientID, true)
	deviceID = c.Text("device_id", e.DeviceID, validate.Optional(maxDeviceID).Filled().Identifier())
	measuredAt = c.Instant("measured_at", e.MeasuredAt, true)
	c.NotFuture("measured_at", measuredAt, now, maxFuture)
	return patientID, deviceID, measuredAt
}

// Body is the members of an object with a measurement of any kind; each kind reads only its own.
type Body = validate.RawObject

func field[T any](b Body, name string) (f validate.Field[T]) {
	if raw := b.Member(name); raw != nil {
		_ = f.UnmarshalJSON(raw) // never fails: a wrong type is kept for the checks
	}
	return f
}

// Read reads a body from the API: a parameter in another unit has a field of its own. The reading has no time and device, and is valid only
// if c has no errors.
func (d *Definition) Read(c *validate.Checks, b Body) Reading {
	return d.read(c, b, nil).checkCoherence(c, d)
}

func (d *Definition) read(c *validate.Checks, b Body, outside *OutOfRange) Reading {
	r := Reading{Kind: d.Kind}
	for _, p := range d.All {
		name, number, in := p.Column, field[float64](b, p.Column), (*Unit)(nil)
		for i := range p.Units {
			other := field[float64](b, p.Units[i].Field)
			if !isFilled(other) {
				continue
			}
			if isFilled(number) {
				c.Reject(p.Units[i].Field, "Send either "+name+" or "+p.Units[i].Field+", not both.")
				number, in = validate.Number{}, &p.Units[i]
				break
			}
			name, number, in = p.Units[i].Field, other, &p.Units[i]
		}
		if in != nil && !isFilled(number) {
			continue // two were sent
		}
		r.readNumber(c, p, name, number, in, in.name(), outside)
	}
	for _, m := range d.Qualifiers {
		r.SetQualifier(m, m.read(c, b))
	}
	return r
}

// ReadGateway reads the values of a gateway, in its words and in the unit it named, one of [Definition.Units] or "". Errors of side values,
// which the reading can do without, go to side.
func (d *Definition) ReadGateway(c, side *validate.Checks, b Body, unit string) Reading {
	return d.readGateway(c, side, b, unit, nil).checkCoherence(c, d)
}

func (d *Definition) readGateway(c, side *validate.Checks, b Body, unit string, outside *OutOfRange) Reading {
	r := Reading{Kind: d.Kind}
	for _, p := range d.All {
		name, number, in := p.Name, field[float64](b, p.Name), (*Unit)(nil)
		if also := d.FieldAliases[p]; also != "" {
			switch other := field[float64](b, also); {
			case !isFilled(other):
			case !isFilled(number):
				name, number = also, other
			case other != number:
				c.Reject(also, "Must agree with "+name+".")
			}
		}
		if word, ok := p.displayWord(b.Member(name)); ok {
			r.values[p.index] = &word.Value
			r.SetQualifier(Comparator, word.Comparator)
			continue
		}
		if p == d.Main() {
			in = p.unit(unit)
		}
		if in != nil && !isFilled(number) {
			number, in = validate.Number{}, nil
		}
		if p == d.Side {
			r.readNumber(side, p, name, number, in, unit, nil)
			continue
		}
		r.readNumber(c, p, name, number, in, unit, outside)
	}
	for _, m := range d.Qualifiers {
		if !m.Internal {
			r.SetQualifier(m, m.read(side, b))
		}
	}
	return r
}

// HasField reports whether a field of a gateway's values is one of the kind.
func (d *Definition) HasField(name string) bool {
	return slices.ContainsFunc(d.All, func(p *Parameter) bool { return name == p.Name || name == d.FieldAliases[p] && name != "" }) ||
		slices.ContainsFunc(d.Qualifiers, func(m *Qualifier) bool { return !m.Internal && (name == m.Name || name == m.AltField && name != "") })
}

// GatewayFields returns the fields of a gateway's values of all kinds.
func GatewayFields() (names []string) {
	for _, p := range Parameters {
		names = append(names, p.Name)
	}
	for _, m := range Qualifiers {
		if !m.Internal {
			names = append(names, m.Name)
		}
	}
	return names
}

// readNumber reads one number, in another unit if in is not nil; the original value is stored next to the converted one. Source:
// docs/decisions/observations.md, "Weight in pounds", "Pulse-oximetry and glucose fields" and "Glucose units".
func (r *Reading) readNumber(c *validate.Checks, p *Parameter, name string, number validate.Number, in *Unit, unit string, outside *OutOfRange) {
	if in == nil {
		r.values[p.index] = p.read(c, name, number, slices.Contains(r.Kind.Definition().Required, p), outside)
		return
	}
	sent := c.Number(name, number, true)
	if sent == nil || (in.Range != Range{} && !outside.admits(c, p, in.Range, name, *sent)) {
		return
	}
	value := in.Convert(*sent)
	if in.Range != (Range{}) || outside.admits(c, p, p.Range, name, value) {
		r.values[p.index], r.OriginalValue, r.OriginalUnit = &value, sent, unit
	}
}

func (r Reading) checkCoherence(c *validate.Checks, d *Definition) Reading {
	if d.CheckCoherence != nil {
		d.CheckCoherence(r, c)
	}
	return r
}

// read returns the value of a qualifier; its two fields must agree.
func (q *Qualifier) read(c *validate.Checks, b Body) string {
	if q.IsFlag() {
		flag := c.Boolean(q.Name, field[bool](b, q.Name), false)
		switch {
		case flag == nil:
			return ""
		case *flag:
			return Yes
		}
		return No
	}
	word := c.Text(q.Name, field[string](b, q.Name), validate.Optional(0).OneOf(q.Words...))
	if q.AltField == "" {
		return word
	}
	var words []string
	for _, pair := range q.AltWords {
		words = append(words, pair[0])
	}
	other := c.Text(q.AltField, field[string](b, q.AltField), validate.Optional(0).OneOf(append(words, q.Words...)...))
	for _, pair := range q.AltWords {
		if other == pair[0] {
			other = pair[1]
		}
	}
	if word != "" && other != "" && word != other {
		c.Reject(q.AltField, "Must agree with "+q.Name+".")
		return ""
	}
	return cmp.Or(word, other)
}

// unit returns the other unit of a gateway's word, nil for the parameter's own.
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

// displayWord returns the word that a device shows instead of a number, in any case.
func (p *Parameter) displayWord(raw jsontext.Value) (DisplayWord, bool) {
	if len(p.DisplayWords) == 0 || raw.Kind() != '"' {
		return DisplayWord{}, false
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return DisplayWord{}, false
	}
	for _, s := range p.DisplayWords {
		if s.Word == strings.ToUpper(strings.TrimSpace(text)) {
			return s, true
		}
	}
	return DisplayWord{}, false
}

// isFilled reports whether the field was sent with a value of any type.
func isFilled(f validate.Number) bool { return f.Sent() && !f.Null() }
