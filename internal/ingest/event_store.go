package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// EventEntry is an authenticated event that made no observation. No authenticated event is dropped.
type EventEntry struct {
	ID          string
	Status      string
	Reason      string
	Event       gateway.Event
	Payload     []byte // as received; stored encrypted
	FieldErrors fault.Fields
	// Source is the event's source; "" for a vendor's webhook.
	Source string
	// NotifyStaff announces the event although no person has to match it, because its sender gets no error.
	NotifyStaff bool
}

// StoreEvent stores an event once and returns its id; duplicate reports that the same event exists. A different measurement with the same id
// (same device and second, other values) is stored under an id of its own.
func StoreEvent(app core.App, e EventEntry, by audit.Actor, now time.Time) (id string, duplicate bool, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		stored, err := e.insert(tx, now)
		if err != nil {
			return err
		}
		if !stored {
			// Device and hub events of the contract's gateway are identified by key alone. Other vendors' devices send several in one
			// moment.
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

// afterInsert marks the event's hub as alive, notifies staff and appends the audit entry.
func (e EventEntry) afterInsert(tx core.App, by audit.Actor, now time.Time) error {
	if e.Status != collections.EventHandled { // the handler sets the hub's state itself
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

// announceQuarantined notifies staff of quarantined or unreadable events, at most once an hour each. Source: docs/decisions/gateway.md,
// "Webhook answers" and "Other device vendors".
func announceQuarantined(tx core.App, status string, now time.Time) error {
	body, key := "Device events are in quarantine and need a patient.", "event_quarantined "
	if status == collections.EventRejected {
		body, key = "Some device measurements could not be read.", "event_rejected "
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EventQuarantined, Severity: "warning", Body: body, Key: key + now.UTC().Format("2006-01-02T15"),
	}, now)
}

// announceUnmatched marks a quarantined event with a dangerous value that no alert is about: it may be one of several patients', of an unknown or
// archived one, or a part without its reading. It notifies all clinical staff, at most once a day for each device while its oldest event waits. No
// patient has an alert, because it would be another's. Source: docs/decisions/gateway.md, "Dangerous values without a certain patient".
func announceUnmatched(tx core.App, id string, event gateway.Event, reason string, now time.Time) error {
	what := "has no certain patient. Open the quarantine and find its patient now."
	switch reason {
	case ReasonReadingMissing: // the rest of it may never come
		what = "came without the rest of its reading. Open the quarantine and contact the patient now."
	case ReasonPatientMismatch, ReasonUnknownPatient, ReasonDeviceMismatch:
	default:
		what = "is in quarantine, and no alert is about it. Open the quarantine and decide now."
	}
	var values vitals.Reading
	switch {
	case event.Implausible != nil:
		values = event.Implausible.Reading
	case event.Reading != nil:
		values = *event.Reading
	}
	practice, _, err := collections.FindThresholds(tx, "")
	if err != nil {
		return err
	}
	inForce, err := alerts.NewInForceCache().Thresholds(&practice.Bounds, nil, nil)
	isDangerous := slices.ContainsFunc(vitals.ThresholdParameters, func(p *vitals.Parameter) bool {
		value := values.Value(p)
		return value != nil && inForce.IsDangerous(p, *value)
	})
	if err != nil || !isDangerous {
		return err
	}
	if err := collections.MarkEventCritical(tx, id); err != nil {
		return err
	}
	device, oldest := " of device "+event.DeviceID, ""
	if strings.TrimSpace(event.DeviceID) == "" { // it may be any device's
		device, oldest = "", event.ID()
	} else if oldest, err = collections.OldestOpenEvent(tx, event.DeviceID); err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EventQuarantined, Severity: "critical", AtOnce: true,
		Body: fmt.Sprintf("A measurement%s beyond critical limits %s", device, what),
		Key:  "event_unmatched " + event.DeviceID + " " + oldest + " " + now.UTC().Format(time.DateOnly),
	}, now)
}

// insert stores the event and reports false if its id exists.
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

// isManualSource reports whether a person entered the event or a client sent it through the API: it names its patient, and its payload is
// in our own format.
func isManualSource(source string) bool {
	return slices.Contains([]string{string(vitals.SourceAPI), string(vitals.SourcePortal), SourceDashboard, SourceClient}, source)
}

// EventSource returns the source of an event.
func EventSource(event *collections.GatewayEvent) string {
	return cmp.Or(event.Source(), event.Vendor(), sourceGateway)
}

// sourceOrigin returns the origin of events from a source.
func sourceOrigin(source string) vitals.Origin {
	switch source {
	case SourceImport:
		return vitals.OriginImport
	case SourceClient:
		return vitals.OriginMachine
	case string(vitals.SourcePortal):
		return vitals.OriginPatient
	case string(vitals.SourceAPI), SourceDashboard:
		return vitals.OriginStaff
	}
	return vitals.OriginDevice
}
