package alerts

import (
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Extremes picks, from the baseline of many readings, the lowest and the highest value of each span, which decide a change. Spans begin
// with a calendar day, so the readings of a day share one pass.
type Extremes struct {
	baseline []BaselineValue // in order of measurement
	spans    map[span]*extent
}

type span struct {
	of   *vitals.Parameter
	from time.Time
}

// extent is the lowest and highest value of a span before the last reading queried.
type extent struct {
	next      int // in the weighings
	low, high *BaselineValue
}

// NewExtremes returns the extremes of a baseline.
func NewExtremes(baseline []BaselineValue) *Extremes {
	baseline = slices.Clone(baseline)
	slices.SortStableFunc(baseline, func(a, b BaselineValue) int { return a.MeasuredAt.Compare(b.MeasuredAt) })
	return &Extremes{baseline, map[span]*extent{}}
}

// Of returns the values that decide the changes of a reading, at most two per span. Readings must be queried in order of measurement.
func (d *Extremes) Of(r vitals.Reading, t Thresholds) (deciding []BaselineValue) {
	for _, p := range vitals.ChangeWatched {
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

func (d *Extremes) before(s span, at time.Time) *extent {
	e := d.spans[s]
	if e == nil {
		first, _ := slices.BinarySearchFunc(d.baseline, s.from, func(w BaselineValue, from time.Time) int { return w.MeasuredAt.Compare(from) })
		e = &extent{next: first}
		d.spans[s] = e
	}
	for ; e.next < len(d.baseline) && d.baseline[e.next].MeasuredAt.Before(at); e.next++ {
		w := &d.baseline[e.next]
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
