package collections

import (
	"encoding/json"
	"fmt"
	"strings"
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

// Addressee is what says whose an event is: who held its device at its time, who holds it now, and whom it names; "" and nobody when
// there is no one.
type Addressee struct {
	Holder, Now string
	Named       ReceivingPatient
}

// addressee asks for all of it at once: to begin to read costs more than to find a row. Each search has an index: an event must not cost
// more in a larger practice.
var addressee = `SELECT
	COALESCE((` + DeviceHolderQuery("+{:device}", "+{:at}") + `), ''),
	COALESCE((SELECT patient FROM device_assignments WHERE device_id = {:device} AND unassigned_at = ''), ''),
	COALESCE(named.id, ''), COALESCE(named.active, FALSE), COALESCE(named.deleted_at, '')
FROM (SELECT 1) LEFT JOIN (
	SELECT 1 AS preference, id, active, deleted_at FROM patients WHERE gateway_patient_id = {:value} AND gateway_patient_id != ''
	UNION ALL SELECT 2, id, active, deleted_at FROM patients WHERE id = {:id}
	UNION ALL SELECT 3, id, active, deleted_at FROM patients WHERE mrn = {:value} COLLATE NOCASE AND {:value} != ''
) AS named ORDER BY named.preference LIMIT 1`

// FindAddressee looks for whom an identifier names, which may be the gateway's own, then our id, then the MRN, and for who has the device.
func FindAddressee(app core.App, deviceID, identifier string, at time.Time) (a Addressee, err error) {
	err = app.DB().NewQuery(addressee).Bind(dbx.Params{
		"device": deviceID, "at": Instant(at), "value": identifier, "id": strings.ToLower(identifier),
	}).Row(&a.Holder, &a.Now, &a.Named.ID, &a.Named.Active, &a.Named.DeletedAt)
	return a, wrap(err, "find whose an event is")
}

// AlertsOfQuarantine are the alerts about an event in the quarantine, in order.
func AlertsOfQuarantine(app core.App, eventID string) ([]*Alert, error) {
	return listOf[Alert](app, Alerts, dbx.NewExp(`quarantine_id = {:event} AND quarantine_id != ''
		OR id = (SELECT alert FROM gateway_events WHERE id = {:event} AND alert != '')`, dbx.Params{"event": eventID}), "id")
}

// PatientOfQuarantine is whose people know of an event in the quarantine; "" while nobody does.
func PatientOfQuarantine(app core.App, eventID string) (string, error) {
	patients, err := PatientsOfQuarantine(app, eventID)
	return patients[eventID], err
}

// PatientsOfQuarantine are those of several events, by event.
func PatientsOfQuarantine(app core.App, eventIDs ...string) (map[string]string, error) {
	if len(eventIDs) == 0 {
		return map[string]string{}, nil
	}
	told := app.DB().Select("quarantine_id", "patient").From(Alerts).Where(dbx.And(AnyOf("quarantine_id", eventIDs), dbx.NewExp("quarantine_id != ''")))
	return readMap[string]("find whose events are", told.Union(
		app.DB().Select("id", "patient").From(GatewayEvents).Where(dbx.And(AnyOf("id", eventIDs), dbx.NewExp("patient != ''"))).Build(),
	))
}

// NotePatientOf says whose an event in the quarantine is, where no alert need be about it alone.
func NotePatientOf(tx core.App, eventID, patientID string) error {
	return update(tx, "note whose an event is", GatewayEvents, dbx.Params{"patient": patientID}, dbx.HashExp{"id": eventID})
}

// NoteReadingOf says which reading became of what the alerts about an event in the quarantine are about: withdrawing it takes them back.
func NoteReadingOf(tx core.App, eventID, observationID string) error {
	return update(tx, "note what became of an event", Alerts, dbx.Params{"observation": observationID},
		dbx.NewExp("quarantine_id = {:event} AND quarantine_id != ''", dbx.Params{"event": eventID}))
}
