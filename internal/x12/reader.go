package x12

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Most that a file may hold: far above a day's answers of a large payer, far below what would hurt a small server.
const (
	maxBytes    = 32 << 20
	maxSegments = 500_000
	maxElements = 200 // of one segment, and of one segment's bytes a thousand times as many
)

// isaWidths are the widths of ISA01 to ISA16: the one segment whose elements do not move. Source: 005010X222A1, appendix C, "ISA".
var isaWidths = [...]int{2, 10, 2, 10, 2, 15, 2, 15, 6, 4, 1, 5, 9, 1, 1, 1}

// isaLength is that of ISA with its separators, without the terminator.
const isaLength = 105

// Read takes a file apart: any separators, line breaks after, instead of and within segments, any number of interchanges, groups and transaction
// sets. It checks every envelope: lengths, versions, control numbers and counts. Its errors are of type [Fault].
func Read(file []byte) ([]Interchange, error) {
	if len(file) > maxBytes {
		return nil, &Fault{Segment: "ISA", Ordinal: 1, Reason: "the file is too large"}
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
		return nil, &Fault{Segment: "ISA", Ordinal: 1, Reason: "the file holds no interchange"}
	}
	return r.done, nil
}

// decodeText is the file without a byte order mark; what is not UTF-8 is read as ISO 8859-1, of which X12's own characters are a part.
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

// A reader takes segments from the front of a file.
type reader struct {
	rest  string
	count int
	sep   Separators
	done  []Interchange
}

// blank is what may stand between segments: breaks, blanks, and what old systems end a file with.
const blank = " \t\r\n\x00\x1a"

func (r *reader) skip() { r.rest = strings.TrimLeft(r.rest, blank) }

// header reads ISA by its widths, and from it what separates all that follows.
func (r *reader) header() (Segment, error) {
	r.count++
	bad := func(position int, reason string) (Segment, error) {
		return Segment{}, &Fault{Segment: "ISA", Ordinal: r.count, Position: position, Reason: reason}
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
		if i != 10 && i != 15 { // these hold separators
			if value := line[at+1 : at+1+width]; strings.IndexByte(value, separator) >= 0 || !isPrintable(value) {
				return bad(i+1, "has not its width, or characters that an identifier has not")
			} else if (i == 8 || i == 9 || i == 12) && !isNumeric(value) {
				return bad(i+1, "is no number of its width")
			}
		}
		at += 1 + width
	}
	r.sep = Separators{Element: separator, Component: line[104], Segment: after[0], Repetition: line[82]}
	if isAlphanumeric(r.sep.Repetition) { // the U of older versions: nothing repeats
		r.sep.Repetition = 0
	}
	if position := r.sep.invalidPosition(); position > 0 {
		return bad(position, "separators must be four different characters, neither letters nor digits")
	}
	r.rest = after[1:]
	return Segment{ID: "ISA", Ordinal: r.count, data: line[4:], Separators: r.sep}, nil
}

// joinBrokenLines is the first n bytes, without line breaks that cut through them, and what comes after.
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

// invalidPosition is the element of ISA whose separator cannot be one, 0 for none; 16 stands for the terminator, too, which comes behind it.
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

// isPrintable says that a text holds nothing but ASCII characters that can be shown.
func isPrintable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// segment takes the next one; false at the end of the file.
func (r *reader) segment() (Segment, bool, error) {
	for {
		r.skip()
		if r.rest == "" {
			return Segment{}, false, nil
		}
		raw, after, ended := strings.Cut(r.rest, string(r.sep.Segment))
		r.rest = after
		if strings.Trim(raw, blank) == "" { // a terminator twice, or a line break as one
			continue
		}
		r.count++
		s, err := r.parse(raw, ended)
		return s, true, err
	}
}

func (r *reader) parse(raw string, ended bool) (Segment, error) {
	if strings.ContainsAny(raw, "\r\n") { // a file that was wrapped at a width
		raw = strings.NewReplacer("\r", "", "\n", "").Replace(raw)
	}
	id, data, _ := strings.Cut(raw, string(r.sep.Element))
	s := Segment{ID: id, Ordinal: r.count, data: strings.TrimRight(data, string(r.sep.Element)), Separators: r.sep}
	if !isName(id) {
		s.ID = "?" // what stands there may be anybody's data
		return s, s.fault(0, "has no name of a segment")
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

// isName says that a text can be a segment's: a letter, then one or two letters or digits.
func isName(id string) bool {
	if len(id) < 2 || len(id) > 3 || id[0] < 'A' || id[0] > 'Z' {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) < 0
}
