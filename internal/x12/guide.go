package x12

import (
	"strings"
)

// A loop is a position in a transaction set, by the letter of its guide's table.
type loop byte

// segmentRule states where a segment may occur, the rules of its elements, and how it is processed.
type segmentRule[T any] struct {
	within string // the loops, by their letters
	opens  loop   // the loop that it opens, 0 for none
	on     int    // the element that selects between rules of one segment, 0 for none
	when   string // the value of that element
	rules  []rule
	// process stores the segment, or handle does if that can fail. Both are nil for an unused
	// segment.
	process func(*T, Segment)
	handle  func(*T, Segment) error
}

// A guide maps segment names to their rules; the first matching rule applies.
type guide[T any] map[string][]segmentRule[T]

// read processes a transaction set by the guide. needed lists required segments, as "ID" or "ID when".
func (g guide[T]) read(state *T, set Set, needed ...string) error {
	return g.readKeeping(state, set, func(*T, Segment, loop, error) (loop, bool) { return 0, false }, needed...)
}

// readKeeping is read for a set that may have unreadable parts: keep stores the error and returns
// the loop in which reading continues, or false if the error is about the whole set.
func (g guide[T]) readKeeping(state *T, set Set, keep func(*T, Segment, loop, error) (loop, bool), needed ...string) error {
	at, met := loop('H'), map[string]bool{}
	for _, s := range set.Segments {
		next, when, err := g.process(state, s, at)
		if err != nil {
			isKept := false
			if next, isKept = keep(state, s, at, err); !isKept {
				return err
			}
		}
		at, met[s.ID], met[s.ID+" "+when] = next, true, true
	}
	for _, name := range needed {
		if !met[name] {
			id, _, _ := strings.Cut(name, " ")
			return &ParseError{Segment: id, Ordinal: set.trailer.Ordinal, Reason: "is missing before SE"}
		}
	}
	return nil
}

// process checks and processes a segment, and returns the loop that follows it and the code that selected its rule.
func (g guide[T]) process(state *T, s Segment, at loop) (next loop, when string, err error) {
	r, err := g.find(s, at)
	if err == nil {
		err = s.check(r.rules)
	}
	if err != nil {
		return at, "", err
	}
	if next = r.opens; next == 0 {
		next = at
	}
	if r.process != nil {
		r.process(state, s)
	}
	if r.handle != nil {
		err = r.handle(state, s)
	}
	return next, r.when, err
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
		reason, position = "is not allowed here", 0
	}
	return r, s.fault(position, reason)
}

// kind is the format of an element.
type kind int

const (
	text    kind = iota // printable characters
	amount              // money
	decimal             // a number, with or without a fraction
	count               // a whole number
	date                // CCYYMMDD
)

// A rule states the format of one element.
type rule struct {
	element, component int // component 0: the whole element
	kind               kind
	required           bool
	max                int    // length limit; 0: the limit of the kind
	codes              string // the allowed values, separated by spaces; "" for any
}

func required(element int, kind kind) rule { return rule{element: element, kind: kind, required: true} }

func optional(element int, kind kind) rule { return rule{element: element, kind: kind} }

func (r rule) of(component int) rule { r.component = component; return r }

func (r rule) upTo(most int) rule { r.max = most; return r }

func (r rule) among(codes string) rule { r.codes = codes; return r }

// check applies rules to a segment.
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

// problem returns why a value violates the rule, or "". It never repeats the value.
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
