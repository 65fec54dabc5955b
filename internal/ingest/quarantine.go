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

// waits reports whether somebody may still decide about the event.
func waits(event *collections.GatewayEvent) error {
	if event.Status() == collections.EventOpen || event.Status() == collections.EventRejected {
		return nil
	}
	return fault.State("invalid_state", "The event has been dealt with already.")
}

// reread reads a stored event in its vendor's words, as of its own receipt.
func (e *Pipeline) reread(event *collections.GatewayEvent) (gateway.Event, error) {
	adapter, known := e.Adapters[gateway.Vendor(event.Vendor())]
	if !known {
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
		waiting, err := FindQuarantined(tx, id)
		if err != nil {
			return err
		}
		if fromPeople(waiting.Source()) {
			return alreadyPlaced()
		}
		if _, err := collections.FindPatient(tx, patientID); err != nil {
			return fault.OrMissing(err)
		}
		if err := waits(waiting); err != nil {
			return err
		}
		event, err := e.reread(waiting)
		if event.Implausible != nil && waiting.Status() == collections.EventRejected {
			return e.give(tx, waiting, event, patientID, by, now)
		}
		if err != nil || event.Reading == nil {
			return fault.State("invalid_state", "The event cannot be read as a measurement.").Because(err)
		}
		whose := owner{patient: patientID, chosen: true}
		s, err := e.placed(tx, event, whose, by, now)
		if err != nil {
			return err
		}
		outcome, err = e.Readings.Ingest(tx, s, now)
		if err == nil && outcome.Conflict { // beside the one it contradicts
			if s.Addition {
				return fault.State("invalid_state", "The reading that this belongs to says otherwise.")
			}
			s.GatewayKey, whose.beside = "", true
			outcome, err = e.Readings.Ingest(tx, s, now)
		}
		if err != nil {
			return aboutPatient(err)
		}
		if err := end(tx, waiting, ending{status: collections.EventReleased, observation: outcome.Observation.ID, patient: patientID}, by, now); err != nil {
			return err
		}
		return e.addWaiting(tx, event, outcome.Observation, whose, by, now)
	})
	return outcome, err
}

// aboutPatient turns a complaint about the time of measurement, which whoever releases cannot change, into one about the
// patient chosen.
func aboutPatient(err error) error {
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
		if err := waits(event); err != nil {
			return err
		}
		patient, err := collections.PatientOfQuarantine(tx, id)
		if err != nil {
			return err
		}
		if err := end(tx, event, ending{status: collections.EventDiscarded, reason: reason, patient: patient}, by, now); err != nil {
			return err
		}
		if err := e.takeBack(tx, event, reason, by, now); err != nil {
			return err
		}
		if decided, err := e.reported(event); err == nil {
			if err := e.tellOfRest(tx, decided, patient, now); err != nil {
				return err
			}
		}
		event, err = FindQuarantined(tx, id)
		return err
	})
	return event, err
}

// ending is how the waiting of an event ends.
type ending struct {
	status               string
	observation, patient string
	reason               phi.Text
}

func end(tx core.App, event *collections.GatewayEvent, with ending, by audit.Actor, now time.Time) error {
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
