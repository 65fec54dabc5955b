package triage

import (
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// What a patient typed is shown as the latest value. It takes nobody out of a critical band that a device, or staff, put them in: there what
// settles an alert counts, and what does not settle it does not. Source: docs/decisions/triage.md, "Critical bands", and
// docs/decisions/alerts.md, "Reading origins".

// vouchedFor begins the names under which the values that are vouched for are stored.
const vouchedFor = "vouched_"

// vouchedWith is what is vouched for after one more value of a parameter arrived. It is asked before the value is among the latest.
func (l Latest) vouchedWith(p *vitals.Parameter, value float64, at time.Time, typed bool) []*vitals.Reading {
	latest, latestAt := l.Value(p)
	newest := latest == nil || !at.Before(latestAt)
	last := l.vouchedOf(p)
	switch {
	case newest && !typed:
		last = nil
	case newest && last == nil && latest != nil:
		last = alone(p, latest, latestAt)
	case newest && (last == nil || last.Value(p) == nil):
		last = alone(p, nil, at)
	case !newest && !typed && last != nil && (last.Value(p) == nil || !at.Before(last.MeasuredAt)):
		last = alone(p, &value, at)
	default:
		return l.vouched
	}
	changed := make([]*vitals.Reading, len(vitals.Parameters))
	copy(changed, l.vouched)
	changed[p.Place()] = last
	if !slices.ContainsFunc(changed, func(r *vitals.Reading) bool { return r != nil }) {
		return nil
	}
	return changed
}

func alone(p *vitals.Parameter, value *float64, at time.Time) *vitals.Reading {
	r := &vitals.Reading{MeasuredAt: at}
	*r.Slot(p) = value
	return r
}

// vouchedOf is nil unless the latest value of a parameter was typed.
func (l Latest) vouchedOf(p *vitals.Parameter) *vitals.Reading {
	if l.vouched == nil {
		return nil
	}
	return l.vouched[p.Place()]
}

// Settling is the latest value of a parameter that is reliable enough to settle what one of another origin raised, and when it was measured;
// nil for none.
func (l Latest) Settling(p *vitals.Parameter, raised vitals.Origin) (*float64, time.Time) {
	last := l.vouchedOf(p)
	if last == nil || vitals.OriginPatient.Settles(raised) {
		return l.Value(p)
	}
	return last.Value(p), last.MeasuredAt
}

// outlasting is a value of the last 24 hours beside which what the patient typed since is the latest; nil for none.
func (l Latest) outlasting(p *vitals.Parameter, now time.Time) (*float64, time.Time) {
	last := l.vouchedOf(p)
	if last == nil || last.MeasuredAt.Before(now.Add(-halfFreshAfter)) {
		return nil, time.Time{}
	}
	return last.Value(p), last.MeasuredAt
}

// stillVouched appends to the latest values the critical ones that outlast what the patient typed since.
func (c Circumstances) stillVouched(latest []parameter, now time.Time) []parameter {
	if c.Latest.vouched == nil {
		return latest
	}
	for _, p := range vitals.Watched {
		value, at := c.Latest.outlasting(p, now)
		if value == nil {
			continue
		}
		judged, known := bounded(p, *value, at, c.Thresholds), true
		if p.Change != nil {
			var gain float64
			gain, _, known = alerts.Gain(p, *value, at, c.Thresholds.Change(p), c.Weighings)
			judged = changed(p, gain, at, c.Thresholds)
		}
		if known && judged.critical() {
			latest = append(latest, judged)
		}
	}
	return latest
}
