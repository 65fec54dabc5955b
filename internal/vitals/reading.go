// Package vitals knows the kinds of measurement: what belongs to each, in which unit, within which range, how other units
// become the one that is kept, by which words and codes the world knows it, and what a caller's body must look like to
// become a reading. A kind is one file that declares a value; nothing else here or elsewhere names it. The package refuses
// to know whose reading it is, what is a dangerous value for that person (see alerts), how it is stored and how it is
// sent on.
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

// Source says by which way a reading came.
type Source string

// The sources.
const (
	SourceGateway Source = "gateway"
	SourceAPI     Source = "api"
	SourcePortal  Source = "patient_portal"
)

// Origin says who vouches for the values of a reading.
type Origin string

// The origins. What a person types is theirs, whatever device they name.
const (
	OriginDevice  Origin = "device"  // a gateway or vendor, signed
	OriginMachine Origin = "machine" // a program with credentials of its own
	OriginImport  Origin = "import"  // a file
	OriginStaff   Origin = "staff"
	OriginPatient Origin = "patient" // or whoever uses the patient's account
)

// Origins are all there are.
var Origins = []string{string(OriginDevice), string(OriginMachine), string(OriginImport), string(OriginStaff), string(OriginPatient)}

// Transmits reports whether the values came from a device without a hand in between: only those make a day of transmission.
// Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)".
func (o Origin) Transmits() bool {
	return o == OriginDevice || o == OriginMachine || o == OriginImport
}

// Settles reports whether a reading of this origin is reliable enough to settle what one of another origin raised: what a device
// measured, or staff vouch for, is not settled by what a patient typed. Rows from before origins were kept count as of a device.
// Source: docs/decisions/alerts.md, "Reading origins".
func (o Origin) Settles(raised Origin) bool { return o != OriginPatient || raised == OriginPatient }

// Origin is who vouches for readings that came this way, unless it is known better.
func (s Source) Origin() Origin {
	switch s {
	case SourceGateway:
		return OriginDevice
	case SourcePortal:
		return OriginPatient
	}
	return OriginStaff
}

// A reading has room for so many parameters and marks, of whatever kind: it is handed around for every reading that
// comes in, and is no map for that.
const (
	mostParameters = 12
	mostMarks      = 4
)

// Reading is a measurement that has been checked, in memory. Values are in the canonical unit, with at most two
// decimals; nil means not measured.
type Reading struct {
	Kind       Kind
	MeasuredAt time.Time // UTC, microseconds
	DeviceID   string    // "" when unknown

	values [mostParameters]*float64
	marks  [mostMarks]string

	// What the caller sent, when it was converted.
	OriginalValue *float64
	OriginalUnit  string
}

// Value is the value of a parameter, nil when it was not measured.
func (r *Reading) Value(p *Parameter) *float64 { return r.values[p.place] }

// Slot is where the value of a parameter is kept, to be filled.
func (r *Reading) Slot(p *Parameter) **float64 { return &r.values[p.place] }

// Says is the word of a mark, "" when it says nothing.
func (r *Reading) Says(m *Mark) string { return r.marks[m.place] }

// Say sets the word of a mark.
func (r *Reading) Say(m *Mark, word string) { r.marks[m.place] = word }

// With returns the reading with one more value.
func (r Reading) With(p *Parameter, value float64) Reading {
	r.values[p.place] = &value
	return r
}

// Saying returns the reading with one more mark.
func (r Reading) Saying(m *Mark, word string) Reading {
	r.marks[m.place] = word
	return r
}

// Format keeps readings out of logs and error texts.
func (Reading) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[reading]") }

// LogValue keeps readings out of structured logs.
func (Reading) LogValue() slog.Value { return slog.StringValue("[reading]") }

// SameValues reports whether both readings are of one kind and say the same, whenever and by whatever device they
// were taken and in whatever unit they came.
func (r Reading) SameValues(o Reading) bool { return r.ValuesKey() == o.ValuesKey() }

