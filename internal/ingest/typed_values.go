package ingest

import (
	"context"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A patient who types 300/20 has most likely made a typing error and is prompted for the value again. The typed value is held for a correction,
// and pages no one. Source: docs/decisions/observations.md, "Values that a patient types".

// correctWithin is how long an implausible value that a patient typed waits for its correction.
const correctWithin = 10 * time.Minute

// maxUncorrectedAge bounds the search of the sweep; a value is older only after the service stood still for a month.
const maxUncorrectedAge = 30 * 24 * time.Hour

// maxTypedPerRound bounds the values that one sweep decides about; the next minute continues.
const maxTypedPerRound = 500

const (
	correctedReason  = "Corrected: another value was entered within 10 minutes."
	uncorrectedTyped = "Entered by the patient and not corrected. "
)

// holdTyped stores an implausible measurement that a patient typed once, without an alert.
func holdTyped(tx core.App, entry EventEntry, patientID string, by audit.Actor, now time.Time) error {
	entry.Status, entry.Reason = collections.EventRejected, "validation_error"
	id, duplicate, err := StoreEvent(tx, entry, by, now)
	if err != nil || duplicate {
		return err
	}
	return collections.SetEventPatient(tx, id, patientID)
}

// closeCorrected discards the patient's typed values of the same kind that wait for a correction, because the patient or staff typed
// another one. A confirmed typed value corrects nothing.
func closeCorrected(tx core.App, b *writeBatch, o Observation, s Submission, now time.Time) error {
	isTyped := s.origin() == vitals.OriginPatient || s.origin() == vitals.OriginStaff
	if !isTyped || s.ConfirmedBy != "" || s.IsPart {
		return nil
	}
	ids, err := collections.QuarantinedTypedEvents(tx, collections.TypedEvents{
		Patient: o.PatientID, Kind: string(o.Reading.Kind), Source: string(vitals.SourcePortal), After: now.Add(-correctWithin),
	}, maxTypedPerRound)
	if err != nil {
		return err
	}
	by := systemActor(s.By)
	for _, id := range ids {
		event, err := FindQuarantined(tx, id)
		if err != nil {
			return err
		}
		if err := event.Close(tx, collections.EventDiscarded, "", string(by.Type), correctedReason, now); err != nil {
			return err
		}
		err = b.trail.Add(audit.Entry{
			Event: audit.WebhookDiscarded, Actor: by, ResourceType: audit.ResourceGatewayEvent, ResourceID: id, PatientID: o.PatientID, Reason: correctedReason,
		}, now)
		if err != nil {
			return err
		}
	}
	return nil
}

// AlertUncorrected ends the wait of typed implausible values without a correction, each in a transaction of its own: it raises a warning in
// the list, which is pushed to no one. The time of receipt is stored, so a restart changes nothing. A failure does not stop the others.
func (e *Pipeline) AlertUncorrected(ctx context.Context, app core.App, now time.Time) (alerted int, err error) {
	due, err := collections.QuarantinedTypedEvents(app, collections.TypedEvents{
		Source: string(vitals.SourcePortal), After: now.Add(-maxUncorrectedAge), Until: now.Add(-correctWithin),
	}, maxTypedPerRound)
	if err != nil {
		return 0, err
	}
	return async.ForEach(ctx, due, func(id string) (bool, error) {
		err := app.RunInTransaction(func(tx core.App) error { return e.alertUncorrected(tx, id, now) })
		if err != nil {
			return false, fmt.Errorf("alert about the typed values of event %s: %w", id, err)
		}
		return true, nil
	})
}

func (e *Pipeline) alertUncorrected(tx core.App, id string, now time.Time) error {
	stored, err := FindQuarantined(tx, id)
	if err != nil || checkPending(stored) != nil {
		return err
	}
	patientID, err := collections.PatientOfQuarantine(tx, id)
	if err != nil || patientID == "" {
		return err
	}
	event, err := e.parseImplausible(stored)
	if err != nil {
		return err
	}
	return e.warnOfTyped(tx, stored, event, patientID, now)
}

// warnOfTyped raises the warning about values that a patient typed, and announces it to no one.
func (e *Pipeline) warnOfTyped(tx core.App, stored *collections.GatewayEvent, event gateway.Event, patientID string, now time.Time) error {
	c, err := e.newQuarantinedReading(tx, stored, event, patientID, now)
	if err != nil {
		return err
	}
	return triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		if c.snapshot, err = triage.ReadSnapshot(tx, patientID, nil, now); err != nil {
			return "", err
		}
		draft := c.decideAlert(e.Readings.IsLate(c.Reading.MeasuredAt, now), false).draft
		draft.Finding.Level = alerts.Warning
		draft.Finding.Message = uncorrectedTyped + draft.Finding.Message
		_, err := alerts.Raise(tx, draft, now)
		return patientID, err
	})
}
