package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Why a reading is, or was, suspect.
const (
	ReasonFarFromUsual = "far_from_usual"
	ReasonWrongUnit    = "wrong_unit" // not suspect if sent in another unit
)

// suspicion is the comparison of a reading with the patient's other ones: whether it is far from them, is accepted all the same, and which
// suspect readings it corroborates.
type suspicion struct {
	alerts.SuspectValue
	isFar, isAccepted bool
	corroborates      []string // ids of observations
}

func (s suspicion) isSuspect() bool { return s.needsCorroboration() && len(s.corroborates) == 0 }

func (s suspicion) needsCorroboration() bool { return s.isFar && !s.isAccepted }

func (s suspicion) reason() string {
	if s.Unit != nil {
		return ReasonWrongUnit
	}
	return ReasonFarFromUsual
}

// assessSuspicion reports whether a new reading may be another person's. A confirmed reading is never suspect. Source:
// docs/decisions/observations.md, "Suspect reading".
func (rs *ReadingStore) assessSuspicion(o Observation, p triage.PatientSnapshot) (d suspicion) {
	parameter := o.Reading.Kind.Definition().SuspectParameter
	value := o.Reading.Value(parameter)
	if value == nil || o.mergedPart != nil || o.suspicionDecided || o.Review != Accepted {
		return d
	}
	d.Parameter, d.Value = parameter, *value
	d.compare(usualValues(p.Baseline, d.SuspectValue, o.Reading.MeasuredAt), o.Origin, rs.rules)
	holds := !d.isFar || d.isAccepted // alone, or corroborated by an origin as reliable
	if !holds && d.Unit != nil {
		return d // the next reading from a device set to the wrong unit is similar and corroborates nothing
	}
	for _, other := range p.Suspects {
		if other.Reason != ReasonFarFromUsual || other.Parameter != parameter || other.MeasuredAt.Sub(o.Reading.MeasuredAt).Abs() > parameter.Suspect.Within ||
			!parameter.Suspect.IsClose(other.Value, d.Value) {
			continue
		}
		holds = holds || other.Origin.CanResolve(o.Origin)
		if o.Origin.CanResolve(other.Origin) {
			d.corroborates = append(d.corroborates, other.ID)
		}
	}
	if !holds {
		d.corroborates = nil
	}
	return d
}

// IsSuspect reports whether a reading would be suspect if it were stored.
func (rs *ReadingStore) IsSuspect(r vitals.Reading, origin vitals.Origin, p triage.PatientSnapshot) bool {
	return r.Kind.Definition().SuspectParameter != nil && rs.assessSuspicion(Observation{Reading: r, Origin: origin, Review: Accepted}, p).isSuspect()
}

// usualValues returns the last values before a time that count, latest first.
func usualValues(baseline []alerts.BaselineValue, d alerts.SuspectValue, at time.Time) (usual []alerts.BaselineValue) {
	since := at.AddDate(0, 0, -d.Parameter.Suspect.Days)
	for _, w := range baseline {
		if w.Parameter == d.Parameter && w.MeasuredAt.Before(at) && !w.MeasuredAt.Before(since) {
			usual = append(usual, w)
		}
	}
	slices.SortStableFunc(usual, func(a, b alerts.BaselineValue) int { return b.MeasuredAt.Compare(a.MeasuredAt) })
	return usual[:min(len(usual), d.Parameter.Suspect.Among)]
}

// compare compares the value with the usual ones. A value close to a confirmed one is accepted, if its origin is at least as reliable.
func (s *suspicion) compare(usual []alerts.BaselineValue, origin vitals.Origin, rules Rules) {
	if len(usual) < s.Parameter.Suspect.AtLeast {
		return
	}
	values := make([]float64, len(usual))
	for i, w := range usual {
		values[i] = w.Value
		s.isAccepted = s.isAccepted || w.Confirmed && w.Origin.CanResolve(origin) && s.Parameter.Suspect.IsClose(w.Value, s.Value)
	}
	s.Usual, s.Count = vitals.Median(values), len(values)
	if s.isFar = rules.Suspect.IsExceeded(s.Value, s.Usual); !s.isFar {
		return
	}
	s.Bound = s.Usual + rules.Suspect.Allowed(s.Usual)
	if s.Value < s.Usual {
		s.Bound = s.Usual - rules.Suspect.Allowed(s.Usual)
	}
	s.Unit, s.InUnit = s.Parameter.MistakenUnit(s.Value, s.Usual, rules.Suspect)
}

