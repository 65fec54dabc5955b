package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/triage"
)

// promptRestOfRun raises the question about the rest of a run of suspect readings after one of them is decided, since the resolved question
// was for the whole run. A reading that counts splits the run in two, which may each need a question. It reports whether it raised one; the
// caller ranks the patient again. Source: docs/decisions/observations.md, "Suspect reading".
func (e *ReadingStore) promptRestOfRun(tx core.App, b *writeBatch, decided Observation, patient patientRow, by audit.Actor, now time.Time) (prompted bool, err error) {
	if decided.Reading.Kind.Definition().SuspectParameter == nil || !patient.Active || patient.DeletedAt != "" {
		return false, nil
	}
	remaining, err := collections.SuspectsWithoutAlert(tx, decided.ID, alerts.TypeSuspectReading, ReasonDeviceClock)
	if err != nil {
		return false, err
	}
	for _, id := range remaining {
		already, err := collections.HasSuspectAlertInRun(tx, id, alerts.TypeSuspectReading)
		if err != nil {
			return prompted, err
		}
		if already {
			continue
		}
		if err := e.raiseSuspectAlert(tx, b, id, patient, by, now); err != nil {
			return prompted, err
		}
		prompted = true
	}
	return prompted, nil
}

// splitSuspectRun raises a new question if an accepted reading splits a run of suspect ones.
func (e *ReadingStore) splitSuspectRun(tx core.App, b *writeBatch, r confirmedReading, p triage.PatientSnapshot, now time.Time) error {
	splits, err := maySplitRun(tx, r.observation, p, now)
	if err != nil || !splits {
		return err
	}
	return e.promptRestOfRuns(tx, b, []confirmedReading{r}, now)
}

// maySplitRun reports whether a reading that counts may lie between suspect ones. The snapshot has those of the last day; it queries only
// for earlier ones.
func maySplitRun(tx core.App, o Observation, p triage.PatientSnapshot, now time.Time) (bool, error) {
	parameter := o.Reading.Kind.Definition().SuspectParameter
	if parameter == nil || o.addition != nil || o.Review != Accepted || o.Reading.Value(parameter) == nil {
		return false, nil
	}
	at := o.Reading.MeasuredAt
	follows := func(d triage.SuspectValue) bool { return d.Of == parameter && d.MeasuredAt.After(at) }
	if now.Sub(at) <= parameter.Suspect.Within && !slices.ContainsFunc(p.Suspects, follows) {
		return false, nil
	}
	return collections.IsNextSuspect(tx, o.PatientID, string(o.Reading.Kind), o.ID, at)
}

// raiseSuspectAlert raises the question about a stored suspect reading, compared with the current usual values.
func (e *ReadingStore) raiseSuspectAlert(tx core.App, b *writeBatch, id string, patient patientRow, by audit.Actor, now time.Time) error {
	o, err := FindObservation(tx, id)
	if err != nil {
		return err
	}
	snapshot, err := triage.ReadSnapshot(tx, o.PatientID, &o.Reading, now)
	if err != nil {
		return err
	}
	candidate := o
	candidate.Review = Accepted // a reading that is suspect already is not assessed again
	d := e.assessSuspicion(candidate, snapshot)
	if d.Of == nil {
		return nil
	}
	question := alertDraft(o, d.Finding(o.Reading.MeasuredAt, e.rules.isLate(o.Reading.MeasuredAt, now)), false)
	question.WithoutValue = !d.isFar // there is no bound to show
	a := effectsWriter{tx: tx, batch: b, by: by, now: now, effects: Effects{
		Observation: o, PatientLabel: patient.label(o.PatientID), Alerts: []alerts.Draft{question},
	}}
	return a.storeAlerts()
}

// promptRestOfRuns raises questions about the rest of the runs of confirmed readings. All of them must be stored as confirmed.
func (e *ReadingStore) promptRestOfRuns(tx core.App, b *writeBatch, readings []confirmedReading, now time.Time) error {
	for _, r := range readings {
		prompted, err := e.promptRestOfRun(tx, b, r.observation, r.patient.row, r.by, now)
		if err != nil {
			return err
		}
		if !prompted {
			continue
		}
		r.patient.snapshot = nil // an alert was added
		if _, err := triage.Rescore(tx, r.observation.PatientID, now); err != nil {
			return err
		}
	}
	return nil
}
