package x12

import (
	"strconv"
	"strings"
	"time"
)

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
func (s Segment) fault(position int, reason string) *Fault {
	return &Fault{Segment: s.ID, Ordinal: s.Ordinal, Position: position, Reason: reason}
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
