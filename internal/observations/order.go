package observations

import (
	"errors"
	"slices"
	"time"
)

// inOrder puts a group in order of measurement, so that it does not matter in which order a device empties its memory. What was
// measured at the same moment stays in the order in which it came.
// Source: docs/decisions/alerts.md, "Readings out of order".
func inOrder(group []*submitted) []*submitted {
	byTime := func(a, b *submitted) int { return a.In.Reading.MeasuredAt.Compare(b.In.Reading.MeasuredAt) }
	if slices.IsSortedFunc(group, byTime) {
		return group
	}
	group = slices.Clone(group)
	slices.SortStableFunc(group, byTime)
	return group
}

// following adds to a late reading what comes after it in its group, which is in order, and can supersede it: at least as reliable, and
// of a known time. Source: docs/decisions/alerts.md, "Late readings".
func (e *Engine) following(s Submission, after []*submitted, now time.Time) Submission {
	if len(after) == 0 || !e.Late(s.Reading.MeasuredAt, now) {
		return s
	}
	s.Following = slices.Clip(s.Following)
	for _, other := range after {
		if other.In.PatientID == s.PatientID && !other.In.unjudged() && other.In.origin().Settles(s.origin()) {
			s.Following = append(s.Following, other.In.Reading)
		}
	}
	return s
}

// errMisled rolls back a group in which a late reading was judged by one that was refused; each is then stored on its own.
var errMisled = errors.New("a late reading was judged by one that is not stored")

// Late reports whether a reading that was measured at a time comes late.
func (e *Engine) Late(measuredAt, now time.Time) bool { return e.rules.late(measuredAt, now) }
