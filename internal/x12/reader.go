package x12

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a file: far above a large payer's responses for one day, far below the memory of a small server.
const (
	maxBytes    = 32 << 20
	maxSegments = 500_000
	maxElements = 200 // per segment; a segment has at most 1000 bytes per element
)

// isaWidths are the fixed widths of ISA01 to ISA16. Source: 005010X222A1, appendix C, "ISA".
var isaWidths = [...]int{2, 10, 2, 10, 2, 15, 2, 15, 6, 4, 1, 5, 9, 1, 1, 1}

// isaLength is the length of ISA with its separators, without the terminator.
const isaLength = 105

// Read parses a file: any separators, line breaks between or within segments, and any number of interchanges, groups and transaction sets. It checks
// the lengths, versions, control numbers and counts of every envelope. Its errors are of type [ParseError].
func Read(file []byte) ([]Interchange, error) {
	if len(file) > maxBytes {
		return nil, &ParseError{Segment: "ISA", Ordinal: 1, Reason: "the file is too large"}
	}
	r := reader{rest: decodeText(file)}
	for {
		r.skip()
		if r.rest == "" {
			break
		}
		if err := r.interchange(); err != nil {
			return nil, err
		}
	}
	if len(r.done) == 0 {
		return nil, &ParseError{Segment: "ISA", Ordinal: 1, Reason: "the file holds no interchange"}
	}
	return r.done, nil
}

// decodeText strips a byte order mark; a file that is not UTF-8 is read as ISO 8859-1, which contains X12's character sets.
func decodeText(file []byte) string {
	file = bytes.TrimPrefix(file, []byte("\uFEFF"))
	if utf8.Valid(file) {
		return string(file)
	}
	runes := make([]rune, len(file))
	for i, b := range file {
		runes[i] = rune(b)
	}
	return string(runes)
}

// reader parses the segments of a file in order.
type reader struct {
	rest  string
	count int
	sep   Separators
	done  []Interchange
}

// blank lists the characters ignored between segments: line breaks, blanks, and end-of-file marks of old systems.
const blank = " \t\r\n\x00\x1a"

func (r *reader) skip() { r.rest = strings.TrimLeft(r.rest, blank) }

// header parses ISA by its widths, and takes the separators from it.
func (r *reader) header() (Segment, error) {
	r.count++
	bad := func(position int, reason string) (Segment, error) {
		return Segment{}, &ParseError{Segment: "ISA", Ordinal: r.count, Position: position, Reason: reason}
	}
	if !strings.HasPrefix(r.rest, "ISA") {
		return bad(0, "an interchange begins with ISA")
	}
	line, after := joinBrokenLines(r.rest, isaLength)
	if len(line) < isaLength || after == "" {
		return bad(0, "is shorter than 106 characters")
	}
	separator, at := line[3], 3
	for i, width := range isaWidths {
		if line[at] != separator {
			return bad(i+1, "does not begin where it must: every element of ISA has its width")
		}
		if i != 10 && i != 15 { // elements that hold separators
			if value := line[at+1 : at+1+width]; strings.IndexByte(value, separator) >= 0 || !isPrintable(value) {
				return bad(i+1, "does not have its width, or has characters that an identifier cannot have")
			} else if (i == 8 || i == 9 || i == 12) && !isNumeric(value) {
				return bad(i+1, "is not a number of its width")
			}
		}
		at += 1 + width
	}
	r.sep = Separators{Element: separator, Component: line[104], Segment: after[0], Repetition: line[82]}
	if isAlphanumeric(r.sep.Repetition) { // the U of older versions: no repetition separator
		r.sep.Repetition = 0
	}
	if position := r.sep.invalidPosition(); position > 0 {
		return bad(position, "separators must be four different characters, neither letters nor digits")
	}
	r.rest = after[1:]
	return Segment{ID: "ISA", Ordinal: r.count, data: line[4:], Separators: r.sep}, nil
}

// joinBrokenLines returns the first n bytes without line breaks, and the rest.
func joinBrokenLines(text string, n int) (line, after string) {
	if len(text) >= n && !strings.ContainsAny(text[:n], "\r\n") {
		return text[:n], text[n:]
	}
	var b strings.Builder
	for i := range len(text) {
		if b.Len() == n {
			return b.String(), strings.TrimLeft(text[i:], "\r\n")
		}
		if text[i] != '\r' && text[i] != '\n' {
			b.WriteByte(text[i])
		}
	}
	return b.String(), ""
}

// invalidPosition returns the ISA element with an invalid separator, or 0; 16 also stands for the terminator, which follows it.
func (s Separators) invalidPosition() int {
	seen := map[byte]bool{}
	for _, one := range []struct {
		separator byte
		position  int
	}{{s.Element, 1}, {s.Repetition, 11}, {s.Component, 16}, {s.Segment, 16}} {
		if one.separator == 0 && one.position == 11 {
			continue
		}
		if isAlphanumeric(one.separator) || one.separator == ' ' || one.separator == 0 || one.separator >= utf8.RuneSelf || seen[one.separator] {
			return one.position
		}
		seen[one.separator] = true
	}
	return 0
}

