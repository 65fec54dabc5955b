package ingest

import (
	"errors"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"

	"github.com/vigilhealth/vigil/internal/phi"
)

// QuarantineStatuses are the states of what people look at: events that could not be placed or read, and what became of
// them.
var QuarantineStatuses = []string{collections.EventOpen, collections.EventReleased, collections.EventDiscarded, collections.EventRejected}

// FindQuarantined returns one event of the quarantine list, or a not-found fault.
func FindQuarantined(app core.App, id string) (*collections.GatewayEvent, error) {
	event, err := collections.FindGatewayEvent(app, id)
	if err != nil {
		return nil, fault.OrMissing(err)
	}
	if err := collections.Readable(event.ProxyRecord()); err != nil {
		return nil, err
	}
	if event.Status() == collections.EventHandled || event.Status() == collections.EventIgnored {
		return nil, fault.Missing() // nothing of it waits for anybody
	}
	return event, nil
}

// checkPending reports whether somebody may still decide about the event.
func checkPending(event *collections.GatewayEvent) error {
	if event.Status() == collections.EventOpen || event.Status() == collections.EventRejected {
		return nil
	}
	return fault.State("invalid_state", "The event has been dealt with already.")
}

// reparse reads a stored event in its vendor's words, as of its own receipt.
func (e *Pipeline) reparse(event *collections.GatewayEvent) (gateway.Event, error) {
	adapter, supported := e.Adapters[gateway.Vendor(event.Vendor())]
	if !supported {
		return gateway.Event{}, fault.New(fault.Invalid, "unknown_vendor", "This version does not know the vendor.")
	}
	return adapter.Parse([]byte(event.Payload().Reveal()), event.ReceivedAt())
}

// Release gives a quarantined measurement to a patient: it becomes an observation like any other, in one transaction with the end
// of its waiting. Faults: not_found for the event or the patient, invalid_state for one dealt with or unreadable, and what
// refuses a reading. The person's word weighs more than the deduplication key: of two that contradict each other both can
// become observations. One with implausible values is told to the patient's people and waits on, without an outcome.
func (e *Pipeline) Release(app core.App, id, patientID string, by audit.Actor, now time.Time) (outcome Outcome, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		pending, err := FindQuarantined(tx, id)
		if err != nil {
			return err
		}
		if isManualSource(pending.Source()) {
			return errAlreadyMatched()
		}
		if _, err := collections.FindPatient(tx, patientID); err != nil {
			return fault.OrMissing(err)
		}
		if err := checkPending(pending); err != nil {
			return err
		}
		event, err := e.reparse(pending)
		if event.Implausible != nil && pending.Status() == collections.EventRejected {
			return e.assignImplausible(tx, pending, event, patientID, by, now)
		}
		if err != nil || event.Reading == nil {
			return fault.State("invalid_state", "The event cannot be read as a measurement.").Because(err)
		}
		match := patientMatch{patient: patientID, manual: true}
		s, err := e.matchedSubmission(tx, event, match, by, now)
		if err != nil {
			return err
		}
		outcome, err = e.Evaluator.Ingest(tx, s, now)
		if err == nil && outcome.Conflict { // beside the one it contradicts
			if s.Addition {
				return fault.State("invalid_state", "The reading that this belongs to says otherwise.")
			}
			s.GatewayKey, match.readingSnapshot = "", true
			outcome, err = e.Evaluator.Ingest(tx, s, now)
		}
		if err != nil {
			return asPatientFault(err)
		}
		if err := closeEvent(tx, pending, closure{status: collections.EventReleased, observation: outcome.Observation.ID, patient: patientID}, by, now); err != nil {
			return err
		}
		return e.addPendingParts(tx, event, outcome.Observation, match, by, now)
	})
	return outcome, err
}

// asPatientFault turns a complaint about the time of measurement, which whoever releases cannot change, into one about the
// patient chosen.
func asPatientFault(err error) error {
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Fields["measured_at"] != nil {
		return fault.Validation(fault.Fields{"patient_id": refused.Fields["measured_at"]})
	}
	return err
}

// Discard ends the waiting of a quarantined event without an observation. Nothing is deleted.
func (e *Pipeline) Discard(app core.App, id string, reason phi.Text, by audit.Actor, now time.Time) (event *collections.GatewayEvent, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if event, err = FindQuarantined(tx, id); err != nil {
			return err
		}
		if err := checkPending(event); err != nil {
			return err
		}
		patient, err := collections.PatientOfQuarantine(tx, id)
		if err != nil {
			return err
		}
		if err := closeEvent(tx, event, closure{status: collections.EventDiscarded, reason: reason, patient: patient}, by, now); err != nil {
			return err
		}
		if err := e.retractAlerts(tx, event, reason, by, now); err != nil {
			return err
		}
		if decided, err := e.parseImplausible(event); err == nil {
			if err := e.alertNextPending(tx, decided, patient, now); err != nil {
				return err
			}
		}
		event, err = FindQuarantined(tx, id)
		return err
	})
	return event, err
}

// closure is how the waiting of an event ends.
type closure struct {
	status               string
	observation, patient string
	reason               phi.Text
}

func closeEvent(tx core.App, event *collections.GatewayEvent, with closure, by audit.Actor, now time.Time) error {
	who, action := by.Email, audit.WebhookReleased
	if who == "" {
		who = string(by.Type)
	}
	if with.status == collections.EventDiscarded {
		action = audit.WebhookDiscarded
	}
	if err := event.Close(tx, with.status, with.observation, who, with.reason, now); err != nil {
		return err
	}
	return audit.Append(tx, audit.Entry{
		Event: action, Actor: by, ResourceType: audit.ResourceGatewayEvent, ResourceID: event.Id, PatientID: with.patient, Reason: with.reason,
	}, now)
}
