// Package vitals defines the kinds of measurement: their parameters, units, ranges and codes, unit conversion, and how a request body
// becomes a reading. A kind is one file that registers a value; other code iterates over the kinds and names none. The package is pure: it
// does not identify patients, evaluate values (alerts), store or deliver. Rules: docs/decisions/observations.md.
package vitals

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Source is the source of a reading.
type Source string

// The sources.
const (
	SourceGateway Source = "gateway"
	SourceAPI     Source = "api"
	SourcePortal  Source = "patient_portal"
)

// Origin is who is responsible for the values of a reading.
type Origin string

// The origins. A manual entry has its person's origin, also if it names a device.
const (
	OriginDevice  Origin = "device"  // an authenticated gateway or vendor
	OriginMachine Origin = "machine" // a machine client
	OriginImport  Origin = "import"  // a file
	OriginStaff   Origin = "staff"
	OriginPatient Origin = "patient" // or another user of the patient's account
)

// Origins are all origins.
var Origins = []string{string(OriginDevice), string(OriginMachine), string(OriginImport), string(OriginStaff), string(OriginPatient)}

// CountsAsTransmission reports whether the values came from a device without manual entry: only those make a day of transmission. Source:
// docs/decisions/billing.md, "30-day period and the 16 days (99454)".
func (o Origin) CountsAsTransmission() bool {
	return o == OriginDevice || o == OriginMachine || o == OriginImport
}

// CanResolve reports whether a reading of this origin may resolve an alert of another: a patient's manual entry does not resolve what a
// device measured or staff entered. Rows without an origin count as a device's. Source: docs/decisions/alerts.md, "Reading origins".
func (o Origin) CanResolve(raised Origin) bool { return o != OriginPatient || raised == OriginPatient }

// Origin returns the default origin of readings from a source.
func (s Source) Origin() Origin {
	switch s {
	case SourceGateway:
		return OriginDevice
	case SourcePortal:
		return OriginPatient
	}
	return OriginStaff
}

// The maximum numbers of parameters and qualifiers: a reading is copied often and therefore has arrays instead of maps.
const (
	maxParameters = 12
	maxQualifiers = 4
)

// Reading is a checked measurement in memory. Values are in the stored unit, with at most two decimals; nil means not measured.
type Reading struct {
	Kind       Kind
	MeasuredAt time.Time // UTC, microseconds
	DeviceID   string    // "" if unknown
	// WithoutZone: the time was sent without an offset, and read as UTC.
	WithoutZone bool

	values     [maxParameters]*float64
	qualifiers [maxQualifiers]string

	// The value before conversion, as sent.
	OriginalValue *float64
	OriginalUnit  string
}

// Value returns the value of a parameter, nil if it was not measured.
func (r *Reading) Value(p *Parameter) *float64 { return r.values[p.index] }

// ValuePtr returns the address of a parameter's value, for scanning.
func (r *Reading) ValuePtr(p *Parameter) **float64 { return &r.values[p.index] }

// Qualifier returns the value of a qualifier, "" for none.
func (r *Reading) Qualifier(m *Qualifier) string { return r.qualifiers[m.index] }

// SetQualifier sets the value of a qualifier.
func (r *Reading) SetQualifier(m *Qualifier, word string) { r.qualifiers[m.index] = word }

// With returns the reading with one more value.
func (r Reading) With(p *Parameter, value float64) Reading {
	r.values[p.index] = &value
	return r
}

// ByColumn returns the values by column.
func (r Reading) ByColumn() map[string]float64 {
	values := map[string]float64{}
	for _, p := range Parameters {
		if value := r.Value(p); value != nil {
			values[p.Column] = *value
		}
	}
	return values
}

// WithColumns returns the reading with values by column. Unknown columns are ignored.
func (r Reading) WithColumns(values map[string]float64) Reading {
	for _, p := range Parameters {
		if value, measured := values[p.Column]; measured {
			r = r.With(p, value)
		}
	}
	return r
}

// WithQualifier returns the reading with one more qualifier.
func (r Reading) WithQualifier(m *Qualifier, word string) Reading {
	r.qualifiers[m.index] = word
	return r
}

// Format keeps readings out of logs and error texts.
func (Reading) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[reading]") }

// LogValue keeps readings out of structured logs.
func (Reading) LogValue() slog.Value { return slog.StringValue("[reading]") }