// resolveSuspicion stores a suspect reading, or confirms the suspect ones that the reading corroborates and evaluates all of them in order
// of measurement.
func (rs *ReadingStore) resolveSuspicion(
	tx core.App, b *writeBatch, o Observation, snapshot triage.PatientSnapshot, patient readingPatient, by audit.Actor, now time.Time,
) (outcome Outcome, decided bool, err error) {
	if isBefore, err := rs.hasLaterReviewed(tx, o, snapshot, now); err != nil || isBefore && o.Review == Accepted && !o.suspicionDecided {
		if err != nil {
			return outcome, true, err
		}
		return rs.reviewInOrder(tx, b, o, patient, by, now)
	}
	d := rs.assessSuspicion(o, snapshot)
	if d.isSuspect() {
		outcome, err = rs.storeSuspect(tx, b, o, d, snapshot, patient, by, now)
		return outcome, true, err
	}
	if len(d.corroborates) == 0 {
		return Outcome{}, false, nil
	}
	o.suspicionDecided = true
	if d.needsCorroboration() { // the second one, suspect on its own
		o.Review, o.SuspectReason, o.ConfirmedBy, o.ConfirmedAt = Confirmed, d.reason(), alerts.System, now
		if err := storeReview(tx, o, now); err != nil {
			return Outcome{}, true, err
		}
	}
	readings := []readingToEvaluate{{observation: o, patient: patient, by: by}}
	for _, id := range d.corroborates {
		suspectReading, err := FindObservation(tx, id)
		if err != nil {
			return Outcome{}, true, err
		}
		accepted, err := rs.markConfirmed(tx, suspectReading, alerts.System, patient, systemActor(by), now)
		if err != nil {
			return Outcome{}, true, err
		}
		readings = append(readings, accepted)
	}
	outcome, err = rs.evaluateConfirmed(tx, b, readings, o.ID, now)
	return outcome, true, err
}

// storeSuspect stores a suspect reading and raises one question for the care team for each run of them.
func (rs *ReadingStore) storeSuspect(
	tx core.App, b *writeBatch, o Observation, d suspicion, snapshot triage.PatientSnapshot, patient readingPatient, by audit.Actor, now time.Time,
) (Outcome, error) {
	o.Review, o.SuspectReason = Suspect, d.reason()
	o.FHIRStatus, o.FHIRVersion, o.TransformedAt = "", 0, time.Time{}
	if err := storeReview(tx, o, now); err != nil {
		return Outcome{}, err
	}
	prompted, err := collections.HasSuspectAlertInRun(tx, o.ID, alerts.TypeSuspectReading)
	if err != nil {
		return Outcome{}, err
	}
	return rs.applySuspect(tx, b, o, d, !prompted, snapshot, patient, by, now)
}

// applySuspect writes the effects of a stored suspect reading.
func (rs *ReadingStore) applySuspect(
	tx core.App, b *writeBatch, o Observation, d suspicion, prompt bool, snapshot triage.PatientSnapshot, patient readingPatient, by audit.Actor, now time.Time,
) (Outcome, error) {
	effects := rs.suspectEffects(o, snapshot, d, prompt, now)
	effects.CountDay = o.Reading.MeasuredAt.In(rs.rules.PracticeZone).Format(time.DateOnly)
	if len(effects.Alerts) > 0 {
		effects.PatientLabel = patient.row.label(o.PatientID)
	}
	outcome, err := applyEffects(tx, b, effects, by, now)
	if err == nil {
		patient.update(effects, outcome, now)
	}
	return outcome, err
}

// suspectEffects decides the effects of a suspect reading: the question, and that its device is not silent.
func (rs *ReadingStore) suspectEffects(o Observation, snapshot triage.PatientSnapshot, d suspicion, prompt bool, now time.Time) Effects {
	effects := Effects{Observation: o, Progress: endSilence(snapshot.Open, o.Reading.DeviceID)}
	if prompt {
		question := alertDraft(o, d.Finding(o.Reading.MeasuredAt, rs.rules.isLate(o.Reading.MeasuredAt, now)), false)
		question.Push = rs.rules.WarningPush.DecidePush(question, o.Reading, snapshot.Thresholds, alerts.PushHistory{})
		effects.Alerts = append(effects.Alerts, question)
	}
	effects.SnapshotAfter = effects.snapshotAfter(snapshot, storedInstant(now))
	effects.SnapshotAfter.Latest = snapshot.Latest
	effects.TriageRow = effects.SnapshotAfter.ComputeRow(now)
	return effects
}

// storeReview stores the review state of a reading and what depends on it.
func storeReview(tx core.App, o Observation, now time.Time) error {
	return collections.SetReview(tx, o.ID, collections.ObservationReview{
		Status: o.status(), State: string(o.Review), Reason: o.SuspectReason, ConfirmedBy: o.ConfirmedBy, ConfirmedAt: o.ConfirmedAt,
		FHIRStatus: o.FHIRStatus, FHIRVersion: o.FHIRVersion, TransformedAt: o.TransformedAt,
	}, now)
}
