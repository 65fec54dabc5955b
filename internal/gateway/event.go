package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// EventType is what an event is about, in the gateway's words.
type EventType string

// The event types. Source: the contract's inbound gateway events; docs/decisions/gateway.md, "Hub heartbeat".
const (
	MeasurementCreated EventType = "measurement.created"
	DeviceConnected    EventType = "device.connected"
	DeviceDisconnected EventType = "device.disconnected"
	DeviceBatteryLow   EventType = "device.battery_low"
	HubOffline         EventType = "hub.offline"
	HubHeartbeat       EventType = "hub.heartbeat"
)

// identifiers says which identifiers an event must name besides its timestamp.
// Source: docs/decisions/gateway.md, "`values` shapes", "The four other event types" and "Hub heartbeat".
type identifiers struct{ device, hub, patient bool }

var eventTypes = map[EventType]identifiers{
	MeasurementCreated: {device: true, patient: true},
	DeviceConnected:    {device: true},
	DeviceDisconnected: {device: true},
	DeviceBatteryLow:   {device: true},
	HubOffline:         {hub: true},
	HubHeartbeat:       {hub: true},
}

// Known reports whether events of this type mean something to the service; others are answered and ignored.
func (t EventType) Known() bool {
	_, ok := eventTypes[t]
	return ok
}

// Event is one verified event, checked. Identifiers are the vendor's own and "" when not sent.
type Event struct {
	Vendor Vendor
	Type   EventType
	// At is the device's time, UTC, in microseconds; zero for a type that is not Known.
	At                         time.Time
	DeviceID, HubID, PatientID string
	DeviceModel                string
	BatteryLevel               *int64 // percent, 0 to 100
	SignalStrength             *int64 // dBm, -150 to 0
	// LastSeenAt is when an offline hub was last heard; zero when not sent.
	LastSeenAt time.Time
	// MeasurementType is as sent; "" unless a measurement.
	MeasurementType string
	// Reading is nil unless a measurement of a kind we know.
	Reading *vitals.Reading

	// Index tells apart what one device measured in the same second, where its vendor does.
	Index string
	// Addition names a value that came by itself and belongs to the reading under the event's key; "" for a reading.
	Addition string
	// Additions names what belongs to a reading of this kind and may come, or may have come, by itself.
	Additions []string

	// ReceivedAt is when the event reached the door, whatever its own clock says.
	ReceivedAt time.Time
	// Implausible is a measurement in which nothing is wrong but values outside their ranges, or a time in the future, together with all
	// that came with them. The event is refused, or what is wrong is left out of its reading; whoever looks after the patient has to hear of it all the same.
	Implausible *Implausible

	// Excluded is what is wrong with values, by field, that were measured along with the reading and are not in it.
	LeftOut fault.Fields

	measurement string // the kind when it is one of ours, else MeasurementType in lower case
	bodyHash    [sha256.Size]byte
	ahead       bool // At lies in the future
}

// Unsupported reports whether the event is a measurement of a type the service has no kind for: it has no reading.
func (e Event) Unsupported() bool {
	return e.Type == MeasurementCreated && !vitals.Kind(e.measurement).Valid()
}

// Format keeps events out of logs and error texts.
func (Event) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[event]") }

// LogValue keeps events out of structured logs.
func (Event) LogValue() slog.Value { return slog.StringValue("[event]") }

// Key is the identity by which a repeated event is recognised, for ever: device, second and kind for a measurement;
// type, device or hub and time for other known events; the very bytes for an event that is ignored.
// The vendor goes before all of it, unless it is the contract's, so that no vendor's key is another's.
// Source: docs/decisions/gateway.md, "Deduplication window versus retries" and "The four other event types".
func (e Event) Key() string {
	parts := []string{string(e.Type)}
	if e.Vendor != Contract {
		parts = []string{string(e.Vendor), string(e.Type)}
	}
	switch {
	case e.Type == MeasurementCreated:
		parts = append(parts, e.DeviceID, e.At.Truncate(time.Second).Format(time.RFC3339), e.measurement)
		if e.Index != "" {
			parts = append(parts, e.Index)
		}
	case !e.Type.Known():
		parts = append(parts, hex.EncodeToString(e.bodyHash[:]))
	case eventTypes[e.Type].hub:
		parts = append(parts, e.HubID, validate.FormatInstant(e.At))
	default:
		parts = append(parts, e.DeviceID, validate.FormatInstant(e.At))
	}
	for i, part := range parts {
		parts[i] = url.PathEscape(part) // a bar in an identifier must not look like the next part
	}
	return strings.Join(parts, "|")
}

// eventSpace sets our event ids apart from other UUIDs made of the same text.
var eventSpace = uuid.MustParse("6f0b6a52-6d0c-4f3e-9c55-1f7a3f0e8d21")

// ID is the event's UUID, made from Key (RFC 9562, version 8, over SHA-256): a repeat has the same one.
func (e Event) ID() string { return e.IDOf(e.Addition) }

