package x12

import (
	"strconv"
	"strings"
)

// Separators are the four characters that an interchange sets for itself in its first segment.
type Separators struct {
	Element, Component, Segment byte
	Repetition                  byte // 0 where ISA11 is a letter, as in files that carry no repetitions
}

// standard are the separators that the guides use in their examples and that we write. Source: 005010X222A1, appendix B, "Delimiters".
var standard = Separators{Element: '*', Component: ':', Repetition: '^', Segment: '~'}

// A Segment is one line of a file. It refuses to print.
type Segment struct {
	unprintable
	ID      string
	Ordinal int    // its place in the file, from 1
	data    string // its elements, separated; no separators at the end
	Separators
}

// Element is the nth element, from 1, without the blanks that some senders fill it up with; "" where there is none.
func (s Segment) Element(n int) string {
	return strings.Trim(part(s.data, s.Separators.Element, n), " ")
}

// Component is the mth component, from 1, of the nth element.
func (s Segment) Component(n, m int) string {
	return strings.Trim(part(s.Element(n), s.Separators.Component, m), " ")
}

// Elements counts the elements.
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

// fault is a fault at an element of the segment; 0 for the whole.
func (s Segment) fault(position int, reason string) *Fault {
	return &Fault{Segment: s.ID, Ordinal: s.Ordinal, Position: position, Reason: reason}
}

// kind is what an element must look like.
type kind int

const (
	text    kind = iota // characters that can be shown
	amount              // money
	decimal             // a number, perhaps with a fraction
	count               // a whole number
	date                // CCYYMMDD
)

// A rule is one row of a guide's table: an element, and what it must be.
type rule struct {
	element, component int // component 0 for the element as a whole
	kind               kind
	required           bool
	max                int    // most characters; 0 for as many as the kind has
	codes              string // the only ones allowed, separated by spaces; "" for any
}

func must(element int, kind kind) rule { return rule{element: element, kind: kind, required: true} }

func may(element int, kind kind) rule { return rule{element: element, kind: kind} }

func (r rule) of(component int) rule { r.component = component; return r }

func (r rule) upTo(most int) rule { r.max = most; return r }

func (r rule) among(codes string) rule { r.codes = codes; return r }

// check holds a segment to its rules.
func (s Segment) check(rules []rule) error {
	for _, r := range rules {
		value := s.Element(r.element)
		if r.component > 0 {
			value = s.Component(r.element, r.component)
		}
		if value == "" {
			if r.required {
				return s.fault(r.element, "is missing")
			}
			continue
		}
		if reason := r.problem(value); reason != "" {
			return s.fault(r.element, reason)
		}
	}
	return nil
}

// problem says what is the matter with a value, "" for nothing. It never repeats the value.
func (r rule) problem(value string) string {
	if r.max > 0 && len(value) > r.max {
		return "is too long"
	}
	if r.codes != "" && !inList(r.codes, value) {
		return "is no code that the guide has"
	}
	switch r.kind {
	case amount:
		if _, ok := centsOf(value); !ok {
			return "is no amount"
		}
	case decimal:
		if !isDecimal(value) {
			return "is no number"
		}
	case count:
		if !isNumeric(value) || len(value) > 9 {
			return "is no whole number"
		}
	case date:
		if dayOf(value) == "" {
			return "is no date"
		}
	case text:
	}
	return ""
}

func inList(codes, value string) bool {
	return !strings.Contains(value, " ") && strings.Contains(" "+codes+" ", " "+value+" ")
}

func isDecimal(value string) bool {
	digits := strings.TrimPrefix(value, "-")
	return len(digits) <= maxDigits && digits != "." && digits != "" && isNumeric(strings.Replace(digits, ".", "", 1))
}

// The readers below are for elements that the rules have passed.

func (s Segment) cents(n int) Cents { c, _ := centsOf(s.Element(n)); return c }

func (s Segment) number(n int) int { v, _ := strconv.Atoi(s.Element(n)); return v }

func (s Segment) day(n int) string { return dayOf(s.Element(n)) }
