package triage

import (
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// verifiedPrefix begins the stored names of verified values. A value typed by the patient is shown as the latest, but cannot take the
// patient out of a critical band that a device or staff caused. Source: docs/decisions/triage.md, "Critical bands", and
// docs/decisions/alerts.md, "Reading origins".
const verifiedPrefix = "vouched_"

// verifiedAfter returns the verified values after another value of a parameter arrived. It must run before the value is added to the latest
// ones.
func (l Latest) verifiedAfter(p *vitals.Parameter, value float64, at time.Time, typed bool) []*vitals.Reading {
	latest, latestAt := l.Value(p)
	newest := latest == nil || !at.Before(latestAt)
	last := l.verifiedOf(p)
	switch {
	case newest && !typed:
		last = nil
	case newest && last == nil && latest != nil:
		last = singleValue(p, latest, latestAt)
	case newest && (last == nil || last.Value(p) == nil):
		last = singleValue(p, nil, at)
	case !newest && !typed && last != nil && (last.Value(p) == nil || !at.Before(last.MeasuredAt)):
		last = singleValue(p, &value, at)
	default:
		return l.verified
	}
	changed := make([]*vitals.Reading, len(vitals.Parameters))
	copy(changed, l.verified)
	changed[p.Index()] = last
	if !slices.ContainsFunc(changed, func(r *vitals.Reading) bool { return r != nil }) {
		return nil
	}
	return changed
}

func singleValue(p *vitals.Parameter, value *float64, at time.Time) *vitals.Reading {
	r := &vitals.Reading{MeasuredAt: at}
	*r.ValuePtr(p) = value
	return r
}

// verifiedOf returns the verified value of a parameter; nil unless its latest value was typed.
func (l Latest) verifiedOf(p *vitals.Parameter) *vitals.Reading {
	if l.verified == nil {
		return nil
	}
	return l.verified[p.Index()]
}

// ResolvingValue returns the latest value of a parameter that is reliable enough to resolve an alert raised by the given origin, and its
// time; nil for none.
func (l Latest) ResolvingValue(p *vitals.Parameter, raised vitals.Origin) (*float64, time.Time) {
	last := l.verifiedOf(p)
	if last == nil || vitals.OriginPatient.CanResolve(raised) {
		return l.Value(p)
	}
	return last.Value(p), last.MeasuredAt
}

// recentVerified returns a verified value of the last 24 hours if the patient typed a later one; nil for none.
func (l Latest) recentVerified(p *vitals.Parameter, now time.Time) (*float64, time.Time) {
	last := l.verifiedOf(p)
	if last == nil || last.MeasuredAt.Before(now.Add(-halfFreshAfter)) {
		return nil, time.Time{}
	}
	return last.Value(p), last.MeasuredAt
}

// withRecentVerified appends recent critical verified values to the latest values.
func (si ScoreInput) withRecentVerified(latest []measuredValue, now time.Time) []measuredValue {
	if si.Latest.verified == nil {
		return latest
	}
	for _, p := range vitals.ThresholdParameters {
		value, at := si.Latest.recentVerified(p, now)
		if value == nil {
			continue
		}
		judged, found := boundedValue(p, *value, at, si.Thresholds), true
		if p.Change != nil {
			var gain float64
			gain, _, found = alerts.GainAndLoss(p, *value, at, si.Thresholds.Change(p), si.Baseline)
			judged = changeValue(p, gain, at, si.Thresholds)
		}
		if found && judged.critical() {
			latest = append(latest, judged)
		}
	}
	return latest
}
