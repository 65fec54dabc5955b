package phi

import (
	"cmp"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxTextLength is the number of characters that are kept; the rest is dropped.
const maxTextLength = 4000

// Sanitize removes PHI from a text that leaves the practice: names and identifiers of the known patients, and everything that looks like an identifying
// number, email address, date of birth or measurement. It returns generic if nothing is left, or if a second pass would still remove something. It is
// idempotent and takes linear time.
// Source: docs/decisions/notifications.md, "PHI sanitizer".
func Sanitize(text, generic string, known ...KnownPatient) string {
	if text == generic {
		return generic
	}
	s := newSanitizer(known)
	clean, _ := s.pass(text)
	again, found := s.pass(clean)
	if clean == "" || found || again != clean {
		return generic
	}
	return clean
}

// sanitizer holds the patterns of the known patients.
type sanitizer struct {
	known    []*pattern
	searched int // bytes searched; tests check that it is linear in the text
}

func newSanitizer(known []KnownPatient) *sanitizer { return &sanitizer{known: patientPatterns(known)} }

// pass applies every pattern once and reports whether any matched.
func (s *sanitizer) pass(text string) (clean string, found bool) {
	text = Normalize(text)
	matched := false
	for _, p := range s.known {
		text, matched = s.replaceFolded(text, p)
		found = found || matched
	}
	for _, p := range patterns {
		text, matched = s.replace(text, p)
		found = found || matched
	}
	return tidy(text), found
}

// Normalize maps equivalent texts to one form: it resolves compatibility characters, removes invisible ones, and unifies digits, dashes, apostrophes and
// spaces.
func Normalize(text string) string {
	text = strings.Map(normalizeRune, strings.ToValidUTF8(text, " "))
	text = strings.Map(normalizeRune, norm.NFKC.String(text)) // NFKC can produce characters that need mapping
	text = norm.NFC.String(strings.Join(strings.Fields(text), " "))
	if utf8.RuneCountInString(text) > maxTextLength {
		text = string([]rune(text)[:maxTextLength])
	}
	return text
}

func normalizeRune(r rune) rune {
	switch {
	case r == '\u00ba' || r == '\u02da': // ordinal sign and ring, used as a degree sign
		return '\u00b0'
	case r == '\u2018' || r == '\u2019' || r == '\u201b' || r == '\u02bc' || r == '\u2032' || r == '\u00b4' || r == '`':
		return '\''
	case r == '\u2044' || r == '\u2215':
		return '/'
	case r == '\u2212' || unicode.Is(unicode.Pd, r):
		return '-'
	case unicode.IsSpace(r):
		return ' '
	case r == '\u034f' || unicode.In(r, unicode.Cf, unicode.Cc, unicode.Variation_Selector):
		return -1
	case r > unicode.MaxASCII && unicode.Is(unicode.Nd, r):
		return '0' + digitValue(r)
	}
	return r
}

// digitValue returns the value of a decimal digit of any script. Unicode digits come in runs of ten, starting with zero.
func digitValue(r rune) rune {
	for _, run := range unicode.Nd.R16 {
		if lo := rune(run.Lo); lo <= r && r <= rune(run.Hi) {
			return (r - lo) % 10
		}
	}
	for _, run := range unicode.Nd.R32 {
		if lo := int64(run.Lo); lo <= int64(r) && int64(r) <= int64(run.Hi) {
			return rune((int64(r) - lo) % 10)
		}
	}
	return 0
}

// tidy removes empty brackets and repeated spaces and punctuation that removals leave behind.
func tidy(text string) string {
	out := make([]byte, 0, len(text))
	last := func() byte {
		if len(out) == 0 {
			return ' '
		}
		return out[len(out)-1]
	}
	for i := range len(text) {
		b := text[i]
		switch {
		case b == ' ' && last() == ' ':
			continue
		case strings.IndexByte(",;:.!?)]}", b) >= 0 && len(out) > 0 && last() == ' ':
			out = out[:len(out)-1]
		}
		if opening := strings.IndexByte(")]}", b); opening >= 0 && len(out) > 0 && last() == "([{"[opening] {
			out = out[:len(out)-1]
			continue
		}
		if strings.IndexByte(",;:", b) >= 0 && strings.IndexByte(",;:", last()) >= 0 {
			continue
		}
		if b == ' ' && last() == ' ' { // a bracket between two spaces was removed
			continue
		}
		out = append(out, b)
	}
	return strings.Trim(string(out), " ,;:-")
}

// pattern matches text to remove. The first group of the expression is replaced; the text after it is only checked. Go's expressions take linear time
// and have no lookbehind, so mayFollow checks the preceding character, and a refused match is searched for again one character later.
type pattern struct {
	expression  func() *regexp.Regexp
	mayFollow   func(before rune, match string) bool // nil accepts any
	replacement string
	// needs are substrings of which every match contains at least one, so a text without them is not searched. Most texts contain no name and no digit,
	// and compiling the expressions of one patient takes longer than the rest of an alert notification.
	needs []string
}

// mayMatch reports whether a text contains one of the substrings that the pattern needs.
func (p *pattern) mayMatch(text string) bool {
	return slices.ContainsFunc(p.needs, func(needed string) bool { return strings.Contains(text, needed) })
}

// The parts of the expressions.
const (
	month      = `(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)`
	day        = `(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|` + month + `\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}|\d{1,2} ` + month + `\.?,? \d{4})`
	verb       = `\b[^\d.!?]{0,15}?`
	ssnPattern = `(?:ssn|social security(?: number| no\.?)?)[ :#]{0,3}`
	groups     = `\d{3}[-. ]\d{2}[-. ]\d{4}`
	bp         = `(?:bp|blood pressure)`
	hr         = `(?:hr|heart rate|pulse(?: rate)?)`
	sugar      = `(?:blood )?(?:glucose|sugar)`
	temp       = `temp(?:erature)?`
	end        = `(?:\D|$)` // no digit follows
)

// patterns are applied in this order.
var patterns = []*pattern{
	removed(`(`+ssnPattern+`\d{9})`+end, nil),
	removed(`(`+ssnPattern+groups+`)`+end, nil),
	removed(`(`+groups+`)`+end, unless(unicode.IsDigit)),

	removed(`((?:born(?: on)?|d\.?o\.?b\.?|date of birth|birth ?date)\W{0,4}(?:is |on |was )?`+day+`)`, nil),
	removed(`(`+day+`\W{0,3}\(?(?:d\.?o\.?b\.?|date of birth)\b\)?)`, nil),

	removed(`(mrn(?:[ :#.-]{1,4}(?:is )?(?:[a-z][a-z0-9-]{0,18})?|)\d[a-z0-9-]{0,40})`, unless(isWord)),
	removed(`(medical record(?: number| no\.?)?[ :#.-]{0,4}(?:is )?(?:[a-z][a-z0-9-]{0,18})?\d[a-z0-9-]{0,40})`, unless(isWord)),

	address(`([a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,4})`),

	removed(`((?:\+?1[-. ]?)?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}(?: ?(?:x|ext\.?) ?\d{1,6})?)`+end,
		unless(func(r rune) bool { return isWord(r) || r == '/' })),
	removed(`(\+\d{8,15})`+end, unless(isWord)),
	removed(`(\d{10})`+end, unless(unicode.IsDigit)),
	removed(`(\d{3}-\d{4})(?:[^\d/-]|$)`, unless(func(r rune) bool { return unicode.IsDigit(r) || r == '/' || r == '-' })),

	value(`(?:(?:bp|blood pressure|systolic|diastolic)`+verb+`)?\d{2,3}(?: ?/ ?\d{2,3})? ?mm ?\[?hg\]?|`+bp+verb+`\d{2,3} ?/ ?\d{2,3}`, "abnormal blood pressure"),
	value(`(?:`+hr+verb+`)?\d{2,3} ?(?:bpm\b|beats ?(?:/|per) ?min(?:ute)?\b|/min\b)|`+hr+verb+`\d{2,3}\b`, "abnormal heart rate"),
	value(`(?:spo2|o2 sats?|o2 saturation|oxygen saturation|oxygen|sats?|saturation)`+verb+`\d{2,3}(?:\.\d)? ?(?:%|percent\b)?|\d{2,3}(?:\.\d)? ?(?:%|percent) ?(?:spo2|o2|oxygen)(?: sat(?:uration)?s?)?`, "low oxygen saturation"),
	value(`(?:`+sugar+verb+`)?\d{1,3}(?:\.\d)? ?(?:mg ?/ ?dl|mmol ?/ ?l)\b|`+sugar+verb+`\d{2,3}(?:\.\d)?\b`, "abnormal glucose level"),
	value(`(?:`+temp+verb+`)?\d{2,3}(?:\.\d)? ?(?:\x{b0} ?[fc]\b|deg(?:rees?)? ?(?:f|c|fahrenheit|celsius)\b)|`+temp+verb+`\d{2,3}(?:\.\d)?\b`, "abnormal temperature"),
	value(`(?:weight`+verb+`)?\d{1,3}(?:\.\d{1,2})? ?(?:kg|lbs?|pounds)\b`, "abnormal weight"),
}

// digits are the needs of patterns of numbers, dates and measurements.
var digits = strings.Split("0123456789", "")

// removed returns a pattern that contains a digit and is removed.
func removed(expression string, mayFollow func(rune, string) bool) *pattern {
	return &pattern{compiled(`(?i)` + expression), mayFollow, " ", digits}
}

// address returns a pattern that contains an @ and is removed.
func address(expression string) *pattern {
	return &pattern{compiled(`(?i)` + expression), nil, " ", []string{"@"}}
}

func compiled(expression string) func() *regexp.Regexp {
	re := regexp.MustCompile(expression)
	return func() *regexp.Regexp { return re }
}

// compiledLazily compiles an expression when it is first used, because few texts are searched.
func compiledLazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// value returns a pattern of a measurement that is replaced by a phrase. All forms are one expression, so that no form matches across an inserted phrase.
// A match that starts with a word starts at a word boundary.
func value(expression, phrase string) *pattern {
	return &pattern{compiled(`(?i)(` + expression + `)`), func(before rune, match string) bool {
		return !isWord(before) || isDigit(match[0])
	}, phrase, digits}
}

func unless(refused func(rune) bool) func(rune, string) bool {
	return func(before rune, _ string) bool { return !refused(before) }
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// replace replaces every match of a pattern.
func (s *sanitizer) replace(text string, p *pattern) (string, bool) {
	return s.replaceIn(text, text, func(i int) int { return i }, p)
}

// replaceFolded replaces the parts of a text that match a pattern in folded form.
func (s *sanitizer) replaceFolded(text string, p *pattern) (string, bool) {
	folded, origin := fold(text)
	return s.replaceIn(text, folded, func(i int) int { return origin[i] }, p)
}

// replaceIn searches one text and replaces the corresponding parts of another; origin maps offsets from the first to the second.
func (s *sanitizer) replaceIn(text, searched string, origin func(int) int, p *pattern) (string, bool) {
	var out strings.Builder
	copied, found := 0, false
	if !p.mayMatch(searched) {
		s.searched += len(searched)
		return text, false
	}
	expression := p.expression()
	for at := 0; at < len(searched); {
		match := expression.FindStringSubmatchIndex(searched[at:])
		if match == nil {
			s.searched += len(searched) - at
			break
		}
		s.searched += match[1]
		start, end := at+match[2], at+match[3]
		before := ' '
		if start > 0 {
			before, _ = utf8.DecodeLastRuneInString(searched[:start])
		}
		if p.mayFollow != nil && !p.mayFollow(before, searched[start:end]) {
			_, width := utf8.DecodeRuneInString(searched[start:])
			at = start + width
			continue
		}
		out.WriteString(text[copied:origin(start)])
		out.WriteString(p.replacement)
		copied, found, at = origin(end), true, end
	}
	out.WriteString(text[copied:])
	return out.String(), found
}

// KnownPatient holds the name and identifiers of a patient to remove from a text.
type KnownPatient struct {
	First, Last string
	// Identifiers are removed anywhere in the text: MRN, external id, phone, email, street address.
	Identifiers []string
	// IsInRecipientsCare: the recipient is in the patient's care team, so the name becomes "your patient"
	// instead of "a patient".
	IsInRecipientsCare bool
}

// Format and LogValue print a placeholder. MarshalJSON always fails.
func (KnownPatient) Format(s fmt.State, _ rune)   { conceal(s) }
func (KnownPatient) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (KnownPatient) MarshalJSON() ([]byte, error) { return nil, errEncode }

// patientPatterns returns one pattern for the identifiers of all known patients and one or two for their names, so that no replacement is searched
// again. They match folded text.
func patientPatterns(known []KnownPatient) (found []*pattern) {
	var identifiers, quoted []string
	yours, others := &names{replacement: "your patient"}, &names{replacement: "a patient"}
	for _, k := range known {
		for _, identifier := range k.Identifiers {
			if folded := foldWhole(identifier); folded != "" {
				identifiers, quoted = append(identifiers, folded), append(quoted, regexp.QuoteMeta(folded))
			}
		}
		if k.IsInRecipientsCare {
			yours.add(k)
		} else {
			others.add(k)
		}
	}
	if len(identifiers) > 0 {
		found = append(found, &pattern{compiledLazily(`(` + anyOf(quoted) + `)`), nil, " ", identifiers})
	}
	for _, of := range []*names{yours, others} {
		if len(of.forms) > 0 {
			expression := `((?:(?:mr|mrs|ms|miss|dr|prof)\.? )?` + anyOf(of.forms) + `)(?:[^\pL\pN_]|$)`
			found = append(found, &pattern{compiledLazily(expression), unless(isWord), of.replacement, of.parts})
		}
	}
	return found
}

// names holds the written forms of names that one phrase replaces, and parts of which every form contains at least one.
type names struct {
	forms, parts []string
	replacement  string
}

func (n *names) add(k KnownPatient) {
	forms, parts := k.forms()
	n.forms, n.parts = append(n.forms, forms...), append(n.parts, parts...)
}

// anyOf returns an alternation that prefers the longest alternative.
func anyOf(alternatives []string) string {
	slices.SortStableFunc(alternatives, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return `(?:` + strings.Join(alternatives, `|`) + `)`
}

// forms returns the ways to write a name, folded and quoted, and the parts of which every form contains at least one. Each word of more than two letters
// of a compound name is a form, too.
func (k KnownPatient) forms() (forms, parts []string) {
	first, last := foldWhole(k.First), foldWhole(k.Last)
	if first != "" && last != "" {
		f, l, initial := regexp.QuoteMeta(first), regexp.QuoteMeta(last), regexp.QuoteMeta(string([]rune(first)[:1]))
		forms = append(forms, f+`(?: \pL\.?)? `+l, l+`, ?`+f, initial+`\.? ?`+l)
	}
	for _, name := range []string{last, first} {
		if name == "" {
			continue
		}
		forms, parts = append(forms, regexp.QuoteMeta(name)), append(parts, name)
		words := strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' })
		for _, word := range words {
			if len(words) > 1 && len([]rune(word)) > 2 {
				forms, parts = append(forms, regexp.QuoteMeta(word)), append(parts, word)
			}
		}
	}
	return forms, parts
}

// foldWhole returns the searched form of a name or identifier.
func foldWhole(text string) string {
	folded, _ := fold(Normalize(text))
	return folded
}

// Fold returns a text without case and accents, for comparison.
func Fold(text string) string {
	folded, _ := fold(text)
	return folded
}

// fold returns the text without case and accents, and the original offset of each of its bytes and of its end.
func fold(text string) (folded string, origin []int) {
	var out strings.Builder
	origin = make([]int, 0, len(text)+1)
	for i, r := range text {
		if r <= unicode.MaxASCII {
			out.WriteRune(unicode.ToLower(r))
			origin = append(origin, i)
			continue
		}
		for _, part := range cases.Fold().String(norm.NFKD.String(string(r))) {
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
