package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// EventEntry is a vouched-for event that did not become an observation. Nothing vouched for is ever dropped.
type EventEntry struct {
	ID          string
	Status      string
	Reason      string
	Event       gateway.Event
	Payload     []byte // as it came; stored encrypted
	FieldErrors fault.Fields
	// Source is by which way it came; "" for a vendor's webhook.
	Source string
	// Told: staff hear of it though nobody has to place it, because its sender does not.
	NotifyStaff bool
}

// StoreEvent stores an event once, and returns the id it has; known is true when this very event was there
// already. Another measurement that claims the same id, with other values for the same device and second, is stored
// beside it under an id of its own.
func StoreEvent(app core.App, e EventEntry, by audit.Actor, now time.Time) (id string, duplicate bool, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		stored, err := e.insert(tx, now)
		if err != nil {
			return err
		}
		if !stored {
			// What a device or hub of the contract's gateway said of itself is known by its key alone. Devices of other vendors say one
			// thing after the other in one moment.
			handled := e.Status == collections.EventHandled && e.Event.Vendor != gateway.Contract
			if duplicate = e.Status != collections.EventOpen && !handled; duplicate {
				return nil
			}
			payload, err := collections.PayloadOfGatewayEvent(tx, e.ID)
			if duplicate = payload == string(e.Payload); duplicate || err != nil {
				return err
			}
			e.ID = gateway.BodyID(e.Event.Vendor, e.Payload)
			if stored, err = e.insert(tx, now); err != nil || !stored {
				duplicate = !stored
				return err
			}
		}
		return e.afterInsert(tx, by, now)
	})
	return e.ID, duplicate, err
}

// afterInsert does what a newly stored event asks for: the hub it names is alive, staff are told, and it is audited.
func (e EventEntry) afterInsert(tx core.App, by audit.Actor, now time.Time) error {
	if e.Status != collections.EventHandled { // those say more about the hub than that it is alive
		if err := devices.RecordHub(tx, e.Event, now); err != nil {
			return err
		}
	}
	if e.Status == collections.EventOpen || e.NotifyStaff {
		if err := announceQuarantined(tx, e.Status, now); err != nil {
			return err
		}
	}
	event, worthAuditing := auditedStatuses[e.Status]
	if !worthAuditing {
		return nil
	}
	return audit.Append(tx, audit.Entry{
		Event: event, Outcome: audit.MinorFailure, Actor: by, ResourceType: audit.ResourceGatewayEvent,
		ResourceID: e.ID,
	}, now)
}

// announceQuarantined tells staff that something waits to be placed, or could not be read, each once an hour whatever comes.
// Source: docs/decisions/gateway.md, "Webhook answers" and "Other device vendors".
func announceQuarantined(tx core.App, status string, now time.Time) error {
	body, key := "Device events wait to be placed.", "event_quarantined "
	if status == collections.EventRejected {
		body, key = "Part of what devices measured could not be read.", "event_rejected "
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EventQuarantined, Severity: "warning", Body: body, Key: key + now.UTC().Format("2006-01-02T15"),
	}, now)
}

// insert stores the event unless its id is taken.
func (e EventEntry) insert(tx core.App, now time.Time) (stored bool, err error) {
	return collections.InsertGatewayEvent(tx, collections.NewGatewayEvent{
		ID: e.ID, Vendor: string(e.Event.Vendor), Status: e.Status, Reason: e.Reason, EventType: string(e.Event.Type),
		DeviceID: e.Event.DeviceID, HubID: e.Event.HubID, MeasurementOf: e.Event.MeasurementType, At: e.Event.At,
		FieldErrors: e.FieldErrors, Payload: e.Payload, Source: e.Source, Implausible: e.Event.Implausible != nil,
	}, now)
}

var auditedStatuses = map[string]audit.Event{
	collections.EventOpen: audit.WebhookQuarantined, collections.EventRejected: audit.WebhookRejected,
}

// Reasons why an event is held for a person to place.
const (
	ReasonUnknownPatient  = "unknown_patient"
	ReasonPatientMismatch = "patient_mismatch"
	ReasonPatientInactive = "patient_inactive"
	ReasonUnsupportedType = "unsupported_type"
	ReasonConflict        = "conflicting_duplicate"
	ReasonDeviceMismatch  = "device_patient_mismatch"
	ReasonBeforeBirth     = "before_birth"
	ReasonNoReadingYet    = ReasonReadingMissing // a part of one that has not come
	reasonKeyAlias        = "duplicate_reading"  // it waits for nobody
)

// quarantineReason says why a measurement that had been placed was refused in the end: the patient or the device changed hands
// this very moment, or the time cannot be that patient's.
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

// MatchPatient finds the patient of a gateway measurement: who held the device then, else the patient the gateway names. When the two
// disagree it does not guess. reason says why the event cannot be placed.
// Source: docs/decisions/gateway.md, "Which patient does an event belong to".
func MatchPatient(app core.App, event gateway.Event) (patientID, reason string, err error) {
	found, err := collections.FindAddressee(app, event.DeviceID, event.PatientID, event.KnownAt())
	if err != nil {
		return "", "", err
	}
	holder, patient := found.Holder, found.Named
	if holder == "" {
		if holder, err = currentHolderIfClockWrong(app, event, found.Now); err != nil {
			return "", "", err
		}
	}
	switch {
	case holder == "" && patient.ID == "":
		return "", ReasonUnknownPatient, nil
	case holder != "" && patient.ID != "" && patient.ID != holder:
		return "", ReasonPatientMismatch, nil
	case patient.ID == "":
		if patient, err = collections.FindReceivingPatient(app, holder); err != nil {
			return "", "", err
		}
	}
	switch {
	case patient.ID == "":
		return "", ReasonUnknownPatient, nil
	case !patient.Active || patient.DeletedAt != "":
		return "", ReasonPatientInactive, nil
	}
	return patient.ID, "", nil
}
