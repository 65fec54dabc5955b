package observations

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// KeptStatus is where a kept gateway event stands.
type KeptStatus string

// The states of kept events: open ones wait for a person, rejected ones could not be read; released and discarded are
// what became of either.
const (
	KeptOpen      KeptStatus = "open"
	KeptRejected  KeptStatus = "rejected"
	KeptReleased  KeptStatus = "released"
	KeptDiscarded KeptStatus = "discarded"
	KeptHandled   KeptStatus = "handled"
	KeptIgnored   KeptStatus = "ignored"
)

// Kept is a signed gateway event that did not become an observation. Nothing signed is ever dropped.
type Kept struct {
	ID          string
	Status      KeptStatus
	Reason      string
	Event       gateway.Event
	Payload     []byte // the signed body; stored encrypted
	FieldErrors fault.Fields
}

// Keep stores a kept event once, and returns the id it is kept under; known is true when this very event was there
// already. Another measurement that claims the same id, with other values for the same device and second, is kept
// beside it under an id of its own.
func Keep(app core.App, k Kept, by audit.Actor, now time.Time) (id string, known bool, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		stored, err := k.insert(tx, now)
		if err != nil {
			return err
		}
		if !stored {
			// What a device or hub said of itself is known by its key alone.
			if known = k.Status != KeptOpen; known {
				return nil
			}
			if known, err = k.sameAsKept(tx); err != nil || known {
				return err
			}
			k.ID = BodyID(k.Payload)
			if stored, err = k.insert(tx, now); err != nil || !stored {
				known = !stored
				return err
			}
		}
		if k.Status != KeptHandled { // those say more about the hub than that it is alive
			if err := devices.Hear(tx, k.Event, now); err != nil {
				return err
			}
		}
		if k.Status == KeptOpen {
			if err := announce(tx, now); err != nil {
				return err
			}
		}
		event, worthAuditing := keptEvents[k.Status]
		if !worthAuditing {
			return nil
		}
		return audit.Append(tx, audit.Entry{
			Event: event, Outcome: audit.MinorFailure, Actor: by, ResourceType: "GatewayEvent",
			ResourceID: k.ID,
		}, now)
	})
	return k.ID, known, err
}

// announce tells staff that something waits to be placed, once an hour whatever comes.
// Source: docs/decisions/gateway.md, "Webhook answers".
func announce(tx core.App, now time.Time) error {
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EventQuarantined, Severity: "warning", Body: "Device events wait to be placed.",
		Key: "event_quarantined " + now.UTC().Format("2006-01-02T15"),
	}, now)
}

// insert stores the event unless its id is taken.
func (k Kept) insert(tx core.App, now time.Time) (stored bool, err error) {
	payload, err := collections.Seal(string(k.Payload), "gateway_events.payload", k.ID)
	if err != nil {
		return false, fmt.Errorf("seal event: %w", err)
	}
	fields, err := json.Marshal(k.FieldErrors)
	if err != nil {
		return false, fmt.Errorf("encode field errors: %w", err)
	}
	result, err := tx.NonconcurrentDB().NewQuery(`INSERT INTO gateway_events (id, status, reason, event_type, device_id, hub_id,
			measurement_type, timestamp, field_errors, received_at, payload)
		VALUES ({:id}, {:status}, {:reason}, {:type}, {:device}, {:hub}, {:measurement}, {:timestamp}, {:fields}, {:now}, {:payload})
		ON CONFLICT (id) DO NOTHING`).Bind(dbx.Params{
		"id": k.ID, "status": string(k.Status), "reason": k.Reason, "type": string(k.Event.Type), "device": k.Event.DeviceID,
		"hub": k.Event.HubID, "measurement": k.Event.MeasurementType,
		"timestamp": collections.Instant(k.Event.At), "fields": string(fields), "now": collections.Instant(now), "payload": payload,
	}).Execute()
	if err != nil {
		return false, fmt.Errorf("keep event: %w", err)
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// sameAsKept compares the event with the one kept under its id. A payload that cannot be opened any more is another one.
func (k Kept) sameAsKept(tx core.App) (bool, error) {
	var sealed string
	err := tx.DB().NewQuery(`SELECT payload FROM gateway_events WHERE id = {:id}`).Bind(dbx.Params{"id": k.ID}).Row(&sealed)
	if err != nil {
		return false, fmt.Errorf("read kept event: %w", err)
	}
	payload, err := collections.OpenValue(sealed, collections.GatewayEvents, "payload", k.ID)
	return err == nil && payload == string(k.Payload), nil
}

// BodyID names an event by its bytes, for those whose own key cannot be trusted.
func BodyID(body []byte) string {
	return uuid.NewHash(sha256.New(), uuid.NameSpaceOID, body, 8).String()
}

var keptEvents = map[KeptStatus]audit.Event{KeptOpen: audit.WebhookQuarantined, KeptRejected: audit.WebhookRejected}
