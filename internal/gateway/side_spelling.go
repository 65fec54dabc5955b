package gateway

import (
	"encoding/json"
	"encoding/json/jsontext"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// pulseWords are other names of the pulse, folded.
var pulseWords = []string{"pulserate", "heartrate", "hr"}

// withSpelledSides normalizes the names of side values and of other kinds' values, which an unknown
// spelling would drop without an error. Source: docs/decisions/gateway.md, "Side values".
func withSpelledSides(kind *vitals.Definition, sent vitals.Body) vitals.Body {
	values, taken := slices.Clone(sent), map[string]int{}
	for i, m := range values {
		values[i].Name = sideName(kind, m.Name)
		taken[values[i].Name]++
	}
	for i, m := range values {
		if taken[m.Name] > 1 { // which of them is meant is uncertain
			values[i].Name = sent[i].Name
		}
		for _, q := range kind.Qualifiers {
			if q.Name == values[i].Name || q.AltField == values[i].Name {
				values[i].Raw = spelledWord(q, m.Raw)
			}
		}
	}
	return values
}

// useAPINames gives a value that is named as by the API, with its unit (weight_kg, glucose_mmol_l), the gateway's name and unit.
func (b *eventBody) useAPINames() {
	wanted, isKnown := kindOf(b.MeasurementType.Value)
	at, name, unit := -1, "", ""
	for _, d := range vitals.Definitions {
		p := d.Main()
		if len(p.Units) == 0 || isKnown && d != wanted || b.Values.Value.Member(p.Name) != nil {
			continue
		}
		words := map[string][]string{p.Column: append([]string{p.Range.Unit}, p.Words...)}
		for _, u := range p.Units {
			words[u.Field] = u.Words
		}
		for i, m := range b.Values.Value {
			for column, units := range words {
				isOther := b.Unit.Value != "" && !slices.ContainsFunc(units, func(word string) bool { return strings.EqualFold(word, b.Unit.Value) })
				switch {
				case fold(column) != fold(m.Name):
				case at >= 0 || isOther: // which is meant is uncertain
					return
				default:
					at, name, unit = i, p.Name, units[0]
				}
			}
		}
	}
	if at >= 0 {
		values := slices.Clone(b.Values.Value)
		values[at].Name = name
		b.Values, b.Unit = validate.Of(values), validate.Of(unit)
	}
}

// sideName returns the documented name of a side value, or the name itself.
func sideName(kind *vitals.Definition, name string) string {
	if _, known := contractShape["values"][name]; known {
		return name
	}
	folded := fold(name)
	if slices.Contains(pulseWords, folded) {
		folded = fold(vitals.Pulse.Name)
	}
	for known := range contractShape["values"] {
		isRequired := slices.ContainsFunc(kind.Required, func(p *vitals.Parameter) bool { return p.Name == known || kind.FieldAliases[p] == known })
		if fold(known) == folded && !isRequired {
			return known
		}
	}
	return name
}

// spelledWord returns the documented word that a text spells, or the text.
func spelledWord(q *vitals.Qualifier, raw jsontext.Value) jsontext.Value {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw
	}
	words := slices.Clone(q.Words)
	for _, pair := range q.AltWords {
		words = append(words, pair[0])
	}
	for _, word := range words {
		if fold(word) == fold(text) && word != text {
			raw, _ = jsontext.AppendQuote(nil, word) // valid text always quotes
		}
	}
	return raw
}
