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

// SurroundingReadings is what else was measured, for a reading that is not the newest of its kind or that came late: what arrives is judged in the
// order of measurement, whatever the order in which it comes.
// Source: docs/decisions/alerts.md, "Readings out of order" and "Late readings".
type SurroundingReadings struct {
	// Unordered: something newer is stored, and Others are all that may matter, in order of measurement; the reading is not among them.
	OutOfOrder bool
	Others     []Observation
	// Superseded are the alert types about which a late reading says nothing that still holds: something at least as reliable was
	// measured since.
	Superseded []string
}

// isLate reports whether a reading comes long after it was measured.
func (r Rules) isLate(measuredAt, now time.Time) bool {
	return r.LateAfter > 0 && now.Sub(measuredAt) > r.LateAfter
}

// escalates reports whether an alert is one that nobody can wait for. A late one is told and opens nothing by itself.
func escalates(alert alerts.Draft) bool { return alert.Finding.Level == alerts.Critical && !alert.Late }

// valuesToEvaluate is what of an observation is to be judged: what has just been added to it, otherwise all.
func (o Observation) valuesToEvaluate() vitals.Reading {
	if o.addition != nil {
		return *o.addition
	}
	return o.Reading
}

// evaluated is an observation with what it means.
func evaluated(o Observation, findings []alerts.Finding) alerts.Judged {
	return alerts.Judged{MeasuredAt: o.Reading.MeasuredAt, DeviceID: o.Reading.DeviceID, Origin: o.Origin, Findings: findings}
}

