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

// QuarantineStatuses are the statuses of the quarantine list: unmatched or unreadable events, and closed ones.
var QuarantineStatuses = []string{collections.EventOpen, collections.EventReleased, collections.EventDiscarded, collections.EventRejected}

// Reasons why an event is quarantined.
const (
	ReasonUnknownPatient  = "unknown_patient"
	ReasonPatientMismatch = "patient_mismatch"
	ReasonPatientInactive = "patient_inactive"
	ReasonUnsupportedType = "unsupported_type"
	ReasonConflict        = "conflicting_duplicate"
	ReasonDeviceMismatch  = "device_patient_mismatch"
	ReasonBeforeBirth     = "before_birth"
	reasonKeyAlias        = "duplicate_reading" // never pending
)

// quarantineReason returns why a matched measurement was rejected after all: the patient or the device's assignment changed concurrently,
// or the time is before the patient's birth.
func quarantineReason(refused *fault.Error) string {
	switch {
	case refused.Code == ReasonDeviceMismatch:
		return ReasonDeviceMismatch
	case refused.Fields["measured_at"] != nil:
		return ReasonBeforeBirth
	case refused.Kind == fault.NotFound || refused.Fields["patient_id"] != nil:
		return ReasonPatientInactive
	}
	return refused.Code
}

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
		return nil, fault.Missing() // never in quarantine
	}
	return event, nil
}

// checkPending returns a fault if the event is closed.
func checkPending(event *collections.GatewayEvent) error {
	if event.Status() == collections.EventOpen || event.Status() == collections.EventRejected {
		return nil
	}
	return fault.State("invalid_state", "The event is closed already.")
}

// reparse parses a stored event in its vendor's format, as of its own receipt.
func (e *Pipeline) reparse(event *collections.GatewayEvent) (gateway.Event, error) {
	adapter, supported := e.Adapters[gateway.Vendor(event.Vendor())]
	if !supported {
		return gateway.Event{}, fault.New(fault.Invalid, "unknown_vendor", "This version does not support the vendor.")
	}
	return gateway.Parse(adapter, []byte(event.Payload().Reveal()), event.ReceivedAt())
}

// Release assigns a quarantined measurement to a patient, stores it as an observation and closes the event in one transaction. Faults:
// not_found for the event or the patient; invalid_state for a closed or unreadable event; and the faults of a reading. The person's
// decision has priority over the deduplication key: of two contradictory readings both can be stored. For implausible values it raises the
// alert and the event stays pending, without an outcome.
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
		if event.Implausible != nil && (pending.Status() == collections.EventRejected || event.IsUnsupported()) {
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
		if err := e.resolveConfirmedAlerts(tx, pending, "", by, now); err != nil {
			return err
		}
		outcome, err = e.ingestForPerson(tx, s, &match, now)
		if err != nil {
			return asPatientFault(err)
		}
		if err := closeEvent(tx, pending, eventClosure{status: collections.EventReleased, observation: outcome.Observation.ID, patient: patientID}, by, now); err != nil {
			return err
		}
		return e.addPendingParts(tx, event, outcome.Observation, match, by, now)
	})
	return outcome, err
}

// ingestForPerson stores a reading that a person released or confirmed. If it conflicts with the reading of its key, it is stored separately.
func (e *Pipeline) ingestForPerson(tx core.App, s Submission, match *patientMatch, now time.Time) (Outcome, error) {
	outcome, err := e.Readings.Ingest(tx, s, now)
	if err != nil || !outcome.Conflict {
		return outcome, err
	}
	if s.IsPart {
		return outcome, fault.State("invalid_state", "The reading that this belongs to has other values.")
	}
	s.GatewayKey, match.withoutKey = "", true
	return e.Readings.Ingest(tx, s, now)
}

// asPatientFault turns a fault about the time of measurement, which the user who releases cannot change, into one about the chosen patient.
func asPatientFault(err error) error {
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Fields["measured_at"] != nil {
		return fault.Validation(fault.Fields{"patient_id": refused.Fields["measured_at"]})
	}
	return err
}

// Discard closes a quarantined event without an observation. Nothing is deleted.
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
		if err := closeEvent(tx, event, eventClosure{status: collections.EventDiscarded, reason: reason, patient: patient}, by, now); err != nil {
			return err
		}
		if err := e.retractAlerts(tx, event, reason, by, now); err != nil {
			return err
		}
		if decided, err := e.parseImplausible(event); err == nil {
			if err := e.discardOtherForms(tx, decided, id, patient, reason, by, now); err != nil {
				return err
			}
			if err := e.alertNextPending(tx, decided, patient, now); err != nil {
				return err
			}
		}
		event, err = FindQuarantined(tx, id)
		return err
	})
	return event, err
}

// eventClosure is how an event is closed.
type eventClosure struct {
	status               string
	observation, patient string
	reason               phi.Text
}

func closeEvent(tx core.App, event *collections.GatewayEvent, with eventClosure, by audit.Actor, now time.Time) error {
	name, action := by.Email, audit.WebhookReleased
	if name == "" {
		name = string(by.Type)
	}
	if with.status == collections.EventDiscarded {
		action = audit.WebhookDiscarded
	}
	if err := event.Close(tx, with.status, with.observation, name, with.reason, now); err != nil {
		return err
	}
	return audit.Append(tx, audit.Entry{
		Event: action, Actor: by, ResourceType: audit.ResourceGatewayEvent, ResourceID: event.Id, PatientID: with.patient, Reason: with.reason,
	}, now)
}

// keepQuarantined updates the reason of an event that stays pending.
func keepQuarantined(tx core.App, event *collections.GatewayEvent, status, reason string, fields fault.Fields) error {
	if event.Status() == status && event.Reason() == reason {
		return nil
	}
	return event.SetReason(tx, status, reason, fields)
}
