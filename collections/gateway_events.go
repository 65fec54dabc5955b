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

// Values of a gateway event's status. Open and rejected events are quarantined: open ones need a decision, rejected ones could not be parsed.
// Released and discarded are the decisions. Handled events came from devices and hubs, ignored ones have no meaning for Vigil.
const (
	EventOpen      = "open"
	EventRejected  = "rejected"
	EventReleased  = "released"
	EventDiscarded = "discarded"
	EventHandled   = "handled"
	EventIgnored   = "ignored"
)

// GatewayEvent is a device vendor's event that created no observation on arrival.
type GatewayEvent struct{ core.BaseRecordProxy }

// OldestOpenEvent returns the id of the event of a device that waits longest for a person, or "".
func OldestOpenEvent(app core.App, deviceID string) (string, error) {
	id, err := queryValue[string](app, "find the oldest open event", `SELECT id FROM gateway_events
		WHERE device_id = {:device} AND status = {:open} ORDER BY received_at, id LIMIT 1`, dbx.Params{"device": deviceID, "open": EventOpen})
	return id, IgnoreNotFound(err)
}

// FindGatewayEvent finds an event by id.
func FindGatewayEvent(app core.App, id string) (*GatewayEvent, error) {
	return find[GatewayEvent](app, GatewayEvents, dbx.HashExp{"id": id})
}

// GatewayEventFilter narrows a list of events; zero values do not narrow.
type GatewayEventFilter struct {
	Status, Reason, DeviceID string
	// Statuses applies if Status is "".
	Statuses []string
	// From and To bound the time of receipt, both inclusive.
	From, To time.Time
}

// PageOfGatewayEvents returns a page of events, newest first, the total, and the number of unreadable events, which it omits.
func PageOfGatewayEvents(app core.App, f GatewayEventFilter, offset, limit int) (page []*GatewayEvent, total, unreadable int, err error) {
	where := Conditions{}.Equal("status", f.Status).Equal("reason", f.Reason).Equal("device_id", f.DeviceID).Between("received_at", f.From, f.To)
	if f.Status == "" {
		where = append(where, AnyOf("status", f.Statuses))
	}
	page, total, err = pageOf[GatewayEvent](app, GatewayEvents, AllOf(where), []string{"received_at DESC", "id DESC"}, offset, limit)
	page, unreadable = ReadableOnly(page)
	return page, total, unreadable, err
}

// UndecidedGatewayEvents returns the ids of the quarantined events, oldest first.
func UndecidedGatewayEvents(app core.App) (ids []string, err error) {
	err = app.DB().Select("id").From(GatewayEvents).Where(dbx.In("status", EventOpen, EventRejected)).OrderBy("received_at", "id").Column(&ids)
	return ids, wrap(err, "list quarantined events")
}

// NewGatewayEvent is an event to store on arrival.
type NewGatewayEvent struct {
	ID, Vendor, Status, Reason                string
	EventType, DeviceID, HubID, MeasurementOf string
	Source                                    string
	Implausible                               bool
	At                                        time.Time // by the device's clock
	FieldErrors                               map[string][]string
	Payload                                   []byte // as received; stored encrypted
}

// InsertGatewayEvent stores the event unless its id exists.
func InsertGatewayEvent(tx core.App, e NewGatewayEvent, now time.Time) (stored bool, err error) {
	payload, err := Seal(string(e.Payload), "gateway_events.payload", e.ID)
	if err != nil {
		return false, fmt.Errorf("seal event: %w", err)
	}
	fields, err := json.Marshal(e.FieldErrors)
	if err != nil {
		return false, fmt.Errorf("encode field errors: %w", err)
	}
	n, err := execCounted(tx, "store gateway event", `INSERT INTO gateway_events (id, vendor, status, reason, event_type, device_id, hub_id,
			measurement_type, timestamp, field_errors, received_at, payload, source, implausible)
		VALUES ({:id}, {:vendor}, {:status}, {:reason}, {:type}, {:device}, {:hub}, {:measurement}, {:timestamp}, {:fields}, {:now}, {:payload},
			{:source}, {:implausible})
		ON CONFLICT (id) DO NOTHING`, dbx.Params{
		"id": e.ID, "vendor": e.Vendor, "status": e.Status, "reason": e.Reason, "type": e.EventType, "device": e.DeviceID,
		"hub": e.HubID, "measurement": e.MeasurementOf, "source": e.Source, "implausible": e.Implausible,
		"timestamp": FormatInstant(e.At), "fields": string(fields), "now": FormatInstant(now), "payload": payload,
	})
	return n == 1, err
}