// groupsPresent are the parameters of which a reading has at least one value, by alert type.
func groupsPresent(r vitals.Reading) (groups [][]*vitals.Parameter) {
	for _, group := range r.Kind.Definition().Groups {
		if anyValue(r, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

func anyValue(r vitals.Reading, group []*vitals.Parameter) bool {
	for _, p := range group {
		if r.Value(p) != nil {
			return true
		}
	}
	return false
}

// kindsOf are the kinds that can speak about one of the groups.
func kindsOf(groups [][]*vitals.Parameter) (kinds []vitals.Kind) {
	for _, group := range groups {
		for _, p := range group {
			for _, kind := range p.Kinds {
				if !slices.Contains(kinds, kind) {
					kinds = append(kinds, kind)
				}
			}
		}
	}
	return kinds
}

// loadSurrounding reads what else was measured, where that can change what follows from a reading. For the newest of its kind, which most
// are, it asks nothing.
func (e *Evaluator) loadSurrounding(tx core.App, s *AssessInput, o Observation, following []vitals.Reading, now time.Time) (err error) {
	if s.Heartbeats, err = e.loadHeartbeatFlags(tx, o, s.Snapshot.Open, now); err != nil {
		return err
	}
	r := o.valuesToEvaluate()
	late := e.rules.isLate(r.MeasuredAt, now)
	s.Surrounding.OutOfOrder = hasNewerLatest(s.Snapshot.Latest, r)
	if !s.Surrounding.OutOfOrder && (!late || len(following) == 0) {
		return nil
	}
	groups := groupsPresent(r)
	breaches := func(alertType string) bool {
		return slices.ContainsFunc(alerts.Evaluate(r, s.Snapshot.Thresholds, s.Snapshot.Weighings), func(f alerts.Finding) bool {
			return f.Type == alertType && f.Breached()
		})
	}
	from := time.Time{} // of what is to be read
	since := func(at time.Time) {
		if from.IsZero() || at.Before(from) {
			from = at
		}
	}
	for _, group := range groups {
		if alertType := group[0].Group; breaches(alertType) {
			switch over, err := isSuperseded(tx, o, group, following, late); {
			case err != nil:
				return err
			case over:
				s.Surrounding.Superseded = append(s.Surrounding.Superseded, alertType)
			case !late:
				since(r.MeasuredAt)
			}
		}
		for _, open := range s.Snapshot.Open {
			if open.Type == group[0].Group && open.MeasuredAt.Before(r.MeasuredAt) && open.Settleable(now) {
				since(open.MeasuredAt)
			}
		}
	}
	if from.IsZero() || !s.Surrounding.OutOfOrder {
		return nil
	}
	s.Surrounding.Others, err = measuredAfter(tx, o.PatientID, groups, from, o.ID)
	return err
}

// hasNewerLatest reports whether something newer is known about an alert type of which a reading speaks.
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

// isSuperseded reports whether something about the group that is at least as reliable was measured after a late reading, be it stored
// or about to be.
func isSuperseded(tx core.App, o Observation, group []*vitals.Parameter, following []vitals.Reading, late bool) (bool, error) {
	if !late {
		return false, nil
	}
	if slices.ContainsFunc(following, func(r vitals.Reading) bool { return r.MeasuredAt.After(o.Reading.MeasuredAt) && anyValue(r, group) }) {
		return true, nil
	}
	return HasNewerReadings(tx, o.PatientID, [][]*vitals.Parameter{group}, o.Reading.MeasuredAt, o.Origin)
}

// HasNewerReadings reports whether a patient has something newer about each of the groups, at least as reliable as the origin: what is late and
// is about them says nothing that still holds. Source: docs/decisions/alerts.md, "Late readings".
func HasNewerReadings(tx core.App, patientID string, groups [][]*vitals.Parameter, at time.Time, origin vitals.Origin) (newer bool, err error) {
	for i, group := range groups {
		columns := make([]string, len(group))
		for k, p := range group {
			columns[k] = p.Column
		}
		newer, err = collections.MeasuredAfter(tx, patientID, kindsOf(groups[i:i+1]), columns, at, vitals.OriginPatient.Settles(origin))
		if err != nil || !newer {
			return false, err
		}
	}
	return newer, nil
}

// measuredAfter are a patient's observations that can speak about the groups, in order of measurement, but for one.
func measuredAfter(tx core.App, patientID string, groups [][]*vitals.Parameter, after time.Time, except string) (list []Observation, err error) {
	records, err := collections.ObservationsAfter(tx, patientID, kindsOf(groups), after)
	for _, record := range records {
		if record.Id != except {
			list = append(list, ObservationFromRecord(record))
		}
	}
	return list, err
}

// sequence is what was measured around a reading that is not the newest, with the reading in its place, and what each means by the
// bounds in force; nil for the newest.
func (s AssessInput) sequence(o Observation, r vitals.Reading, findings []alerts.Finding) []alerts.Judged {
	if !s.Surrounding.OutOfOrder {
		return nil
	}
	weighings := slices.Concat(s.Snapshot.Weighings, baselineValues(r), baselineValues(readingsOf(s.Surrounding.Others)...))
	sequence := append(evaluateAll(s.Surrounding.Others, s.Snapshot.Thresholds, weighings), evaluated(o, findings))
	slices.SortStableFunc(sequence, func(a, b alerts.Judged) int { return a.MeasuredAt.Compare(b.MeasuredAt) })
	return sequence
}

// evaluateAll judges what was measured, in order of measurement.
func evaluateAll(list []Observation, t alerts.Thresholds, weighings []alerts.Weighing) []alerts.Judged {
	judged := make([]alerts.Judged, 0, len(list)+1)
	deciding := alerts.NewDeciding(weighings)
	for _, o := range list {
		judged = append(judged, evaluated(o, alerts.Evaluate(o.Reading, t, deciding.Of(o.Reading, t))))
	}
	return judged
}

func readingsOf(list []Observation) (readings []vitals.Reading) {
	for _, o := range list {
		readings = append(readings, o.Reading)
	}
	return readings
}

// baselineValues are the values of readings that are watched for changes.
func baselineValues(readings ...vitals.Reading) (list []alerts.Weighing) {
	for _, r := range readings {
		for _, p := range vitals.Changing {
			if value := r.Value(p); value != nil {
				list = append(list, alerts.Weighing{Of: p, Value: *value, MeasuredAt: r.MeasuredAt})
			}
		}
	}
	return list
}

// setLateness says of an alert whether its reading comes late, and what was measured since makes of it. What is not late is settled as if
// everything had come in its order.
func (s AssessInput) setLateness(raised *alerts.Draft, sequence []alerts.Judged, rules Rules, now time.Time) {
	if raised.Late = rules.isLate(raised.MeasuredAt, now); raised.Late {
		raised.Finding.Date(raised.MeasuredAt)
		raised.Superseded = slices.Contains(s.Surrounding.Superseded, raised.Finding.Type)
		return
	}
	if sequence != nil {
		alert := alerts.Open{Type: raised.Finding.Type, Level: raised.Finding.Level, MeasuredAt: raised.MeasuredAt, Origin: raised.Origin}
		raised.NormalReadings, raised.Settled = alert.SettledBy(sequence, rules.NormalReadingsNeeded)
	}
}
