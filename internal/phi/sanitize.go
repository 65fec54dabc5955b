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

// longestText is how many characters of a text are looked at; the rest is dropped.
const longestText = 4000

// Sanitize takes what tells a person or a measurement out of a text that leaves the house: names and identifiers of the known patients, and
// whatever looks like a number, address, date of birth or measured value. It returns generic when nothing is left, or when anything is left
// that it would still take out. What it returns, it returns again unchanged. The work is linear in the text.
// Source: docs/decisions/notifications.md, "PHI sanitizer".
func Sanitize(text, generic string, known ...Known) string {
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

// sanitizer is what a text is held against.
type sanitizer struct {
	known    []*pattern
	searched int // bytes looked at, for the tests: it grows with the text and not faster
}

func newSanitizer(known []Known) *sanitizer { return &sanitizer{known: knownPatterns(known)} }

// pass goes over the text once and reports whether anything was found.
func (s *sanitizer) pass(text string) (clean string, found bool) {
	text = straighten(text)
	here := false
	for _, p := range s.known {
		text, here = s.replaceFolded(text, p)
		found = found || here
	}
	for _, p := range patterns {
		text, here = s.replace(text, p)
		found = found || here
	}
	return tidy(text), found
}

// straighten gives equal texts one spelling: compatibility forms resolved, invisible characters gone, one kind of digit, dash, apostrophe and
// space.
func straighten(text string) string {
	text = strings.Map(straight, strings.ToValidUTF8(text, " "))
	text = strings.Map(straight, norm.NFKC.String(text)) // full-width forms are plain now
	text = norm.NFC.String(strings.Join(strings.Fields(text), " "))
	if utf8.RuneCountInString(text) > longestText {
		text = string([]rune(text)[:longestText])
	}
	return text
}

func straight(r rune) rune {
	switch {
	case r == '\u00ba' || r == '\u02da': // the ordinal sign and the ring, typed for a degree
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

// digitValue of a decimal digit of any script: they come in runs of ten, from zero.
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

// tidy removes what taking things out left behind: empty brackets, doubled spaces and punctuation.
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
		if b == ' ' && last() == ' ' { // a bracket has gone in between
			continue
		}
		out = append(out, b)
	}
	return strings.Trim(string(out), " ,;:-")
}

// pattern is one thing to take out. The first group of the expression is what goes; what follows it is only looked at. Go's expressions take
// linear time and know no lookbehind: what may stand before is asked by hand, and a match that is refused is looked for again one character on.
type pattern struct {
	expression  func() *regexp.Regexp
	mayFollow   func(before rune, match string) bool // nil is anything
	replacement string
	// needs are texts one of which is in whatever matches, so that a text without any of them need not be searched. Most that leave the house name
	// nobody and hold no digit, and making the expressions of one patient takes longer than all the rest of telling of an alert.
	needs []string
}

// mayMatch reports whether a text holds what the pattern needs.
func (p *pattern) mayMatch(text string) bool {
	return slices.ContainsFunc(p.needs, func(needed string) bool { return strings.Contains(text, needed) })
}

// Parts of the expressions.
const (
	month  = `(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)`
	day    = `(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|` + month + `\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}|\d{1,2} ` + month + `\.?,? \d{4})`
	verb   = `\b[^\d.!?]{0,15}?`
	ssn    = `(?:ssn|social security(?: number| no\.?)?)[ :#]{0,3}`
	groups = `\d{3}[-. ]\d{2}[-. ]\d{4}`
	bp     = `(?:bp|blood pressure)`
	hr     = `(?:hr|heart rate|pulse(?: rate)?)`
	sugar  = `(?:blood )?(?:glucose|sugar)`
	temp   = `temp(?:erature)?`
	end    = `(?:\D|$)` // no digit follows
)

// patterns, in the order in which they are applied.
var patterns = []*pattern{
	gone(`(`+ssn+`\d{9})`+end, nil),
	gone(`(`+ssn+groups+`)`+end, nil),
	gone(`(`+groups+`)`+end, unless(unicode.IsDigit)),

	gone(`((?:born(?: on)?|d\.?o\.?b\.?|date of birth|birth ?date)\W{0,4}(?:is |on |was )?`+day+`)`, nil),
	gone(`(`+day+`\W{0,3}\(?(?:d\.?o\.?b\.?|date of birth)\b\)?)`, nil),

	gone(`(mrn(?:[ :#.-]{1,4}(?:is )?(?:[a-z][a-z0-9-]{0,18})?|)\d[a-z0-9-]{0,40})`, unless(isWord)),
	gone(`(medical record(?: number| no\.?)?[ :#.-]{0,4}(?:is )?(?:[a-z][a-z0-9-]{0,18})?\d[a-z0-9-]{0,40})`, unless(isWord)),

	address(`([a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,4})`),

	gone(`((?:\+?1[-. ]?)?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}(?: ?(?:x|ext\.?) ?\d{1,6})?)`+end,
		unless(func(r rune) bool { return isWord(r) || r == '/' })),
	gone(`(\+\d{8,15})`+end, unless(isWord)),
	gone(`(\d{10})`+end, unless(unicode.IsDigit)),
	gone(`(\d{3}-\d{4})(?:[^\d/-]|$)`, unless(func(r rune) bool { return unicode.IsDigit(r) || r == '/' || r == '-' })),

	value(`(?:(?:bp|blood pressure|systolic|diastolic)`+verb+`)?\d{2,3}(?: ?/ ?\d{2,3})? ?mm ?\[?hg\]?|`+bp+verb+`\d{2,3} ?/ ?\d{2,3}`, "abnormal blood pressure"),
	value(`(?:`+hr+verb+`)?\d{2,3} ?(?:bpm\b|beats ?(?:/|per) ?min(?:ute)?\b|/min\b)|`+hr+verb+`\d{2,3}\b`, "abnormal heart rate"),
	value(`(?:spo2|o2 sats?|o2 saturation|oxygen saturation|oxygen|sats?|saturation)`+verb+`\d{2,3}(?:\.\d)? ?(?:%|percent\b)?|\d{2,3}(?:\.\d)? ?(?:%|percent) ?(?:spo2|o2|oxygen)(?: sat(?:uration)?s?)?`, "low oxygen saturation"),
	value(`(?:`+sugar+verb+`)?\d{1,3}(?:\.\d)? ?(?:mg ?/ ?dl|mmol ?/ ?l)\b|`+sugar+verb+`\d{2,3}(?:\.\d)?\b`, "abnormal glucose level"),
	value(`(?:`+temp+verb+`)?\d{2,3}(?:\.\d)? ?(?:\x{b0} ?[fc]\b|deg(?:rees?)? ?(?:f|c|fahrenheit|celsius)\b)|`+temp+verb+`\d{2,3}(?:\.\d)?\b`, "abnormal temperature"),
	value(`(?:weight`+verb+`)?\d{1,3}(?:\.\d{1,2})? ?(?:kg|lbs?|pounds)\b`, "abnormal weight"),
}

// digits are what patterns of numbers, dates and measurements need.
var digits = strings.Split("0123456789", "")

// gone is a pattern with a digit that leaves nothing.
func gone(expression string, mayFollow func(rune, string) bool) *pattern {
	return &pattern{compiled(`(?i)` + expression), mayFollow, " ", digits}
}

// address is a pattern with an @ that leaves nothing.
func address(expression string) *pattern {
	return &pattern{compiled(`(?i)` + expression), nil, " ", []string{"@"}}
}

func compiled(expression string) func() *regexp.Regexp {
	made := regexp.MustCompile(expression)
	return func() *regexp.Regexp { return made }
}

// onceNeeded compiles when the first text is searched, which few are.
func onceNeeded(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// value is a measurement, which leaves a phrase; all its forms are one expression, so that none is looked for across the phrase. Where it begins with a word, that is a whole word.
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

// replace takes every match of a pattern out of a text.
func (s *sanitizer) replace(text string, p *pattern) (string, bool) {
	return s.replaceIn(text, text, func(i int) int { return i }, p)
}

// replaceFolded does so where the pattern matches the folded text.
func (s *sanitizer) replaceFolded(text string, p *pattern) (string, bool) {
	folded, origin := fold(text)
	return s.replaceIn(text, folded, func(i int) int { return origin[i] }, p)
}

// replaceIn looks for matches in one text and takes what they stand for out of another.
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
	var identifiers, quoted []string
	yours, others := &names{replacement: "your patient"}, &names{replacement: "a patient"}
	for _, k := range known {
		for _, identifier := range k.Identifiers {
			if folded := foldWhole(identifier); folded != "" {
				identifiers, quoted = append(identifiers, folded), append(quoted, regexp.QuoteMeta(folded))
			}
		}
		if k.Yours {
			yours.add(k)
		} else {
			others.add(k)
		}
	}
	if len(identifiers) > 0 {
		found = append(found, &pattern{onceNeeded(`(` + anyOf(quoted) + `)`), nil, " ", identifiers})
	}
	for _, of := range []*names{yours, others} {
		if len(of.forms) > 0 {
			expression := `((?:(?:mr|mrs|ms|miss|dr|prof)\.? )?` + anyOf(of.forms) + `)(?:[^\pL\pN_]|$)`
			found = append(found, &pattern{onceNeeded(expression), unless(isWord), of.replacement, of.parts})
		}
	}
	return found
}

// names are those that one phrase stands for: the forms in which they are written, and the parts of which each form has one at least.
type names struct {
	forms, parts []string
	replacement  string
}

func (n *names) add(k Known) {
	forms, parts := k.forms()
	n.forms, n.parts = append(n.forms, forms...), append(n.parts, parts...)
}

// anyOf prefers the longest.
func anyOf(alternatives []string) string {
	slices.SortStableFunc(alternatives, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return `(?:` + strings.Join(alternatives, `|`) + `)`
}

// forms are the ways in which a name is written, folded and quoted, and the parts without one of which none of them stands anywhere. A name of
// several words is known by each of its longer ones too.
func (k Known) forms() (forms, parts []string) {
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

// foldWhole is a name or identifier as it is looked for.
func foldWhole(text string) string {
	folded, _ := fold(straighten(text))
	return folded
}

// fold is the text without case and accents, and for each of its bytes, and its end, where it came from.
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
