package gateway

import (
	"cmp"
	"encoding/json"
	"encoding/json/jsontext"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// lenientValues are the unambiguous values of a rejected measurement. They raise an alert and are
// never a reading. Source: docs/decisions/gateway.md, "Side values".
type lenientValues struct {
	body vitals.Body
	unit string // written beside a value; "" for none
}

// readLenient reads the member values of an event: an object, or a text such as "206/126".
func readLenient(sent eventBody, raw []byte) (v lenientValues) {
	if sent.Values.Given() {
		for _, m := range sent.Values.Value {
			v.read(m.Name, m.Raw)
		}
		return v
	}
	var whole struct {
		Values jsontext.Value `json:"values"`
	}
	if json.Unmarshal(raw, &whole) != nil {
		return v
	}
	var list []struct {
		Name  string         `json:"name"`
		Value jsontext.Value `json:"value"`
	}
	switch {
	case whole.Values.Kind() == '"':
		v.read("values", whole.Values)
	case json.Unmarshal(whole.Values, &list) == nil:
		for _, m := range list {
			v.read(m.Name, m.Value)
		}
	}
	return v
}

// Texts of numbers. Three digits after a comma may be thousands, so they have no meaning.
var (
	pressurePair   = regexp.MustCompile(`^(\d{1,3}(?:[.,]\d{1,2})?)\s*/\s*(\d{1,3}(?:[.,]\d{1,2})?)\s*((?i)mmhg|kpa)?$`)
	numberWithUnit = regexp.MustCompile(`^([+-]?\d+(?:\.\d+|,\d{1,2}|,\d{4,})?)\s*([^\s\d.,/][^\d]*)?$`)
)

// read adds one member. A pressure may be a pair, and a number may be followed by a unit of its parameter.
func (v *lenientValues) read(name string, raw jsontext.Value) {
	name, parameter := fieldOf(name)
	if members, ok := membersOf(raw); ok {
		v.readObject(name, parameter, members)
		return
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		v.add(name, raw)
		return
	}
	text = strings.TrimSpace(strings.Map(asASCII, text))
	if pair := pressurePair.FindStringSubmatch(text); pair != nil && isPressure(name, pair[1], pair[2], pair[3]) {
		v.unit = cmp.Or(pair[3], v.unit)
		v.add(vitals.Systolic.Name, numberOf(pair[1]))
		v.add(vitals.Diastolic.Name, numberOf(pair[2]))
		return
	}
	number := numberWithUnit.FindStringSubmatch(text)
	if number == nil || number[2] != "" && (parameter == nil || !hasUnit(parameter, number[2])) {
		v.add(name, raw)
		return
	}
	if number[2] != "" && (len(parameter.Units) > 0 || isKPa(number[2])) {
		v.unit = number[2]
	}
	v.add(name, numberOf(number[1]))
}

// asASCII returns a space for one that breaks no line, and ASCII for full-width, Arabic and Devanagari digits and full-width marks.
func asASCII(r rune) rune {
	if r == '\u00a0' || r == '\u3000' {
		return ' '
	}
	if r > '\uff00' && r < '\uff5f' {
		return r - '\uff00' + ' '
	}
	for _, zero := range []rune{'\u0660', '\u06f0', '\u0966'} {
		if r >= zero && r <= zero+9 {
			return '0' + r - zero
		}
	}
	return r
}

// readObject reads a value with its unit, as FHIR's Quantity has it, or values in an object of their own.
func (v *lenientValues) readObject(name string, parameter *vitals.Parameter, members []memberText) {
	for _, m := range members {
		var unit string
		switch _, own := fieldOf(m.Name); {
		case m.Name == "value" && m.Raw.Kind() != '{':
			v.read(name, m.Raw)
		case m.Name == "unit" && parameter != nil && json.Unmarshal(m.Raw, &unit) == nil && hasUnit(parameter, unit) && (len(parameter.Units) > 0 || isKPa(unit)):
			v.unit = unit
		case own != nil && m.Raw.Kind() != '{':
			v.read(m.Name, m.Raw)
		}
	}
}

// isPressure reports whether a pair of numbers may be a pressure, in or out of range. What may be a date or a fraction is one only with a unit, or
// in a member that is called so.
func isPressure(name, systolic, diastolic, unit string) bool {
	high, _ := strconv.ParseFloat(string(numberOf(systolic)), 64) // both match the pattern
	low, _ := strconv.ParseFloat(string(numberOf(diastolic)), 64)
	isCalled := slices.ContainsFunc([]string{"pressure", "systolic", "bp"}, func(word string) bool { return strings.Contains(fold(name), word) })
	return high > low && (high > 31 || unit != "" || isCalled)
}

// add adds a value. A member with two different values becomes unreadable.
func (v *lenientValues) add(name string, raw jsontext.Value) {
	for i, m := range v.body {
		if m.Name == name {
			if !isSame(m.Raw, raw) {
				v.body[i].Raw = unreadable
			}
			return
		}
	}
	v.body = append(v.body, vitals.Body{{Name: name, Raw: raw}}...)
}

func numberOf(text string) jsontext.Value {
	text = strings.TrimPrefix(strings.Replace(text, ",", ".", 1), "+")
	return jsontext.Value(leadingZeros.ReplaceAllString(text, "$1$2"))
}

// hasUnit reports whether the word is a unit of the parameter.
func hasUnit(p *vitals.Parameter, word string) bool {
	words := append([]string{p.Range.Unit}, p.Words...)
	if p == vitals.Systolic || p == vitals.Diastolic {
		words = append(words, "kPa")
	}
	for _, unit := range p.Units {
		words = append(words, unit.Words...)
	}
	return slices.ContainsFunc(words, func(known string) bool { return strings.EqualFold(known, word) })
}

// fieldOf returns the documented name and parameter of a member in another spelling, or nil.
func fieldOf(name string) (string, *vitals.Parameter) {
	folded := fold(name)
	if slices.Contains(pulseWords, folded) {
		return vitals.Pulse.Name, vitals.Pulse
	}
	for _, d := range vitals.Definitions {
		for _, p := range d.All {
			for _, word := range []string{p.Name, d.FieldAliases[p]} {
				rest, isPrefix := strings.CutPrefix(folded, fold(word))
				if word != "" && isPrefix && (rest == "" || isUnitOf(p, rest)) {
					return word, p
				}
			}
		}
		if kind, ok := kindOf(name); ok && kind == d && len(d.Required) == 1 {
			return cmp.Or(d.FieldAliases[d.Main()], d.Main().Name), d.Main()
		}
	}
	return name, nil
}

// isUnitOf reports whether a folded word is the unit in which a parameter is read without one.
func isUnitOf(p *vitals.Parameter, folded string) bool {
	return len(p.Units) == 0 && slices.ContainsFunc(append([]string{p.Range.Unit}, p.Words...), func(unit string) bool { return fold(unit) == folded && folded != "" })
}

// likelyKind returns the kind that the names of values imply, a dangerous one first; nil for none.
// A pulse alone implies a blood pressure.
func likelyKind(values vitals.Body) *vitals.Definition {
	isDangerous := func(d *vitals.Definition) bool {
		unit := ""
		if _, choice := d.Units(); choice {
			unit, _ = d.LikelyUnit(values)
		}
		reading, outside := d.ReadGatewayOutOfRange(values, unit)
		return isDangerousReading(reading, outside)
	}
	names := func(parameters []*vitals.Parameter, d *vitals.Definition) bool {
		return slices.ContainsFunc(parameters, func(p *vitals.Parameter) bool {
			raw := values.Member(p.Name)
			if raw == nil {
				raw = values.Member(d.FieldAliases[p])
			}
			return raw != nil && raw.Kind() != 'n'
		})
	}
	for _, isLikely := range []func(*vitals.Definition) bool{
		func(d *vitals.Definition) bool { return names(d.All, d) && isDangerous(d) },
		func(d *vitals.Definition) bool { return names(d.Required, d) },
		func(d *vitals.Definition) bool { return names(d.All, d) },
	} {
		if i := slices.IndexFunc(vitals.Definitions, isLikely); i >= 0 {
			return vitals.Definitions[i]
		}
	}
	return nil
}

func isBeyondDefaults(p *vitals.Parameter, value float64) bool {
	side, _ := p.Defaults.Breached(value)
	return side.IsCritical()
}

// fold returns a word without case, spaces, hyphens and other marks, so that its spellings are equal.
func fold(word string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, word)
}
