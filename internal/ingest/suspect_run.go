package ingest

import (
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/triage"
)

// promptRestOfRun raises the alert about the rest of a suspect run after one reading is decided. An
// accepted reading splits the run in two, and each part may need one. prompted: one was raised; the
// caller rescores the patient. Source: docs/decisions/observations.md, "Suspect reading".
func (rs *ReadingStore) promptRestOfRun(tx core.App, b *writeBatch, decided Observation, patient patientRow, by audit.Actor, now time.Time) (prompted bool, err error) {
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
		if err := rs.raiseSuspectAlert(tx, b, id, patient, by, now); err != nil {
			return prompted, err
		}
		prompted = true
	}
	return prompted, nil
}

// reconcileSuspectAlerts gives each suspect run near an out-of-order reading one alert, about its
// first reading. It replaces active ones without notifying, and repeats none that a person handled.
func (rs *ReadingStore) reconcileSuspectAlerts(tx core.App, b *writeBatch, r readingToEvaluate, p triage.PatientSnapshot, now time.Time) error {
	if isBefore, err := rs.hasLaterReviewed(tx, r.observation, p, now); err != nil || !isBefore {
		return err
	}
	stored, _, _, err := rs.reviewsAround(tx, r.observation)
	if err != nil {
		return err
	}
	settled := false
	var run []string
	for i, o := range stored {
		if o.Review == Suspect && o.SuspectReason != ReasonDeviceClock {
			run = append(run, o.ID)
		}
		if isEnd := o.Review != Suspect || i == len(stored)-1; !isEnd || len(run) == 0 {
			continue
		}
		changed, err := rs.reconcileRunAlert(tx, b, run, r, now)
		if err != nil {
			return err
		}
		settled, run = settled || changed, nil
	}
	if !settled {
		return nil
	}
	r.patient.snapshot = nil
	_, err = triage.Rescore(tx, r.observation.PatientID, now)
	return err
}

// reconcileRunAlert makes the alert of a run the one about its first reading. run lists ids in order.
func (rs *ReadingStore) reconcileRunAlert(tx core.App, b *writeBatch, run []string, r readingToEvaluate, now time.Time) (changed bool, err error) {
	raised, err := collections.AlertsOfObservations(tx, run...)
	if err != nil {
		return false, err
	}
	var open []*collections.Alert
	for _, alert := range slices.Concat(slices.Collect(maps.Values(raised))...) {
		switch {
		case alert.Type() != alerts.TypeSuspectReading || alert.ResolutionReason() == alerts.ReasonRetracted:
		case alerts.Status(alert.Status()) == alerts.StatusActive:
			open = append(open, alert)
		case alerts.Status(alert.Status()) != alerts.StatusAutoResolved:
			return false, nil // a person was prompted
		}
	}
	o, question, err := rs.suspectQuestion(tx, run[0], now)
	if err != nil || question == nil {
		return false, err
	}
	isRight := func(a *collections.Alert) bool {
		limit := a.Threshold()
		return a.ObservationID() == o.ID && (limit == nil) == question.OmitsValue && (limit == nil || *limit == question.Finding.Threshold)
	}
	replaced := slices.DeleteFunc(slices.Clone(open), isRight)
	if !slices.ContainsFunc(open, isRight) {
		keepAnnouncement(question, replaced)
		a := effectsWriter{tx: tx, batch: b, by: r.by, now: now, effects: Effects{
			Observation: o, PatientLabel: r.patient.row.label(o.PatientID), Alerts: []alerts.Draft{*question},
		}}
		if err := a.storeAlerts(); err != nil {
			return false, err
		}
		changed = true
	}
	return changed || len(replaced) > 0, endReplaced(tx, b, replaced, r.by, now)
}

// suspectQuestion drafts the alert about a stored suspect reading by its usual values now, or nil.
func (rs *ReadingStore) suspectQuestion(tx core.App, id string, now time.Time) (o Observation, question *alerts.Draft, err error) {
	if o, err = FindObservation(tx, id); err != nil {
		return o, nil, err
	}
	snapshot, err := triage.ReadSnapshot(tx, o.PatientID, &o.Reading, now)
	if err != nil {
		return o, nil, err
	}
	candidate := o
	candidate.Review = Accepted // a reading that is suspect already is not assessed again
	d := rs.assessSuspicion(candidate, snapshot)
	if d.Parameter == nil {
		return o, nil, nil
	}
	draft := alertDraft(o, d.Finding(o.Reading.MeasuredAt, rs.rules.isLate(o.Reading.MeasuredAt, now)), false)
	draft.OmitsValue = !d.isFar // there is no bound to show
	return o, &draft, nil
}

// raiseSuspectAlert raises the question about a stored suspect reading.
func (rs *ReadingStore) raiseSuspectAlert(tx core.App, b *writeBatch, id string, patient patientRow, by audit.Actor, now time.Time) error {
	o, question, err := rs.suspectQuestion(tx, id, now)
	if err != nil || question == nil {
		return err
	}
	a := effectsWriter{tx: tx, batch: b, by: by, now: now, effects: Effects{
		Observation: o, PatientLabel: patient.label(o.PatientID), Alerts: []alerts.Draft{*question},
	}}
	return a.storeAlerts()
}

// promptRestOfRuns raises questions about the rest of the runs of confirmed readings. All of them must be stored as confirmed.
func (rs *ReadingStore) promptRestOfRuns(tx core.App, b *writeBatch, readings []readingToEvaluate, now time.Time) error {
	for _, r := range readings {
		prompted, err := rs.promptRestOfRun(tx, b, r.observation, r.patient.row, r.by, now)
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
