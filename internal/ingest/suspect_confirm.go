package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Confirmation is why a person confirms a reading, and when it was measured; a zero time keeps its own, or that of receipt if it is in doubt.
type Confirmation struct {
	Notes      phi.Text
	MeasuredAt time.Time
}

// ConfirmSuspect confirms that a suspect reading is the patient's own: from then on it is evaluated, counted and delivered. Repeating it
// changes nothing. Faults: not_found; invalid_state if it is not suspect; measured_at if it cannot be the time. Source:
// docs/decisions/observations.md, "Suspect reading"; docs/decisions/devices.md, "Doubtful time".
func (rs *ReadingStore) ConfirmSuspect(app core.App, id string, c Confirmation, by audit.Actor, now time.Time) (o Observation, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if o, err = FindObservation(tx, id); err != nil || o.Review == Confirmed && !o.EnteredInError {
			return err
		}
		switch {
		case o.EnteredInError:
			return fault.State("invalid_state", "The reading was entered in error.")
		case o.Review != Suspect:
			o.confirmNotes = c.Notes
			o, err = rs.confirmSharedCuff(tx, o, c.MeasuredAt, by, now)
			return err
		}
		var noCache *patientCache
		patient, err := noCache.patient(tx, o.PatientID)
		if err != nil {
			return err
		}
		if !patient.row.Active || patient.row.DeletedAt != "" {
			return fault.State("invalid_state", "This patient is archived.")
		}
		b, err := newWriteBatch(tx)
		if err != nil {
			return err
		}
		o.confirmNotes = c.Notes
		if err := rs.dateConfirmed(tx, b, &o, patient, c.MeasuredAt, now); err != nil {
			return err
		}
		accepted, err := rs.markConfirmed(tx, o, alerts.ActorName(by), readingPatient{cachedPatient: patient}, by, now)
		if err != nil {
			return err
		}
		if _, err := rs.evaluateConfirmed(tx, b, []readingToEvaluate{accepted}, o.ID, now); err != nil {
			return err
		}
		if err := resolveDoubtfulTimeAlerts(tx, b, o, by, now); err != nil {
			return err
		}
		if err := b.store(tx); err != nil {
			return err
		}
		o, err = FindObservation(tx, id)
		return err
	})
	return o, err
}

// readingToEvaluate is a reading to evaluate, with the actor who confirmed it.
type readingToEvaluate struct {
	observation Observation
	patient     readingPatient
	by          audit.Actor
}

// markConfirmed stores that a suspect reading is confirmed.
func (rs *ReadingStore) markConfirmed(tx core.App, o Observation, name string, patient readingPatient, by audit.Actor, now time.Time) (readingToEvaluate, error) {
	o.Review, o.ConfirmedBy = Confirmed, name
	return rs.markReviewed(tx, o, patient, by, now)
}

// markReviewed stores that a suspect reading counts from now on.
func (rs *ReadingStore) markReviewed(tx core.App, o Observation, patient readingPatient, by audit.Actor, now time.Time) (readingToEvaluate, error) {
	o.UpdatedAt, o.newlyConfirmed = now, true
	o.isQueued = o.FHIRStatus != ""
	if o.Review == Confirmed {
		o.ConfirmedAt = now
	}
	if o.isQueued {
		o.FHIRVersion++
	} else {
		rs.prepareFHIR(&o, now)
	}
	if err := storeReview(tx, o, now); err != nil {
		return readingToEvaluate{}, err
	}
	patient.deviceAssigned = false
	if o.Reading.DeviceID != "" {
		held, err := collections.DeviceHolder(tx, o.Reading.DeviceID, o.Reading.MeasuredAt)
		if err != nil {
			return readingToEvaluate{}, err
		}
		patient.deviceAssigned = held == o.PatientID
	}
	return readingToEvaluate{o, patient, by}, nil
}

// evaluateConfirmed resolves the questions about readings and evaluates them in order of measurement, then raises questions about the rest
// of their runs. It returns the outcome of one of them.
func (rs *ReadingStore) evaluateConfirmed(tx core.App, b *writeBatch, readings []readingToEvaluate, of string, now time.Time) (outcome Outcome, err error) {
	for _, r := range readings {
		if err := r.resolveSuspectAlert(tx, b, now); err != nil {
			return outcome, err
		}
		r.patient.snapshot = nil // its alerts and its baseline have changed
	}
	slices.SortStableFunc(readings, func(a, b readingToEvaluate) int {
		return a.observation.Reading.MeasuredAt.Compare(b.observation.Reading.MeasuredAt)
	})
	for _, r := range readings {
		result, err := rs.evaluateAndApply(tx, b, r.observation, r.patient, Submission{By: r.by}, now)
		if err != nil {
			return outcome, err
		}
		if result.Observation.ID == of {
			outcome = result
		}
	}
	if err := rs.correctForOrderAfter(tx, b, readings, now); err != nil {
		return outcome, err
	}
	return outcome, rs.promptRestOfRuns(tx, b, readings, now)
}

// resolveSuspectAlert resolves the question about a reading in the name of the actor who confirmed it.
func (r readingToEvaluate) resolveSuspectAlert(tx core.App, b *writeBatch, now time.Time) error {
	status, event, name := alerts.StatusResolved, audit.AlertResolve, cmp.Or(r.observation.ConfirmedBy, alerts.System)
	if name == alerts.System {
		status, event = alerts.StatusAutoResolved, audit.AlertAutoResolve
	}
	ended, err := collections.ResolveObservationAlerts(tx, r.observation.ID, alerts.TypeSuspectReading, string(status), name, now)
	if err != nil {
		return err
	}
	for _, alert := range ended {
		if err := b.auditAlert(event, r.by, alert.ID, alert.PatientID, now); err != nil {
			return err
		}
	}
	return nil
}
