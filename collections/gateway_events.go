package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// The values of a gateway event's status: open ones wait for a person, rejected ones could not be read; released and discarded are
// what became of either. Handled are those of devices and hubs, ignored those that mean nothing here.
const (
	EventOpen      = "open"
	EventRejected  = "rejected"
	EventReleased  = "released"
	EventDiscarded = "discarded"
	EventHandled   = "handled"
	EventIgnored   = "ignored"
)

// GatewayEvent is an event of a device vendor that made no observation when it came.
type GatewayEvent struct{ core.BaseRecordProxy }

// FindGatewayEvent finds an event by id.
func FindGatewayEvent(app core.App, id string) (*GatewayEvent, error) {
	return find[GatewayEvent](app, GatewayEvents, dbx.HashExp{"id": id})
}

// GatewayEventFilter narrows a list of events; zero values do not.
type GatewayEventFilter struct {
	Status, Reason, DeviceID string
	// Among keeps these states where no one is asked for.
	Among []string
	// From and To bound the time of receipt, both inclusive.
	From, To time.Time
}

// PageOfGatewayEvents returns a page of events, the newest first, and how many there are in all; unreadable ones are left out and counted.
func PageOfGatewayEvents(app core.App, f GatewayEventFilter, offset, limit int) (page []*GatewayEvent, total, unreadable int, err error) {
	where := Conditions{}.Equal("status", f.Status).Equal("reason", f.Reason).Equal("device_id", f.DeviceID).Between("received_at", f.From, f.To)
	if f.Status == "" {
		where = append(where, AnyOf("status", f.Among))
	}
	page, total, err = pageOf[GatewayEvent](app, GatewayEvents, Every(where), []string{"received_at DESC", "id DESC"}, offset, limit)
	page, unreadable = ReadableOnly(page)
	return page, total, unreadable, err
}

// WaitingGatewayEvents are the ids of the events that somebody may still decide about, the oldest first.
func WaitingGatewayEvents(app core.App) (ids []string, err error) {
	err = app.DB().Select("id").From(GatewayEvents).Where(dbx.In("status", EventOpen, EventRejected)).OrderBy("received_at", "id").Column(&ids)
	return ids, wrap(err, "list events that wait")
}

// NewGatewayEvent is what is stored of an event when it comes.
type NewGatewayEvent struct {
	ID, Vendor, Status, Reason                string
	EventType, DeviceID, HubID, MeasurementOf string
	Source                                    string
	Implausible                               bool
	At                                        time.Time // by the device's clock
	FieldErrors                               map[string][]string
	Payload                                   []byte // as it came; stored encrypted
}

// InsertGatewayEvent stores the event unless its id is taken.
func InsertGatewayEvent(tx core.App, e NewGatewayEvent, now time.Time) (stored bool, err error) {
	payload, err := Seal(string(e.Payload), "gateway_events.payload", e.ID)
	if err != nil {
		return false, fmt.Errorf("seal event: %w", err)
	}
	fields, err := json.Marshal(e.FieldErrors)
	if err != nil {
		return false, fmt.Errorf("encode field errors: %w", err)
	}
	n, err := change(tx, "store gateway event", `INSERT INTO gateway_events (id, vendor, status, reason, event_type, device_id, hub_id,
			measurement_type, timestamp, field_errors, received_at, payload, source, implausible)
		VALUES ({:id}, {:vendor}, {:status}, {:reason}, {:type}, {:device}, {:hub}, {:measurement}, {:timestamp}, {:fields}, {:now}, {:payload},
			{:source}, {:implausible})
		ON CONFLICT (id) DO NOTHING`, dbx.Params{
		"id": e.ID, "vendor": e.Vendor, "status": e.Status, "reason": e.Reason, "type": e.EventType, "device": e.DeviceID,
		"hub": e.HubID, "measurement": e.MeasurementOf, "source": e.Source, "implausible": e.Implausible,
		"timestamp": Instant(e.At), "fields": string(fields), "now": Instant(now), "payload": payload,
	})
	return n == 1, err
}

// PayloadOfGatewayEvent is the body that is stored under an id; "" when it cannot be opened any more.
func PayloadOfGatewayEvent(app core.App, id string) (string, error) {
	sealed, err := queryValue[string](app, "read gateway event", `SELECT payload FROM gateway_events WHERE id = {:id}`, dbx.Params{"id": id})
	if err != nil {
		return "", err
	}
	payload, err := OpenValue(sealed, GatewayEvents, "payload", id)
	if err != nil {
		return "", nil //nolint:nilerr // it is compared with what came, and is another one
	}
	return payload, nil
}

// Close ends the waiting of the event.
func (e *GatewayEvent) Close(tx core.App, status, observationID, by string, reason phi.Text, now time.Time) error {
	sealed, err := Seal(reason.Reveal(), "gateway_events.close_reason", e.Id)
	if err != nil {
		return fmt.Errorf("seal reason: %w", err)
	}
	return e.update(tx, dbx.Params{
		"status": status, "observation": observationID, "closed_by": by, "closed_at": Instant(now), "close_reason": sealed,
	})
}

// Wait stores why the event goes on waiting.
func (e *GatewayEvent) Wait(tx core.App, status, reason string, fields map[string][]string) error {
	raw, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encode field errors: %w", err)
	}
	return e.update(tx, dbx.Params{"status": status, "reason": reason, "field_errors": string(raw)})
}

func (e *GatewayEvent) update(tx core.App, columns dbx.Params) error {
	return update(tx, "update gateway event", GatewayEvents, columns, dbx.HashExp{"id": e.Id})
}

// Vendor is whose event it is; "" for the contract's gateway.
func (e *GatewayEvent) Vendor() string { return e.GetString("vendor") }

// SetImplausible notes that nothing is wrong with the measurement but values out of range.
func (e *GatewayEvent) SetImplausible(tx core.App) error {
	return e.update(tx, dbx.Params{"implausible": true})
}

// Source is by which way it came; "" for a vendor's webhook.
func (e *GatewayEvent) Source() string { return e.GetString("source") }

// Implausible: nothing is wrong with the measurement but values out of range.
func (e *GatewayEvent) Implausible() bool { return e.GetBool("implausible") }

// Timestamp is by the device's clock; zero when it could not be read.
func (e *GatewayEvent) Timestamp() time.Time { return instantOf(e, "timestamp") }

// ClosedAt is zero while the event waits.
func (e *GatewayEvent) ClosedAt() time.Time { return instantOf(e, "closed_at") }

// ObservationID is the observation that was made of the event, or that was known before.
func (e *GatewayEvent) ObservationID() string { return e.GetString("observation") }

// Payload is the event as it came.
func (e *GatewayEvent) Payload() phi.Text { return phi.Text(e.GetString("payload")) }

// FieldErrors are the messages by field of an event that could not be read; nil for others.
func (e *GatewayEvent) FieldErrors() (fields map[string][]string) {
	if json.Unmarshal([]byte(e.GetString("field_errors")), &fields) != nil {
		return nil
	}
	return fields
}

func (e *GatewayEvent) Status() string          { return e.GetString("status") }
func (e *GatewayEvent) Reason() string          { return e.GetString("reason") }
func (e *GatewayEvent) EventType() string       { return e.GetString("event_type") }
func (e *GatewayEvent) DeviceID() string        { return e.GetString("device_id") }
func (e *GatewayEvent) MeasurementType() string { return e.GetString("measurement_type") }
func (e *GatewayEvent) ClosedBy() string        { return e.GetString("closed_by") }
func (e *GatewayEvent) ReceivedAt() time.Time   { return instantOf(e, "received_at") }