// SameValues reports whether both readings have the same kind, values and qualifiers, in spite of different times, devices and original
// units.
func (r Reading) SameValues(o Reading) bool { return r.ValuesKey() == o.ValuesKey() }

// ValuesKey returns a canonical text of the kind and all values, equal exactly if SameValues. It is PHI: hash or seal it before it leaves
// the process. Stored keys depend on every byte of it. Source: docs/decisions/observations.md, "Duplicate readings outside the webhook".
func (r Reading) ValuesKey() string {
	var key strings.Builder
	key.WriteString(string(r.Kind))
	add := func(name, value string) { key.WriteString(" " + name + "=" + value) }
	for _, p := range Parameters {
		if value := r.Value(p); value != nil {
			add(p.Column, FormatNumber(*value))
		}
	}
	for _, m := range Qualifiers {
		switch text := r.Qualifier(m); {
		case text == "":
		case m.IsFlag():
			add(m.Name, strconv.FormatBool(text == Yes))
		default:
			add(m.Name, text)
		}
	}
	return key.String()
}

const (
	msgMissing   = "This field is required."
	msgNotOfKind = "Does not belong to this observation type."
)

// Check rejects, under the contract's field names, a reading that was not read from a [Body] if its kind does not exist, or values are
// missing, of another kind or out of range.
func (r Reading) Check(c *validate.Checks) {
	r.check(c, nil)
	if d := r.Kind.Definition(); d.CheckCoherence != nil {
		d.CheckCoherence(r, c)
	}
}

func (r Reading) check(c *validate.Checks, outside *OutOfRange) {
	d := r.Kind.Definition()
	if d == &undefined {
		c.Reject("observation_type", oneOf(KindNames))
		return
	}
	for _, p := range Parameters {
		switch value := r.Value(p); {
		case value == nil && slices.Contains(d.Required, p):
			c.Reject(p.Column, msgMissing)
		case value == nil:
		case !slices.Contains(d.All, p):
			c.Reject(p.Column, msgNotOfKind)
		default:
			outside.admits(c, p, p.Range, p.Column, *value)
		}
	}
	for _, m := range Qualifiers {
		switch text := r.Qualifier(m); {
		case text == "":
		case !slices.Contains(d.Qualifiers, m):
			c.Reject(m.Name, msgNotOfKind)
		case !m.IsFlag() && !slices.Contains(m.Words, text):
			c.Reject(m.Name, oneOf(m.Words))
		}
	}
}

func oneOf(words []string) string { return "Must be one of: " + strings.Join(words, ", ") + "." }

// Merge returns the reading with other values that its device measured at the same time. fits is false if they contradict it.
func (r Reading) Merge(a Reading) (whole Reading, fits bool) {
	fits = r.Kind == a.Kind
	for i, value := range a.values {
		if value != nil {
			fits = fits && (r.values[i] == nil || *r.values[i] == *value)
			r.values[i] = value
		}
	}
	for i, word := range a.qualifiers {
		if word != "" {
			fits = fits && (r.qualifiers[i] == "" || r.qualifiers[i] == word)
			r.qualifiers[i] = word
		}
	}
	return r, fits
}

// Except returns the values that the other reading lacks or has different.
func (r Reading) Except(other Reading) Reading {
	for i, value := range r.values {
		if value != nil && other.values[i] != nil && *value == *other.values[i] {
			r.values[i] = nil
		}
	}
	for i, word := range r.qualifiers {
		if word == other.qualifiers[i] {
			r.qualifiers[i] = ""
		}
	}
	return r
}

// WithoutOptional returns the reading without optional values that the other one lacks.
func (r Reading) WithoutOptional(other Reading) Reading {
	for _, p := range r.Kind.Definition().Optional {
		if other.values[p.index] == nil {
			r.values[p.index] = nil
		}
	}
	for _, m := range r.Kind.Definition().Qualifiers {
		if other.qualifiers[m.index] == "" {
			r.qualifiers[m.index] = ""
		}
	}
	return r
}

// Columns returns the columns of the reading's values.
func (r Reading) Columns() (names []string) {
	for _, p := range Parameters {
		if r.values[p.index] != nil {
			names = append(names, p.Column)
		}
	}
	for _, m := range Qualifiers {
		if r.qualifiers[m.index] != "" {
			names = append(names, m.Name)
		}
	}
	return names
}
