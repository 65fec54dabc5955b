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

// promptRestOfRun asks about what is left of the run of a suspect reading that is decided: the question that ended with it was the run's. One that
// holds now parts the run in two, so that each may need a question. It reports whether it asked; ranking the patient anew is the caller's.
// Source: docs/decisions/observations.md, "Suspect reading".
func (e *Evaluator) promptRestOfRun(tx core.App, b *writeBatch, decided Observation, patient patientRow, by audit.Actor, now time.Time) (prompted bool, err error) {
	if decided.Reading.Kind.Definition().Doubted == nil || !patient.Active || patient.DeletedAt != "" {
		return false, nil
	}
	remaining, err := collections.UnaskedAround(tx, decided.ID, alerts.TypeSuspectReading, ReasonDeviceClock)
	if err != nil {
		return false, err
	}
	for _, id := range remaining {
		already, err := collections.AskedInRun(tx, id, alerts.TypeSuspectReading)
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

// splitSuspectRun asks about what is left of the run that a reading parts.
func (e *Evaluator) splitSuspectRun(tx core.App, b *writeBatch, r confirmedReading, p triage.Picture, now time.Time) error {
	parts, err := maySplitRun(tx, r.observation, p, now)
	if err != nil || !parts {
		return err
	}
	return e.promptRestOfRuns(tx, b, []confirmedReading{r}, now)
}

// maySplitRun reports whether a reading that holds may have been measured between suspect ones, whose run it parts then: of the last day they are
// at hand, and what was measured earlier comes late. For any other the database is asked nothing.
func maySplitRun(tx core.App, o Observation, p triage.Picture, now time.Time) (bool, error) {
	parameter := o.Reading.Kind.Definition().Doubted
	if parameter == nil || o.addition != nil || o.Review != Accepted || o.Reading.Value(parameter) == nil {
		return false, nil
	}
	at := o.Reading.MeasuredAt
	follows := func(d triage.Doubted) bool { return d.Of == parameter && d.MeasuredAt.After(at) }
	if now.Sub(at) <= parameter.Doubt.Within && !slices.ContainsFunc(p.Doubted, follows) {
		return false, nil
	}
	return collections.SuspectFollows(tx, o.PatientID, string(o.Reading.Kind), o.ID, at)
}

// raiseSuspectAlert raises the question about a stored suspect reading, in the light of what is usual now.
func (e *Evaluator) raiseSuspectAlert(tx core.App, b *writeBatch, id string, patient patientRow, by audit.Actor, now time.Time) error {
	o, err := FindObservation(tx, id)
	if err != nil {
		return err
	}
	snapshot, err := triage.ReadPicture(tx, o.PatientID, &o.Reading, now)
	if err != nil {
		return err
	}
	candidate := o
	candidate.Review = Accepted // what is doubted already is not doubted anew
	d := e.assessSuspicion(candidate, snapshot)
	if d.Of == nil {
		return nil
	}
	question := alertDraft(o, d.Ask(o.Reading.MeasuredAt, e.rules.isLate(o.Reading.MeasuredAt, now)), false)
	question.Unmeasured = !d.isFar // there is no bound to tell
	a := effectsWriter{tx: tx, batch: b, by: by, now: now, effects: Effects{
		Observation: o, PatientLabel: patient.label(o.PatientID), Alerts: []alerts.Draft{question},
	}}
	return a.storeAlerts()
}

// promptRestOfRun asks about the rest of the run, when the withdrawn reading was in doubt.
func (w *retraction) promptRestOfRun() error {
	if w.observation.Review != Suspect {
		return nil
	}
	patient, err := loadPatientRow(w.tx, w.observation.PatientID)
	if err != nil {
		return err
	}
	b, err := newWriteBatch(w.tx)
	if err != nil {
		return err
	}
	if _, err := w.evaluator.promptRestOfRun(w.tx, b, w.observation, patient, w.by, w.now); err != nil {
		return err
	}
	return b.trail.Store()
}

// promptRestOfRuns asks about the rest of the runs of readings that are believed now. All of them are stored as such already.
func (e *Evaluator) promptRestOfRuns(tx core.App, b *writeBatch, readings []confirmedReading, now time.Time) error {
	for _, r := range readings {
		prompted, err := e.promptRestOfRun(tx, b, r.observation, r.patient.row, r.by, now)
		if err != nil {
			return err
		}
		if !prompted {
			continue
		}
		r.patient.snapshot = nil // there is one more alert
		if _, err := triage.Rescore(tx, r.observation.PatientID, now); err != nil {
			return err
		}
	}
	return nil
}
