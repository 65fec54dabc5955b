package messaging

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Kinds of private content. A text must have none, because others may read it on the patient's
// phone.
const (
	PrivateNumber     = "number"    // may be a value, a dose, an identifier or a date
	PrivateDiagnosis  = "diagnosis" // also a complaint, a part of the body or a treatment, which suggest one
	PrivateMedicine   = "medicine"
	PrivateMeasure    = "measure" // what is measured: it suggests the diagnosis
	PrivateResult     = "result"  // how a reading turned out, in words
	PrivateName       = "name"
	PrivateIdentifier = "identifier"
	PrivateLink       = "link"
)

// privateHints describe each kind for the error, in this order.
var privateHints = []struct{ kind, hint string }{
	{PrivateNumber, "a number that is no time, day, duration or phone number"},
	{PrivateIdentifier, "an address"},
	{PrivateDiagnosis, "a diagnosis, complaint or treatment"},
	{PrivateMedicine, "a medicine"},
	{PrivateMeasure, "what is measured"},
	{PrivateResult, "how a reading turned out"},
	{PrivateName, "a name"},
	{PrivateLink, "a link"},
}

// PrivateHint returns the sentence that refuses a text, without quoting it.
func PrivateHint(kinds []string) string {
	var found []string
	for _, h := range privateHints {
		for _, kind := range kinds {
			if kind == h.kind {
				found = append(found, h.hint)
			}
		}
	}
	return "A message can be read by others. Leave this out: " + strings.Join(found, "; ") + "."
}

// PrivateContent returns the kinds of private content in a text that staff wrote in English or
// Spanish; nil for none. known are the patient and the staff, whose names are private too. In doubt
// it rejects: "please call us" is always possible. Source: 45 CFR 164.502(b) and 164.530(c);
// docs/decisions/messages.md, "Content of a text".
func PrivateContent(text, practice string, known ...phi.KnownPatient) (kinds []string) {
	text, practice = joinLetters(text), joinLetters(practice)
	folded := phi.Fold(text)
	without := withoutName(folded, phi.Fold(practice))
	found := map[string]bool{
		PrivateNumber:     hasPrivateNumber(without),
		PrivateDiagnosis:  diagnoses.MatchString(without) || diagnosisCode.MatchString(text),
		PrivateMedicine:   medicines.MatchString(without),
		PrivateMeasure:    measures.MatchString(without),
		PrivateResult:     results.MatchString(harmless.ReplaceAllString(without, " ")),
		PrivateLink:       links.MatchString(without),
		PrivateName:       hasName(text, practice) || abbreviated.MatchString(without) || hasFirstName(without),
		PrivateIdentifier: strings.Contains(without, "@"),
	}
	const nothing = "-"
	if clean := phi.Sanitize(text, nothing, known...); phi.Sanitize(text, nothing) != clean {
		found[PrivateName] = true
	}
	for _, h := range privateHints {
		if found[h.kind] {
			kinds = append(kinds, h.kind)
		}
	}
	return kinds
}

// withoutName leaves out the practice's name, as a whole and not within other words; a practice may have none.
func withoutName(text, name string) string {
	if name = strings.TrimSpace(name); name == "" {
		return text
	}
	return regexp.MustCompile(`(^|[^\pL\pN])`+regexp.QuoteMeta(name)+`($|[^\pL\pN])`).ReplaceAllString(text, "$1 $2")
}

// joinLetters normalizes a text and joins words that are spelled letter by letter.
func joinLetters(text string) string {
	return spelledName.ReplaceAllStringFunc(strings.ReplaceAll(phi.Normalize(text), "_", " "), strings.NewReplacer(" ", "", ".", "").Replace)
}

var (
	spelledName = regexp.MustCompile(`\b(?:\pL[ .])+\pL\b`) // A.d.a.
	abbreviated = regexp.MustCompile(`\b(?:dra?|mrs?|ms|sra?|srta)\b\.? [a-z]`)

	titled = regexp.MustCompile(`(?i)\b(?:dr|dra|doctor|doctora|mr|mrs|ms|miss|sr|sra|srta|señor|señora|don|doña|nurse|enfermera|enfermero)\.? (?:\p{Lu}[\p{L}'-]+)`)
	words  = regexp.MustCompile(`[\p{L}][\p{L}'-]*`)
)

// hasName reports a capitalized word inside a sentence that is not the name of a day, month or
// holiday, or a word after a title. Words in capitals, such as STOP, and the first word of a
// sentence do not count.
func hasName(text, practice string) bool {
	text = withoutName(text, practice)
	if m := titled.FindString(text); m != "" && unicode.IsUpper([]rune(m[strings.LastIndex(m, " ")+1:])[0]) {
		return true
	}
	for _, at := range words.FindAllStringIndex(text, -1) {
		word := []rune(text[at[0]:at[1]])
		before := strings.TrimRight(text[:at[0]], " \"'(¿¡")
		starts := before == "" || strings.ContainsAny(before[len(before)-1:], ".!?:")
		if starts || !unicode.IsUpper(word[0]) || len(word) == 1 || strings.ToUpper(string(word)) == string(word) {
			continue
		}
		if !commonCapitals[phi.Fold(string(word))] {
			return true
		}
	}
	return false
}

// commonCapitals are words that are capitalized in English without being a person's name.
var commonCapitals = func() map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(`monday tuesday wednesday thursday friday saturday sunday lunes martes miercoles jueves viernes sabado domingo
		january february march april may june july august september october november december
		enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
		mon tue tues wed thu thur thurs fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec ene abr ago dic
		english spanish ingles espanol thanksgiving christmas easter navidad medicare medicaid bluetooth wi-fi wifi internet i'm i'll i'd i've`) {
		set[word] = true
	}
	return set
}()

// hasFirstName reports a frequent first name of the United States that is not also a common word,
// in any letter case.
func hasFirstName(folded string) bool {
	return slices.ContainsFunc(words.FindAllString(folded, -1), func(word string) bool {
		return firstNames[strings.TrimSuffix(word, "'s")]
	})
}