// PayloadOfGatewayEvent returns the stored payload of an event, or "" if it cannot be opened.
func PayloadOfGatewayEvent(app core.App, id string) (string, error) {
	sealed, err := queryValue[string](app, "read gateway event", `SELECT payload FROM gateway_events WHERE id = {:id}`, dbx.Params{"id": id})
	if err != nil {
		return "", err
	}
	payload, err := OpenValue(sealed, GatewayEvents, "payload", id)
	if err != nil {
		return "", nil //nolint:nilerr // "" never equals a received payload
	}
	return payload, nil
}

// Close stores the decision about a quarantined event.
func (e *GatewayEvent) Close(tx core.App, status, observationID, by string, reason phi.Text, now time.Time) error {
	sealed, err := Seal(reason.Reveal(), "gateway_events.close_reason", e.Id)
	if err != nil {
		return fmt.Errorf("seal reason: %w", err)
	}
	return e.update(tx, dbx.Params{
		"status": status, "observation": observationID, "closed_by": by, "closed_at": FormatInstant(now), "close_reason": sealed,
	})
}

// SetReason stores why the event stays in quarantine.
func (e *GatewayEvent) SetReason(tx core.App, status, reason string, fields map[string][]string) error {
	raw, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encode field errors: %w", err)
	}
	return e.update(tx, dbx.Params{"status": status, "reason": reason, "field_errors": string(raw)})
}

func (e *GatewayEvent) update(tx core.App, columns dbx.Params) error {
	return update(tx, "update gateway event", GatewayEvents, columns, dbx.HashExp{"id": e.Id})
}

// Vendor is the vendor of the event; "" is the contract's gateway.
func (e *GatewayEvent) Vendor() string { return e.GetString("vendor") }

// SetImplausible records that the values of the rejected measurement are pending for a person.
func (e *GatewayEvent) SetImplausible(tx core.App) error {
	return e.update(tx, dbx.Params{"implausible": true})
}

// MarkEventCritical records that an event has a value beyond a critical bound that no alert is about.
func MarkEventCritical(tx core.App, id string) error {
	return update(tx, "mark critical event", GatewayEvents, dbx.Params{"critical": true}, dbx.HashExp{"id": id})
}

// Source is the channel of the event; "" is a vendor's webhook.
func (e *GatewayEvent) Source() string { return e.GetString("source") }

// Implausible reports whether the event has values of a measurement that only a person can accept: out of range, at a future time, or of an event
// with another fault.
func (e *GatewayEvent) Implausible() bool { return e.GetBool("implausible") }

// Timestamp is the time by the device's clock, or zero if it could not be parsed.
func (e *GatewayEvent) Timestamp() time.Time { return instantOf(e, "timestamp") }

// ClosedAt is zero while the event is quarantined.
func (e *GatewayEvent) ClosedAt() time.Time { return instantOf(e, "closed_at") }

// ObservationID is the observation created from the event, or the one that it duplicates.
func (e *GatewayEvent) ObservationID() string { return e.GetString("observation") }

// Payload is the event as received.
func (e *GatewayEvent) Payload() phi.Text { return phi.Text(e.GetString("payload")) }

// FieldErrors returns the messages by field of an event that could not be parsed; else nil.
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

// EventMatch is the candidates for the patient of an event: the patient with the device at the event's time, the one with it now, and the one
// that the event names; "" or zero for none.
type EventMatch struct {
	HolderThen, HolderNow string
	Named                 PatientMatch
}

// eventMatchQuery finds all candidates with one statement, because starting a read costs more than finding a row. Each part uses an index, so
// an event costs the same in a large practice.
var eventMatchQuery = `SELECT
	COALESCE((` + DeviceHolderQuery("+{:device}", "+{:at}") + `), ''),
	COALESCE((SELECT patient FROM device_assignments WHERE device_id = {:device} AND unassigned_at = ''), ''),
	COALESCE(named.id, ''), COALESCE(named.active, FALSE), COALESCE(named.deleted_at, '')
FROM (SELECT 1) LEFT JOIN (
	SELECT 1 AS preference, id, active, deleted_at FROM patients WHERE gateway_patient_id = {:value} AND gateway_patient_id != ''
	UNION ALL SELECT 2, id, active, deleted_at FROM patients WHERE id = {:id}
	UNION ALL SELECT 3, id, active, deleted_at FROM patients WHERE mrn = {:value} COLLATE NOCASE AND {:value} != ''
) AS named ORDER BY named.preference LIMIT 1`

