package x12

import (
	"strings"
)

// A loop is where in a transaction set a segment stands, by a letter of its guide's table.
type loop byte

// A row says of one segment of a guide where it may stand, what its elements must be, and what is done with it.
type segmentRule[T any] struct {
	within string // the loops, by their letters
	opens  loop   // the loop that it begins, 0 for none
	on     int    // an element that tells rows of one segment apart, 0 for none
	when   string // what it holds in this row
	rules  []rule
	handle func(*T, Segment) error // nil for what is not needed
}

// A guide is a table of rows by the name of the segment; of several with one name the first that fits is taken.
type guide[T any] map[string][]segmentRule[T]

// read walks a transaction set by the guide. needed are the segments that it cannot lack, with what tells rows of one name apart.
func (g guide[T]) read(state *T, set Set, needed ...string) error {
	at, met := loop('H'), map[string]bool{}
	for _, s := range set.Segments {
		r, err := g.find(s, at)
		if err == nil {
			err = s.check(r.rules)
		}
		if err != nil {
			return err
		}
		if r.opens != 0 {
			at = r.opens
		}
		met[s.ID], met[s.ID+" "+r.when] = true, true
		if r.handle == nil {
			continue
		}
		if err := r.handle(state, s); err != nil {
			return err
		}
	}
	for _, name := range needed {
		if !met[name] {
			id, _, _ := strings.Cut(name, " ")
			return &Fault{Segment: id, Ordinal: set.trailer.Ordinal, Reason: "is missing before SE"}
		}
	}
	return nil
}

func (g guide[T]) find(s Segment, at loop) (r segmentRule[T], err error) {
	rows, known := g[s.ID]
	if !known {
		return r, s.fault(0, "is no segment of the guide")
	}
	reason, position := "is no code that the guide has", rows[0].on
	for _, r := range rows {
		if r.on > 0 && r.when != s.Element(r.on) {
			continue
		}
		if strings.IndexByte(r.within, byte(at)) >= 0 {
			return r, nil
		}
		reason, position = "cannot stand here", 0
	}
	return r, s.fault(position, reason)
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
