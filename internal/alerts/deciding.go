package alerts

import (
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Deciding picks, of what many readings are compared with, the few values that decide: of each span the lowest and the highest. Spans begin with
// a day, so that those of a day's readings are gone through together, once.
type Deciding struct {
	weighings []Weighing // in order of measurement
	spans     map[span]*reach
}

type span struct {
	of   *vitals.Parameter
	from time.Time
}

// reach is the lowest and the highest value of a span up to the reading that was last asked about.
type reach struct {
	next      int // in the weighings
	low, high *Weighing
}

// NewDeciding returns what picks of the given values.
func NewDeciding(weighings []Weighing) *Deciding {
	weighings = slices.Clone(weighings)
	slices.SortStableFunc(weighings, func(a, b Weighing) int { return a.MeasuredAt.Compare(b.MeasuredAt) })
	return &Deciding{weighings, map[span]*reach{}}
}

// Of is what decides about a reading, no more than two values for each span. Readings are asked about in order of measurement.
func (d *Deciding) Of(r vitals.Reading, t Thresholds) (deciding []Weighing) {
	for _, p := range vitals.Changing {
		if r.Value(p) == nil {
			continue
		}
		rule := t.Change(p)
		for _, days := range []int{1, rule.WindowDays} {
			if e := d.before(span{p, rule.Since(r.MeasuredAt, days).UTC()}, r.MeasuredAt); e.low != nil {
				deciding = append(deciding, *e.low, *e.high)
			}
		}
	}
	return deciding
}

func (d *Deciding) before(s span, at time.Time) *reach {
	e := d.spans[s]
	if e == nil {
		first, _ := slices.BinarySearchFunc(d.weighings, s.from, func(w Weighing, from time.Time) int { return w.MeasuredAt.Compare(from) })
		e = &reach{next: first}
		d.spans[s] = e
	}
	for ; e.next < len(d.weighings) && d.weighings[e.next].MeasuredAt.Before(at); e.next++ {
		w := &d.weighings[e.next]
		if w.Of != s.of {
			continue
		}
		if e.low == nil || w.Value < e.low.Value {
			e.low = w
		}
		if e.high == nil || w.Value > e.high.Value {
			e.high = w
		}
	}
	return e
}