// IDOf is the ID of the event that brings an addition to this one's reading by itself.
func (e Event) IDOf(addition string) string {
	key := e.Key()
	if addition != "" {
		key += "|+" + addition
	}
	return uuid.NewHash(sha256.New(), eventSpace, []byte(key), 8).String()
}

// BodyID names an event by its bytes, for those whose own key cannot be trusted.
func BodyID(vendor Vendor, body []byte) string {
	if vendor != Contract {
		body = append([]byte(vendor+"|"), body...)
	}
	return uuid.NewHash(sha256.New(), uuid.NameSpaceOID, body, 8).String()
}

// Lengths in characters. Source: docs/decisions/limits.md, "Maximum lengths".
const (
	maxWord        = 100 // event_type, measurement_type, unit
	maxDeviceID    = 128 // device_id, hub_id
	maxPatientID   = 100
	maxDeviceModel = 100
)

// eventBody is an event as the gateway sends it.
type eventBody struct {
	EventType       validate.String             `json:"event_type"`
	DeviceID        validate.String             `json:"device_id"`
	HubID           validate.String             `json:"hub_id"`
	PatientID       validate.String             `json:"patient_id"`
	MeasurementType validate.String             `json:"measurement_type"`
	Values          validate.Field[vitals.Body] `json:"values"`
	Unit            validate.String             `json:"unit"`
	Timestamp       validate.String             `json:"timestamp"`
	LastSeenAt      validate.String             `json:"last_seen_at"`
	DeviceModel     validate.String             `json:"device_model"`
	BatteryLevel    validate.Integer            `json:"battery_level"`
	SignalStrength  validate.Integer            `json:"signal_strength"`
}

// Parse reads a verified body. It answers a parse_error fault for what is not a JSON object and a validation fault
// naming every wrong field as the gateway wrote it ("values.systolic"). An event type we do not know is no error,
// see EventType.Known; nor is a measurement type we do not know, see Event.Unsupported.
func (g Gateway) Parse(raw []byte, now time.Time) (Event, error) {
	var sent eventBody
	if err := validate.DecodeObject(raw, &sent); err != nil {
		return Event{}, err
	}
	c := validate.NewChecks()
	event := Event{
		Vendor: g.vendor, Type: EventType(text(c, "event_type", sent.EventType, true, maxWord)), bodyHash: sha256.Sum256(raw), ReceivedAt: now,
	}
	if event.Type != "" && !event.Type.Known() {
		// What an unknown event holds is not ours to judge, but a hub it names is alive.
		sent.readEnvelope(validate.NewChecks(), &event)
		return event, nil
	}
	sent.readEnvelope(c, &event)
	event.At = c.Instant("timestamp", sent.Timestamp, true)
	c.NotFuture("timestamp", event.At, now, g.MaxFuture)
	event.ahead = event.At.After(now.Add(g.MaxFuture))
	var reading vitals.Reading
	switch event.Type {
	case MeasurementCreated:
		reading = sent.readMeasurement(c, &event)
	case HubOffline:
		event.LastSeenAt = c.Instant("last_seen_at", sent.LastSeenAt, false)
	}
	if err := c.Err(); err != nil {
		event.Implausible = sent.readImplausible(c, event)
		return event, err
	}
	if reading.Kind.Valid() {
		reading.DeviceID, reading.MeasuredAt = event.DeviceID, event.At
		event.Reading = &reading
	}
	return event, nil
}

// readEnvelope fills in what events of any type may carry.
func (b eventBody) readEnvelope(c *validate.Checks, event *Event) {
	must := eventTypes[event.Type]
	event.DeviceID = text(c, "device_id", b.DeviceID, must.device, maxDeviceID)
	event.HubID = text(c, "hub_id", b.HubID, must.hub, maxDeviceID)
	event.PatientID = text(c, "patient_id", b.PatientID, must.patient && event.Vendor == Contract, maxPatientID)
	if b.DeviceModel.Given() { // a label: no reading is refused for what nobody sees in it
		b.DeviceModel = validate.Of(validate.CleanLine(b.DeviceModel.Value))
	}
	event.DeviceModel = text(c, "device_model", b.DeviceModel, false, maxDeviceModel)
	event.BatteryLevel = within(c, "battery_level", b.BatteryLevel, 0, 100)
	event.SignalStrength = within(c, "signal_strength", b.SignalStrength, -150, 0)
}

func text(c *validate.Checks, name string, f validate.String, required bool, max int) string {
	if required {
		return c.Text(name, f, validate.Required(max).Identifier())
	}
	return c.Text(name, f, validate.Optional(max).Identifier())
}

// within returns an optional whole number from low to high, both included.
func within(c *validate.Checks, name string, f validate.Integer, low, high int64) *int64 {
	value := c.Integer(name, f, false)
	if value != nil && (*value < low || *value > high) {
		c.Reject(name, fmt.Sprintf("Must be between %d and %d.", low, high))
		return nil
	}
	return value
}
