package gateway

import (
	"encoding/json"
	"encoding/json/jsontext"
	"slices"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// pulseWords are other names of the pulse, folded.
var pulseWords = []string{"pulserate", "heartrate", "hr"}

// withSpelledSides returns the values of a measurement with the documented names and words of the optional ones, and of values of other kinds, which are
// sent in many spellings: unlike a required value they would be dropped without an error. Source: docs/decisions/gateway.md, "Side values".
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
		isRequired := slices.ContainsFunc(kind.Required, func(p *vitals.Parameter) bool { return p.Name == known || kind.Fields[p] == known })
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
