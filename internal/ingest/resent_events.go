package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// isResent reports whether a stored gateway reading was sent again, complete: its first copy may have been rejected.
func (c classification) isResent(event gateway.Event) bool {
	o := c.outcome.Observation
	return c.status == Duplicate && o.Source == vitals.SourceGateway && !o.EnteredInError && event.Implausible == nil && len(event.RejectedValues) == 0
}

// releaseResent closes the quarantined forms of a measurement that is stored now: a copy with a future time whose time has come, and those that
// could not be read. Their alerts are superseded, except the one about the clock. If a person discarded the copy with the future time, the
// reading is retracted.
func (e *Pipeline) releaseResent(app core.App, event gateway.Event, v classification, d VendorRequest) error {
	ahead, err := collections.FindGatewayEvent(app, gateway.BodyID(d.Vendor, d.Body))
	if collections.IgnoreNotFound(err) != nil {
		return err
	}
	wasAhead := err == nil && ahead.Implausible()
	forms, err := e.pendingForms(app, event, v.outcome.Observation.Reading, v.patient)
	if err != nil || !wasAhead && len(forms) == 0 {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		if wasAhead {
			if err := collections.ExtendFutureClock(tx, event.DeviceID, event.At); err != nil {
				return err
			}
			if ahead.Status() == collections.EventDiscarded {
				o, err := e.Readings.Retract(tx, v.outcome.Observation.ID, "The same measurement was discarded.", audit.System(), d.At)
				if err != nil || e.RecheckBilling == nil {
					return err
				}
				return e.RecheckBilling(tx, o.PatientID, o.Reading.MeasuredAt, d.At)
			}
		}
		if event.Implausible != nil || len(event.RejectedValues) > 0 {
			return nil // its other values stay pending
		}
		return e.closeStoredForms(tx, forms, v, d.By, d.At)
	})
}

// discardedBefore returns a function that reports whether a person discarded this measurement before, and why: when its time was in the future, or
// in a form that could not be read. A person's decision holds for every repeat, in any form. Source: docs/decisions/observations.md, "Implausible values".
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
	if event.Part == "" || event.Implausible != nil {
		return nil, nil
	}
	quarantined, err := collections.FindGatewayEvent(app, gateway.BodyID(d.Vendor, d.Body))
	if err != nil || !quarantined.Implausible() || quarantined.Status() != collections.EventDiscarded {
		return nil, collections.IgnoreNotFound(err)
	}
	return quarantined, nil
}

// storeDiscarded marks a stored reading as entered in error at once, because a person discarded the same measurement.
// lookupErr is the error of that lookup. Source: docs/decisions/devices.md, "Future clock".
func (rs *ReadingStore) storeDiscarded(tx core.App, b *writeBatch, o Observation, s Submission, reason phi.Text, lookupErr error, now time.Time) (Outcome, error) {
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
	return b.countUnevaluated(o, rs.rules.PracticeZone), nil
}
