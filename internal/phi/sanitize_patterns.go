package phi

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is one thing to take out. The first group of the expression is what goes; what follows it is only looked at. Go's expressions take
// linear time and know no lookbehind: what may stand before is asked by hand, and a match that is refused is looked for again one character on.
type pattern struct {
	expression  *regexp.Regexp
	mayFollow   func(before rune, match string) bool // nil is anything
	replacement string
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

	gone(`([a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,4})`, nil),

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

// gone is a pattern that leaves nothing.
func gone(expression string, mayFollow func(rune, string) bool) *pattern {
	return &pattern{regexp.MustCompile(`(?i)` + expression), mayFollow, " "}
}

// value is a measurement, which leaves a phrase; all its forms are one expression, so that none is looked for across the phrase. Where it begins with a word, that is a whole word.
func value(expression, phrase string) *pattern {
	return &pattern{regexp.MustCompile(`(?i)(` + expression + `)`), func(before rune, match string) bool {
		return !isWord(before) || isDigit(match[0])
	}, phrase}
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
	for at := 0; at < len(searched); {
		match := p.expression.FindStringSubmatchIndex(searched[at:])
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
