package phi

import (
	"cmp"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Known is a patient whose name and identifiers must not stand in a text.
type Known struct {
	First, Last string
	// Identifiers go wherever they stand: MRN, external id, phone, e-mail, address line.
	Identifiers []string
	// Yours makes the name "your patient" instead of "a patient".
	Yours bool
}

// Format shows nothing of the person.
func (Known) Format(s fmt.State, _ rune) { conceal(s) }

// LogValue shows nothing of the person.
func (Known) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses.
func (Known) MarshalJSON() ([]byte, error) { return nil, errEncode }

// knownPatterns are the identifiers of all who are known, and then their names: one pass each, so that no replacement is looked at
// again. They match folded text.
func knownPatterns(known []Known) (found []*pattern) {
	var identifiers, yours, others []string
	for _, k := range known {
		for _, identifier := range k.Identifiers {
			if folded := foldWhole(identifier); folded != "" {
				identifiers = append(identifiers, regexp.QuoteMeta(folded))
			}
		}
		if k.Yours {
			yours = append(yours, k.forms()...)
		} else {
			others = append(others, k.forms()...)
		}
	}
	if len(identifiers) > 0 {
		found = append(found, &pattern{regexp.MustCompile(`(` + anyOf(identifiers) + `)`), nil, " "})
	}
	for _, of := range []struct {
		names       []string
		replacement string
	}{{yours, "your patient"}, {others, "a patient"}} {
		if len(of.names) > 0 {
			expression := `((?:(?:mr|mrs|ms|miss|dr|prof)\.? )?` + anyOf(of.names) + `)(?:[^\pL\pN_]|$)`
			found = append(found, &pattern{regexp.MustCompile(expression), unless(isWord), of.replacement})
		}
	}
	return found
}

// anyOf prefers the longest.
func anyOf(alternatives []string) string {
	slices.SortStableFunc(alternatives, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return `(?:` + strings.Join(alternatives, `|`) + `)`
}

// forms are the ways in which a name is written, folded and quoted. A name of several words is known by each of its longer ones too.
func (k Known) forms() (forms []string) {
	first, last := foldWhole(k.First), foldWhole(k.Last)
	if first != "" && last != "" {
		f, l, initial := regexp.QuoteMeta(first), regexp.QuoteMeta(last), regexp.QuoteMeta(string([]rune(first)[:1]))
		forms = append(forms, f+`(?: \pL\.?)? `+l, l+`, ?`+f, initial+`\.? ?`+l)
	}
	for _, name := range []string{last, first} {
		if name == "" {
			continue
		}
		forms = append(forms, regexp.QuoteMeta(name))
		words := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' })
		for _, word := range words {
			if len(words) > 1 && len([]rune(word)) > 2 {
				forms = append(forms, regexp.QuoteMeta(word))
			}
		}
	}
	return forms
}

// foldWhole is a name or identifier as it is looked for.
func foldWhole(text string) string {
	folded, _ := fold(straighten(text))
	return folded
}

// fold is the text without case and accents, and for each of its bytes, and its end, where it came from.
func fold(text string) (folded string, origin []int) {
	var out strings.Builder
	caser := cases.Fold()
	for i, r := range text {
		for _, part := range foldRune(caser, r) {
			if unicode.Is(unicode.Mn, part) {
				continue
			}
			n, _ := out.WriteRune(part)
			for range n {
				origin = append(origin, i)
			}
		}
	}
	return out.String(), append(origin, len(text))
}

func foldRune(caser cases.Caser, r rune) string {
	if r <= unicode.MaxASCII {
		return string(unicode.ToLower(r))
	}
	return caser.String(norm.NFKD.String(string(r)))
}
