package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// SurroundingReadings are loaded for a reading that is late or not the newest of its kind: readings are evaluated in order of measurement,
// not of arrival. Source: docs/decisions/alerts.md, "Readings out of order" and "Late readings".
type SurroundingReadings struct {
	// OutOfOrder: a newer reading is stored. Others are the relevant readings in order of measurement, without this one.
	OutOfOrder bool
	Others     []Observation
	// Superseded are the alert types of a late reading for which a newer reading exists from an origin at least as reliable.
	Superseded []string
	// Around are the blood pressures measured within an hour of one, in order, and Questions those about two people that exist.
	Around    []Observation
	Questions []*collections.Alert
}

// valuesToEvaluate returns the part that was just merged, or the whole reading.
func (o Observation) valuesToEvaluate() vitals.Reading {
	if o.mergedPart != nil {
		return *o.mergedPart
	}
	return o.Reading
}

// evaluated combines an observation with its findings and the readings around it.
func evaluated(o Observation, findings []alerts.Finding, around []Observation) alerts.EvaluatedReading {
	r := alerts.EvaluatedReading{
		MeasuredAt: o.Reading.MeasuredAt, DeviceID: o.Reading.DeviceID, Origin: o.Origin, Findings: findings, OtherPersonTimes: o.otherPersonTimes(around),
	}
	for _, group := range groupsPresent(o.Reading) {
		r.Measured = append(r.Measured, group[0].Group)
	}
	return r
}

// groupsPresent returns the groups of parameters, by alert type, of which the reading has at least one value.
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

// kindsOf returns the kinds that measure one of the groups.
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

// loadSurrounding reads the surrounding readings if they can change the effects of this one. It queries nothing for the newest reading of
// its kind, which most are.
func (rs *ReadingStore) loadSurrounding(tx core.App, s *AssessInput, o Observation, following []vitals.Reading, now time.Time) (err error) {
	if s.Heartbeats, err = rs.loadHeartbeatFlags(tx, o, s.Snapshot.Open, now); err != nil {
		return err
	}
	if err := loadSharedCuff(tx, &s.Surrounding, s.Snapshot.Latest, o); err != nil {
		return err
	}
	r := o.valuesToEvaluate()
	late := rs.rules.isLate(r.MeasuredAt, now)
	s.Surrounding.OutOfOrder = hasNewerLatest(s.Snapshot.Latest, r)
	if !s.Surrounding.OutOfOrder && (!late || len(following) == 0) {
		return nil
	}
	groups := groupsPresent(r)
	breaches := func(alertType string) bool {
		return slices.ContainsFunc(alerts.Evaluate(r, s.Snapshot.Thresholds, s.Snapshot.Baseline), func(f alerts.Finding) bool {
			return f.Type == alertType && f.Breached()
		})
	}
	from := time.Time{} // time from which to read
	since := func(at time.Time) {
		if from.IsZero() || at.Before(from) {
			from = at
		}
	}
	for _, group := range groups {
		if alertType := group[0].Group; breaches(alertType) {
			superseded := false
			if late {
				if superseded, err = isSuperseded(tx, o, group, following, s.IsClockUnproven); err != nil {
					return err
				}
			} else {
				since(r.MeasuredAt)
			}
			if superseded {
				s.Surrounding.Superseded = append(s.Surrounding.Superseded, alertType)
			}
		}
		for _, open := range s.Snapshot.Open {
			if open.Type == group[0].Group && open.MeasuredAt.Before(r.MeasuredAt) && open.CanAutoResolve(now) {
				since(open.MeasuredAt)
			}
		}
	}
	if from.IsZero() || !s.Surrounding.OutOfOrder {
		return nil
	}
	s.Surrounding.Others, err = measuredSince(tx, o.PatientID, groups, from, o.ID)
	return err
}

// measuredSince returns the patient's observations of the groups from since on, except one. Those
// at since itself raised the first alert.
func measuredSince(tx core.App, patientID string, groups [][]*vitals.Parameter, since time.Time, except string) (list []Observation, err error) {
	records, err := collections.ObservationsAfter(tx, patientID, kindsOf(groups), since.Add(-time.Microsecond))
	for _, record := range records {
		if record.Id != except {
			list = append(list, ObservationFromRecord(record))
		}
	}
	return list, err
}

// sequence returns the surrounding readings and this one in order of measurement, with their findings by the current bounds; nil for the
// newest.
func (ai AssessInput) sequence(o Observation, r vitals.Reading, findings []alerts.Finding) []alerts.EvaluatedReading {
	if !ai.Surrounding.OutOfOrder {
		return nil
	}
	baseline := slices.Concat(ai.Snapshot.Baseline, baselineValues(r), baselineValues(readingsOf(ai.Surrounding.Others)...))
	all := append(slices.Clip(ai.Surrounding.Others), o)
	sequence := append(evaluateAll(ai.Surrounding.Others, all, ai.Snapshot.Thresholds, baseline), evaluated(o, findings, ai.Surrounding.Others))
	slices.SortStableFunc(sequence, func(a, b alerts.EvaluatedReading) int { return a.MeasuredAt.Compare(b.MeasuredAt) })
	return sequence
}

// evaluateAll evaluates readings in order of measurement, among all that may be another person's.
func evaluateAll(list, all []Observation, t alerts.Thresholds, baseline []alerts.BaselineValue) []alerts.EvaluatedReading {
	evaluations := make([]alerts.EvaluatedReading, 0, len(list)+1)
	deciding := alerts.NewExtremes(baseline)
	for _, o := range list {
		evaluations = append(evaluations, evaluated(o, alerts.Evaluate(o.Reading, t, deciding.DecidingValues(o.Reading, t)), all))
	}
	return evaluations
}

func readingsOf(list []Observation) (readings []vitals.Reading) {
	for _, o := range list {
		readings = append(readings, o.Reading)
	}
	return readings
}

// baselineValues returns the values that are watched for changes.
func baselineValues(readings ...vitals.Reading) (list []alerts.BaselineValue) {
	for _, r := range readings {
		for _, p := range vitals.ChangeParameters {
			if value := r.Value(p); value != nil {
				list = append(list, alerts.BaselineValue{Parameter: p, Value: *value, MeasuredAt: r.MeasuredAt})
			}
		}
	}
	return list
}