func isAlphanumeric(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}

// isPrintable reports whether a text is printable ASCII.
func isPrintable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// segment returns the next segment; false at the end of the file.
func (r *reader) segment() (Segment, bool, error) {
	for {
		r.skip()
		if r.rest == "" {
			return Segment{}, false, nil
		}
		raw, after, ended := strings.Cut(r.rest, string(r.sep.Segment))
		r.rest = after
		if strings.Trim(raw, blank) == "" { // a repeated terminator, or a line break used as one
			continue
		}
		r.count++
		s, err := r.parse(raw, ended)
		return s, true, err
	}
}

func (r *reader) parse(raw string, ended bool) (Segment, error) {
	if strings.ContainsAny(raw, "\r\n") { // a file wrapped at a fixed width
		raw = strings.NewReplacer("\r", "", "\n", "").Replace(raw)
	}
	id, data, _ := strings.Cut(raw, string(r.sep.Element))
	s := Segment{ID: id, Ordinal: r.count, data: strings.TrimRight(data, string(r.sep.Element)), Separators: r.sep}
	if !isName(id) {
		s.ID = "?" // the text may be PHI
		return s, s.fault(0, "has no valid segment name")
	}
	switch {
	case !ended:
		return s, s.fault(0, "has no terminator: the file was cut off")
	case r.count > maxSegments:
		return s, s.fault(0, "the file has too many segments")
	case s.Elements() > maxElements || len(data) > maxElements*1000:
		return s, s.fault(0, "has too many elements")
	}
	for i, b := range []byte(s.data) {
		if (b < ' ' || b == 0x7f) && b != s.Separators.Element && b != s.Separators.Component && b != s.Repetition {
			return s, s.fault(1+strings.Count(s.data[:i], string(s.Separators.Element)), "holds a control character")
		}
	}
	return s, nil
}

// isName reports whether a text is a segment name: a letter, then one or two letters or digits.
func isName(id string) bool {
	if len(id) < 2 || len(id) > 3 || id[0] < 'A' || id[0] > 'Z' {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) < 0
}

// Separators are the four separator characters that ISA defines for an interchange.
type Separators struct {
	Element, Component, Segment byte
	Repetition                  byte // 0 if ISA11 is a letter: the file has no repetitions
}

// standard are the separators of the guides' examples, which this package writes. Source: 005010X222A1, appendix B, "Delimiters".
var standard = Separators{Element: '*', Component: ':', Repetition: '^', Segment: '~'}

// A Segment is one segment of a file. It does not print.
type Segment struct {
	unprintable
	ID      string
	Ordinal int    // position in the file, from 1
	data    string // elements with separators between them, none at the end
	Separators
}

// Element returns the nth element, from 1, without padding blanks; "" if there is none.
func (s Segment) Element(n int) string {
	return strings.Trim(part(s.data, s.Separators.Element, n), " ")
}

// Component returns the mth component, from 1, of the nth element.
func (s Segment) Component(n, m int) string {
	return strings.Trim(part(s.Element(n), s.Separators.Component, m), " ")
}

func (s Segment) Elements() int {
	if s.data == "" {
		return 0
	}
	return strings.Count(s.data, string(s.Separators.Element)) + 1
}

func part(text string, separator byte, n int) string {
	for ; n > 1; n-- {
		at := strings.IndexByte(text, separator)
		if at < 0 {
			return ""
		}
		text = text[at+1:]
	}
	if at := strings.IndexByte(text, separator); at >= 0 {
		text = text[:at]
	}
	return text
}

// fault returns a fault at an element of the segment; position 0 is the whole segment.
func (s Segment) fault(position int, reason string) *ParseError {
	return &ParseError{Segment: s.ID, Ordinal: s.Ordinal, Position: position, Reason: reason}
}

// The accessors below are for elements that passed their rules.

func (s Segment) cents(n int) Cents { c, _ := centsOf(s.Element(n)); return c }

func (s Segment) number(n int) int { v, _ := strconv.Atoi(s.Element(n)); return v }

func (s Segment) day(n int) string { return dayOf(s.Element(n)) }

// dayOf converts CCYYMMDD to YYYY-MM-DD; "" for an invalid date.
func dayOf(text string) string {
	day, err := time.Parse("20060102", text)
	if err != nil {
		return ""
	}
	return day.Format(time.DateOnly)
}

// period reads a date by its format qualifier: D8 for a day, RD8 for a range. It returns "" for any other.
func period(qualifier, text string) (from, through string) {
	switch qualifier {
	case "D8":
		from = dayOf(text)
		return from, from
	case "RD8":
		first, last, _ := strings.Cut(text, "-")
		from, through = dayOf(first), dayOf(last)
		if from != "" && from <= through {
			return from, through
		}
	}
	return "", ""
}
