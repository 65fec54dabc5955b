package observations

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/phi"
)

// QuarantineStatuses are the states of what people look at: events that could not be placed or read, and what became of
// them.
var QuarantineStatuses = []KeptStatus{KeptOpen, KeptReleased, KeptDiscarded, KeptRejected}

// Item is a kept event on the quarantine list.
type Item struct {
	ID              string
	Status          KeptStatus
	Reason          string
	EventType       string
	DeviceID        string
	MeasurementType string
	Timestamp       string // as stored, "" when it could not be read
	ReceivedAt      time.Time
	ClosedAt        time.Time // zero while open
	ClosedBy        string
	ObservationID   string // made of it, or known before
	FieldErrors     fault.Fields

	payload phi.Text
}

// GatewayPatientID is the patient that the gateway named; it is kept in the sealed payload only.
func (i Item) GatewayPatientID() string { return gateway.PatientIdentifier([]byte(i.payload.Reveal())) }

// waits reports whether somebody may still decide about the event.
func (i Item) waits() error {
	if i.Status == KeptOpen || i.Status == KeptRejected {
		return nil
	}
	return fault.State("invalid_state", "The event has been dealt with already.")
}

func itemFromRecord(record *core.Record) (Item, error) {
	item := Item{
		ID: record.Id, Status: KeptStatus(record.GetString("status")), Reason: record.GetString("reason"),
		EventType: record.GetString("event_type"), DeviceID: record.GetString("device_id"),
		MeasurementType: record.GetString("measurement_type"), Timestamp: record.GetString("timestamp"),
		ReceivedAt: collections.ParseInstant(record.GetString("received_at")),
		ClosedAt:   collections.ParseInstant(record.GetString("closed_at")), ClosedBy: record.GetString("closed_by"),
		ObservationID: record.GetString("observation"), payload: phi.Text(record.GetString("payload")),
	}
	if raw := record.GetString("field_errors"); raw != "" && raw != "null" {
		if err := json.Unmarshal([]byte(raw), &item.FieldErrors); err != nil {
			return item, fmt.Errorf("read field errors of event: %w", err)
		}
	}
	return item, nil
}

// QuarantineFilter narrows the quarantine list; zero values do not.
type QuarantineFilter struct {
	Status           KeptStatus
	Reason, DeviceID string
	// From and To bound the time of receipt, both inclusive.
	From, To time.Time
}

// Quarantine returns a page of the quarantine list, newest first, and how long it is in all; unreadable events are left out and counted.
func Quarantine(app core.App, f QuarantineFilter, offset, limit int) (page []Item, total, unreadable int, err error) {
	statuses := []any{}
	for _, status := range QuarantineStatuses {
		if f.Status == "" || f.Status == status {
			statuses = append(statuses, string(status))
		}
	}
	records, total, err := collections.Conditions{dbx.In("status", statuses...)}.Equal("reason", f.Reason).
		Equal("device_id", f.DeviceID).Between("received_at", f.From, f.To).
		Page(app, collections.GatewayEvents, "received_at DESC, id DESC", offset, limit)
	if err != nil {
		return nil, 0, 0, err
	}
	records, unreadable = collections.ReadableRecords(records)
	for _, record := range records {
		item, err := itemFromRecord(record)
		if err != nil {
			return nil, 0, 0, err
		}
		page = append(page, item)
	}
	return page, total, unreadable, nil
}

// FindItem returns one event of the quarantine list, or a not-found fault.
func FindItem(app core.App, id string) (Item, error) {
	record, err := app.FindRecordById(collections.GatewayEvents, id)
	if collections.Missing(err) {
		return Item{}, fault.Missing()
	}
	if err != nil {
		return Item{}, fmt.Errorf("find kept event: %w", err)
	}
	if err := collections.Readable(record); err != nil {
		return Item{}, err
	}
	item, err := itemFromRecord(record)
	if err == nil && (item.Status == KeptHandled || item.Status == KeptIgnored) {
		err = fault.Missing() // nothing of it waits for anybody
	}
	return item, err
}

// Release gives a kept measurement to a patient: it becomes an observation like any other, in one transaction with the end
// of its waiting. Faults: not_found for the event or the patient, invalid_state for one dealt with or unreadable, and what
// refuses a reading. The person's word weighs more than the deduplication key: of two that contradict each other both can
// become observations.
func (e *Engine) Release(
	app core.App, parser gateway.Parser, id, patientID string, by audit.Actor, now time.Time,
) (outcome Outcome, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		item, err := FindItem(tx, id)
		if err != nil {
			return err
		}
		if _, err := collections.FindPatient(tx, patientID); collections.Missing(err) {
			return fault.Missing()
		} else if err != nil {
			return err
		}
		if err := item.waits(); err != nil {
			return err
		}
		event, err := parser.Parse([]byte(item.payload.Reveal()), item.ReceivedAt)
		if err != nil || event.Reading == nil {
			return fault.State("invalid_state", "The event cannot be read as a measurement.").Because(err)
		}
		if outcome, err = e.placeWith(tx, event, patientID, by, now); err != nil {
			return aboutPatient(err)
		}
		return item.close(tx, closing{Status: KeptReleased, ObservationID: outcome.Observation.ID, PatientID: patientID}, by, now)
	})
	return outcome, err
}

// placeWith stores the reading of a kept event for a patient; one that contradicts an earlier event becomes an observation
// of its own.
func (e *Engine) placeWith(tx core.App, event gateway.Event, patientID string, by audit.Actor, now time.Time) (Outcome, error) {
	s := FromEvent(event, patientID, by, now)
	outcome, err := e.Ingest(tx, s, now)
	if err == nil && outcome.Conflict {
		s.GatewayKey = ""
		outcome, err = e.Ingest(tx, s, now)
	}
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

// Discard ends the waiting of a kept event without an observation. Nothing is deleted.
func Discard(app core.App, id string, reason phi.Text, by audit.Actor, now time.Time) (item Item, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if item, err = FindItem(tx, id); err != nil {
			return err
		}
		if err := item.waits(); err != nil {
			return err
		}
		if err := item.close(tx, closing{Status: KeptDiscarded, Reason: reason}, by, now); err != nil {
			return err
		}
		item, err = FindItem(tx, id)
		return err
	})
	return item, err
}

// closing is how the waiting of an event ended.
type closing struct {
	Status                   KeptStatus
	ObservationID, PatientID string
	Reason                   phi.Text
}

func (i Item) close(tx core.App, end closing, by audit.Actor, now time.Time) error {
	reason, err := collections.Seal(end.Reason.Reveal(), "gateway_events.close_reason", i.ID)
	if err != nil {
		return fmt.Errorf("seal reason: %w", err)
	}
	who, event := by.Email, audit.WebhookReleased
	if who == "" {
		who = string(by.Type)
	}
	if end.Status == KeptDiscarded {
		event = audit.WebhookDiscarded
	}
	_, err = tx.DB().Update(collections.GatewayEvents, dbx.Params{
		"status": string(end.Status), "observation": end.ObservationID, "closed_by": who,
		"closed_at": collections.Instant(now), "close_reason": reason,
	}, dbx.HashExp{"id": i.ID}).Execute()
	if err != nil {
		return fmt.Errorf("close kept event: %w", err)
	}
	return audit.Append(tx, audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceGatewayEvent, ResourceID: i.ID, PatientID: end.PatientID, Reason: end.Reason,
	}, now)
}
