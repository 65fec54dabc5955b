package phi

import (
	"strings"
	"unicode"
	"unicode/utf8"

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
