package x12

import (
	"strconv"
	"strings"
	"time"
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

// The readers below are for elements that the rules have passed.

func (s Segment) cents(n int) Cents { c, _ := centsOf(s.Element(n)); return c }

func (s Segment) number(n int) int { v, _ := strconv.Atoi(s.Element(n)); return v }

func (s Segment) day(n int) string { return dayOf(s.Element(n)) }

// dayOf is CCYYMMDD as YYYY-MM-DD; "" for what is no day.
func dayOf(text string) string {
	day, err := time.Parse("20060102", text)
	if err != nil {
		return ""
	}
	return day.Format(time.DateOnly)
}

// period reads a date by its format qualifier: D8 for a day, RD8 for a range. Both are "" for neither.
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
