package billing

import (
	"slices"
	"time"
)

// interval is a time interval: from is included, until is not.
type interval struct{ from, until time.Time }

func (m interval) length() time.Duration { return max(0, m.until.Sub(m.from)) }

// subtractIntervals returns the parts of spans that none of others covers, in order.
func subtractIntervals(spans, others []interval) []interval {
	for _, other := range others {
		var left []interval
		for _, s := range spans {
			if !other.from.Before(s.until) || !s.from.Before(other.until) {
				left = append(left, s)
				continue
			}
			for _, part := range []interval{{s.from, other.from}, {other.until, s.until}} {
				if part.from.Before(part.until) {
					left = append(left, part)
				}
			}
		}
		spans = left
	}
	slices.SortFunc(spans, func(a, b interval) int { return a.from.Compare(b.from) })
	return spans
}

// unionLength returns the total length of spans, each moment counted once.
func unionLength(spans []interval) (total time.Duration) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b interval) int { return a.from.Compare(b.from) })
	var covered time.Time
	for _, s := range spans {
		if covered.After(s.from) {
			s.from = covered
		}
		total += s.length()
		if s.until.After(covered) {
			covered = s.until
		}
	}
	return total
}