// FindEventMatch finds the patient with the device, and the patient that an identifier names: the gateway's id, Vigil's id or the MRN, in this
// order.
func FindEventMatch(app core.App, deviceID, identifier string, at time.Time) (a EventMatch, err error) {
	err = app.DB().NewQuery(eventMatchQuery).Bind(dbx.Params{
		"device": deviceID, "at": FormatInstant(at), "value": identifier, "id": strings.ToLower(identifier),
	}).Row(&a.HolderThen, &a.HolderNow, &a.Named.ID, &a.Named.Active, &a.Named.DeletedAt)
	return a, wrap(err, "match event with patients")
}

// AlertsOfQuarantine returns the alerts about a quarantined event, in order.
func AlertsOfQuarantine(app core.App, eventID string) ([]*Alert, error) {
	return listOf[Alert](app, Alerts, dbx.NewExp(`quarantine_id = {:event} AND quarantine_id != ''
		OR id = (SELECT alert FROM gateway_events WHERE id = {:event} AND alert != '')`, dbx.Params{"event": eventID}), "id")
}

// PatientOfQuarantine returns the patient of a quarantined event that a care team was notified of, or "".
func PatientOfQuarantine(app core.App, eventID string) (string, error) {
	patients, err := PatientsOfQuarantine(app, eventID)
	return patients[eventID], err
}

// PatientsOfQuarantine is PatientOfQuarantine for several events, by event.
func PatientsOfQuarantine(app core.App, eventIDs ...string) (map[string]string, error) {
	if len(eventIDs) == 0 {
		return map[string]string{}, nil
	}
	alerted := app.DB().Select("quarantine_id", "patient").From(Alerts).Where(dbx.And(AnyOf("quarantine_id", eventIDs), dbx.NewExp("quarantine_id != ''")))
	return readMap[string]("find patients of events", alerted.Union(
		app.DB().Select("id", "patient").From(GatewayEvents).Where(dbx.And(AnyOf("id", eventIDs), dbx.NewExp("patient != ''"))).Build(),
	))
}

// SetEventPatient stores the patient of a quarantined event that has no alert of its own.
func SetEventPatient(tx core.App, eventID, patientID string) error {
	return update(tx, "set patient of event", GatewayEvents, dbx.Params{"patient": patientID}, dbx.HashExp{"id": eventID})
}

// TypedEvents selects quarantined implausible values that patients typed and that no alert is about; zero values do not narrow.
type TypedEvents struct {
	Patient, Kind, Source string
	// After and Until bound the time of receipt; the first is excluded, the second included.
	After, Until time.Time
}

// QuarantinedTypedEvents returns the ids of typed values of patients who are not archived, oldest first.
func QuarantinedTypedEvents(app core.App, t TypedEvents, limit int) (ids []string, err error) {
	where := Conditions{}.Equal("g.patient", t.Patient).Equal("g.measurement_type", t.Kind).Equal("g.source", t.Source).
		And("g.alert = '' AND NOT EXISTS (SELECT 1 FROM alerts WHERE alerts.quarantine_id = g.id AND alerts.quarantine_id != '')")
	if t.Patient != "" {
		where = where.And("g.patient != ''") // the condition of the index
	}
	if !t.After.IsZero() {
		where = append(where, dbx.NewExp("g.received_at > {:after}", dbx.Params{"after": FormatInstant(t.After)}))
	}
	if !t.Until.IsZero() {
		where = append(where, dbx.NewExp("g.received_at <= {:until}", dbx.Params{"until": FormatInstant(t.Until)}))
	}
	err = app.DB().Select("g.id").From(GatewayEvents+" g").InnerJoin("patients p", dbx.NewExp("p.id = g.patient AND p.active AND p.deleted_at = ''")).
		Where(dbx.And(dbx.NewExp("g.status = 'rejected' AND g.implausible"), AllOf(where))).OrderBy("g.received_at", "g.id").Limit(int64(limit)).Column(&ids)
	return ids, wrap(err, "find typed values")
}

// SetAlertObservation links the alerts about a released event to its observation, so retracting the observation retracts them.
func SetAlertObservation(tx core.App, eventID, observationID string) error {
	return update(tx, "link alerts to observation", Alerts, dbx.Params{"observation": observationID},
		dbx.NewExp("quarantine_id = {:event} AND quarantine_id != ''", dbx.Params{"event": eventID}))
}

// PatientMatch is the part of a patient that matching an event needs. The zero value means no patient.
type PatientMatch struct {
	ID        string `db:"id"`
	Active    bool   `db:"active"`
	DeletedAt string `db:"deleted_at"`
}

// FindPatientMatch finds a patient by id.
func FindPatientMatch(app core.App, id string) (patient PatientMatch, err error) {
	err = app.DB().NewQuery(`SELECT id, active, deleted_at FROM patients WHERE id = {:id}`).Bind(dbx.Params{"id": id}).One(&patient)
	return patient, wrap(IgnoreNotFound(err), "find patient of event")
}