// ValuesKey is a canonical text of the kind and all values, equal exactly when SameValues. It holds health
// information: hash or seal it before it leaves the process. What is stored depends on every byte of it.
// Source: docs/decisions/observations.md, "Duplicate readings outside the webhook".
func (r Reading) ValuesKey() string {
	var key strings.Builder
	key.WriteString(string(r.Kind))
	add := func(name, value string) { key.WriteString(" " + name + "=" + value) }
	for _, p := range Parameters {
		if value := r.Value(p); value != nil {
			add(p.Column, strconv.FormatFloat(*value, 'f', -1, 64))
		}
	}
	for _, m := range Marks {
		switch said := r.Says(m); {
		case said == "":
		case m.Flag():
			add(m.Name, strconv.FormatBool(said == Yes))
		default:
			add(m.Name, said)
		}
	}
	return key.String()
}

const (
	msgMissing = "This field is required."
	msgForeign = "Does not belong to this observation type."
)

// Check complains, under the contract's field names, about a reading that did not come through a [Body]: a kind that does
// not exist, values that are missing, foreign to the kind or out of range.
func (r Reading) Check(c *validate.Checks) {
	r.check(c, nil)
	if d := r.Kind.Definition(); d.Coherent != nil {
		d.Coherent(r, c)
	}
}

func (r Reading) check(c *validate.Checks, outside *Outside) {
	d := r.Kind.Definition()
	if d == &undefined {
		c.Reject("observation_type", oneOf(KindNames))
		return
	}
	for _, p := range Parameters {
		switch value := r.Value(p); {
		case value == nil && slices.Contains(d.Must, p):
			c.Reject(p.Column, msgMissing)
		case value == nil:
		case !slices.Contains(d.All, p):
			c.Reject(p.Column, msgForeign)
		default:
			outside.admits(c, p, p.Range, p.Column, *value)
		}
	}
	for _, m := range Marks {
		switch said := r.Says(m); {
		case said == "":
		case !slices.Contains(d.Marks, m):
			c.Reject(m.Name, msgForeign)
		case !m.Flag() && !slices.Contains(m.Words, said):
			c.Reject(m.Name, oneOf(m.Words))
		}
	}
}

func oneOf(words []string) string { return "Must be one of: " + strings.Join(words, ", ") + "." }

// Add returns the reading with what else its device measured at the same time. fits is false when the reading says otherwise.
func (r Reading) Add(a Reading) (whole Reading, fits bool) {
	fits = r.Kind == a.Kind
	for i, value := range a.values {
		if value != nil {
			fits = fits && (r.values[i] == nil || *r.values[i] == *value)
			r.values[i] = value
		}
	}
	for i, word := range a.marks {
		if word != "" {
			fits = fits && (r.marks[i] == "" || r.marks[i] == word)
			r.marks[i] = word
		}
	}
	return r, fits
}

// Beyond returns what the reading says and the other one does not.
func (r Reading) Beyond(other Reading) Reading {
	for i, value := range r.values {
		if value != nil && other.values[i] != nil && *value == *other.values[i] {
			r.values[i] = nil
		}
	}
	for i, word := range r.marks {
		if word == other.marks[i] {
			r.marks[i] = ""
		}
	}
	return r
}

// As returns the reading without what its kind may leave out and the other one does.
func (r Reading) As(other Reading) Reading {
	for _, p := range r.Kind.Definition().May {
		if other.values[p.place] == nil {
			r.values[p.place] = nil
		}
	}
	for _, m := range r.Kind.Definition().Marks {
		if other.marks[m.place] == "" {
			r.marks[m.place] = ""
		}
	}
	return r
}

// Columns are where what the reading says is stored.
func (r Reading) Columns() (names []string) {
	for _, p := range Parameters {
		if r.values[p.place] != nil {
			names = append(names, p.Column)
		}
	}
	for _, m := range Marks {
		if r.marks[m.place] != "" {
			names = append(names, m.Name)
		}
	}
	return names
}
