package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// isResent reports whether a stored gateway reading was sent again, complete: its first copy may have been rejected.
func (v classification) isResent(event gateway.Event) bool {
	o := v.outcome.Observation
	return v.status == Duplicate && o.Source == vitals.SourceGateway && !o.EnteredInError && event.Implausible == nil && len(event.RejectedValues) == 0
}

// releaseResent closes the quarantined event of a measurement that was rejected for a future time and is stored now because its time
// has come: its alerts are superseded, except the one about the clock. If a person discarded the event, the reading is retracted.
func (e *Pipeline) releaseResent(app core.App, event gateway.Event, v classification, d VendorRequest) error {
	quarantined, err := collections.FindGatewayEvent(app, gateway.BodyID(d.Vendor, d.Body))
	if collections.IsNotFound(err) || err == nil && !quarantined.Implausible() {
		return nil
	}
	if err != nil {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		if err := collections.ExtendFutureClock(tx, event.DeviceID, event.At); err != nil {
			return err
		}
		if quarantined.Status() == collections.EventDiscarded {
			o, err := e.Readings.Retract(tx, v.outcome.Observation.ID, "The same measurement was discarded.", audit.System(), d.At)
			if err != nil || e.RecheckBilling == nil {
				return err
			}
			return e.RecheckBilling(tx, o.PatientID, o.Reading.MeasuredAt, d.At)
		}
		if quarantined.Status() != collections.EventRejected || event.Implausible != nil || len(event.RejectedValues) > 0 {
			return nil // its other values stay pending
		}
		raised, err := collections.AlertsOfQuarantine(tx, quarantined.Id)
		if err != nil {
			return err
		}
		err = triage.UpdateAndRescore(tx, d.At, func(tx core.App) (string, error) {
			for _, alert := range raised {
				if alert.Type() == alerts.TypeDeviceClock {
					continue // it is about the clock
				}
				if kept, err := e.removeFromAlert(tx, alert, quarantined.Id, d.At); err != nil {
					return "", err
				} else if kept {
					continue
				}
				if err := supersedeAlert(tx, alert, d.At); err != nil {
					return "", err
				}
			}
			return v.patient, nil
		})
		if err != nil {
			return err
		}
		if err := collections.SetAlertObservation(tx, quarantined.Id, v.outcome.Observation.ID); err != nil {
			return err
		}
		if err := closeEvent(tx, quarantined, closure{status: collections.EventReleased, observation: v.outcome.Observation.ID, patient: v.patient}, d.By, d.At); err != nil {
			return err
		}
		reported, err := e.parseImplausible(quarantined)
		if err != nil {
			return nil //nolint:nilerr // it was not quarantined for its clock
		}
		return e.alertNextPending(tx, reported, v.patient, d.At)
	})
}

// discardedBefore returns a function that reports whether a person discarded this measurement when its time was in the future, and why. A
// person's decision holds for every repeat, in any envelope. Source: docs/decisions/observations.md, "Implausible values".
func (e *Pipeline) discardedBefore(event gateway.Event, patientID string, d VendorRequest) func(tx core.App) (phi.Text, bool, error) {
	const reason = "The same measurement was discarded."
	return func(tx core.App) (phi.Text, bool, error) {
		quarantined, err := collections.FindGatewayEvent(tx, gateway.BodyID(d.Vendor, d.Body))
		if collections.IgnoreNotFound(err) != nil {
			return "", false, err
		}
		if err == nil {
			return reason, quarantined.Implausible() && quarantined.Status() == collections.EventDiscarded, nil
		}
		if event.Implausible != nil || len(event.RejectedValues) > 0 {
			return "", false, nil // its values differ from the discarded ones
		}
		earlier, err := e.findDecided(tx, event, *event.Reading, patientID, "")
		return reason, earlier != nil && earlier.Status() == collections.EventDiscarded, err
	}
}

// findDiscardedPart returns the discarded event of a part, so that the part is not merged again; nil for none.
func (e *Pipeline) findDiscardedPart(app core.App, event gateway.Event, d VendorRequest) (*collections.GatewayEvent, error) {
	if event.Addition == "" || event.Implausible != nil {
		return nil, nil
	}
	quarantined, err := collections.FindGatewayEvent(app, gateway.BodyID(d.Vendor, d.Body))
	if err != nil || !quarantined.Implausible() || quarantined.Status() != collections.EventDiscarded {
		return nil, collections.IgnoreNotFound(err)
	}
	return quarantined, nil
}

// findDecided returns a closed event with the same measurement of the same patient: same device, device time and values. Nil for none.
func (e *Pipeline) findDecided(tx core.App, event gateway.Event, r vitals.Reading, patientID, except string) (*collections.GatewayEvent, error) {
	ids, err := collections.DecidedEvents(tx, event.DeviceID, patientID, event.At)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		earlier, err := FindQuarantined(tx, id)
		if err != nil {
			return nil, err
		}
		same, err := e.parseImplausible(earlier)
		if err == nil && id != except && sourceOrigin(EventSource(earlier)) == vitals.OriginDevice && same.Addition == event.Addition && same.Implausible.Reading.SameValues(r) {
			return earlier, nil
		}
	}
	return nil, nil
}

// applyEarlierDecision closes an event in the same way as an earlier one with the same measurement.
func (e *Pipeline) applyEarlierDecision(tx core.App, stored *collections.GatewayEvent, event gateway.Event, patientID string, now time.Time) (bool, error) {
	if isManualSource(EventSource(stored)) || EventSource(stored) == SourceImport {
		return false, nil
	}
	earlier, err := e.findDecided(tx, event, event.Implausible.Reading, patientID, stored.Id)
	if err != nil || earlier == nil {
		return false, err
	}
	if err := collections.SetEventPatient(tx, stored.Id, patientID); err != nil {
		return false, err
	}
	return true, closeEvent(tx, stored, closure{
		status: earlier.Status(), observation: earlier.ObservationID(), patient: patientID, reason: "The same measurement was decided before.",
	}, audit.System(), now)
}

// storeDiscarded marks a stored reading as entered in error at once, because a person discarded it when its time was in the future.
// lookupErr is the error of that lookup. Source: docs/decisions/devices.md, "Future clock".
func (e *ReadingStore) storeDiscarded(tx core.App, b *writeBatch, o Observation, s Submission, reason phi.Text, lookupErr error, now time.Time) (Outcome, error) {
	if lookupErr != nil {
		return Outcome{}, lookupErr
	}
	o.EnteredInError, o.FHIRStatus, o.FHIRVersion, o.TransformedAt = true, "", 0, time.Time{}
	if err := storeReview(tx, o, now); err != nil {
		return Outcome{}, err
	}
	system := systemActor(s.By)
	if err := collections.SetEnteredInError(tx, o.ID, system.Email, reason, 0, now); err != nil {
		return Outcome{}, err
	}
	a := effectsWriter{tx: tx, batch: b, effects: Effects{Observation: o}, by: s.By, now: now}
	if err := a.auditObservation(); err != nil {
		return Outcome{}, err
	}
	err := b.trail.Add(audit.Entry{
		Event: audit.ObservationEnteredInError, Actor: system, ResourceType: audit.ResourceObservation, ResourceID: o.ID, PatientID: o.PatientID, Reason: reason,
	}, now)
	if err != nil {
		return Outcome{}, err
	}
	return b.countUnevaluated(o, e.rules.PracticeZone), nil
}
