package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// isLate reports whether a reading arrives long after it was measured.
func (r Rules) isLate(measuredAt, now time.Time) bool {
	return r.LateAfter > 0 && now.Sub(measuredAt) > r.LateAfter
}

// IsLate reports whether a reading measured at a time is late.
func (e *ReadingStore) IsLate(measuredAt, now time.Time) bool { return e.rules.isLate(measuredAt, now) }

// hasNewerLatest reports whether the patient's latest values include a newer one of a group that the reading has.
func hasNewerLatest(latest triage.Latest, r vitals.Reading) bool {
	for _, group := range r.Kind.Definition().Groups {
		if !anyValue(r, group) {
			continue
		}
		for _, p := range group {
			if value, measured := latest.Value(p); value != nil && measured.After(r.MeasuredAt) {
				return true
			}
		}
	}
	return false
}

// isSuperseded reports whether the group was measured after a late reading by an origin at least as reliable, in the same request or
// stored.
func isSuperseded(tx core.App, o Observation, group []*vitals.Parameter, following []vitals.Reading, late bool) (bool, error) {
	if !late {
		return false, nil
	}
	if slices.ContainsFunc(following, func(r vitals.Reading) bool { return r.MeasuredAt.After(o.Reading.MeasuredAt) && anyValue(r, group) }) {
		return true, nil
	}
	return HasNewerReadings(tx, o.PatientID, [][]*vitals.Parameter{group}, o.Reading.MeasuredAt, o.Origin)
}

// HasNewerReadings reports whether the patient has a newer reading of each group, from an origin at least as reliable. A late alert about
// these groups is superseded then. Source: docs/decisions/alerts.md, "Late readings".
func HasNewerReadings(tx core.App, patientID string, groups [][]*vitals.Parameter, at time.Time, origin vitals.Origin) (newer bool, err error) {
	for i, group := range groups {
		columns := make([]string, len(group))
		for k, p := range group {
			columns[k] = p.Column
		}
		newer, err = collections.HasReadingAfter(tx, patientID, kindsOf(groups[i:i+1]), columns, at, vitals.OriginPatient.CanResolve(origin))
		if err != nil || !newer {
			return false, err
		}
	}
	return newer, nil
}

// addNewerInGroup adds to a late reading the later readings of its sorted group that can supersede it: of a known time and an origin at
// least as reliable. Source: docs/decisions/alerts.md, "Late readings".
func (e *ReadingStore) addNewerInGroup(s Submission, after []*groupItem, now time.Time) Submission {
	if len(after) == 0 || !e.IsLate(s.Reading.MeasuredAt, now) {
		return s
	}
	s.NewerInBatch = slices.Clip(s.NewerInBatch)
	for _, other := range after {
		if other.In.PatientID == s.PatientID && !other.In.skipsEvaluation() && other.In.origin().CanResolve(s.origin()) {
			s.NewerInBatch = append(s.NewerInBatch, other.In.Reading)
		}
	}
	return s
}

// setLateness marks an alert as late, and as superseded if newer readings exist. An alert that is not late is auto-resolved as if all
// readings had arrived in order.
func (s AssessInput) setLateness(raised *alerts.Draft, sequence []alerts.Evaluated, rules Rules, now time.Time) {
	if raised.Late = rules.isLate(raised.MeasuredAt, now); raised.Late {
		raised.Finding.AddMeasuredAt(raised.MeasuredAt)
		raised.Superseded = slices.Contains(s.Surrounding.Superseded, raised.Finding.Type)
		return
	}
	if sequence != nil {
		alert := alerts.Open{Type: raised.Finding.Type, Level: raised.Finding.Level, MeasuredAt: raised.MeasuredAt, Origin: raised.Origin}
		raised.NormalReadings, raised.ResolvedByLater = alert.ResolvedBy(sequence, rules.NormalReadingsNeeded)
	}
}
