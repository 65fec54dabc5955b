package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// EventType is the type of an event, in the gateway's words.
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

// requiredIDs are the identifiers that an event must have besides its timestamp. Source: docs/decisions/gateway.md, "`values` shapes", "The
// four other event types" and "Hub heartbeat".
type requiredIDs struct{ device, hub, patient bool }

var eventTypes = map[EventType]requiredIDs{
	MeasurementCreated: {device: true, patient: true},
	DeviceConnected:    {device: true},
	DeviceDisconnected: {device: true},
	DeviceBatteryLow:   {device: true},
	HubOffline:         {hub: true},
	HubHeartbeat:       {hub: true},
}

// IsKnown reports whether the service handles events of this type; others are acknowledged and ignored.
func (t EventType) IsKnown() bool {
	_, ok := eventTypes[t]
	return ok
}

// eventTypeOf returns the type that a word spells, or the word.
func eventTypeOf(word string) EventType {
	for known := range eventTypes {
		if fold(string(known)) == fold(word) {
			return known
		}
	}
	return EventType(word)
}

// Event is one authenticated and checked event. Identifiers are the vendor's own, "" if not sent.
type Event struct {
	Vendor Vendor
	Type   EventType
	// At is the device's time in UTC, in microseconds; zero for an unknown type.
	At                         time.Time
	DeviceID, HubID, PatientID string
	DeviceModel                string
	BatteryLevel               *int64 // percent, 0 to 100
	SignalStrength             *int64 // dBm, -150 to 0
	// LastSeenAt is when an offline hub was last seen; zero if not sent.
	LastSeenAt time.Time
	// MeasurementType is as sent; "" unless a measurement.
	MeasurementType string
	// Reading is nil unless a measurement of a supported kind.
	Reading *vitals.Reading

	// Index distinguishes measurements of one device in the same second, for vendors that send it.
	Index string
	// Part names a value that was sent separately and belongs to the reading with the event's key; "" for a reading.
	Part string
	// Parts names the parts that may be sent separately for a reading of this kind.
	Parts []string

	// ReceivedAt is the time of receipt.
	ReceivedAt time.Time
	// Implausible is a measurement with no error except values out of range or a time in the future, with all its values. The event is
	// rejected, or the values are left out of its reading; the care team is notified in both cases.
	Implausible *Implausible

	// LeftOut are the side values, in the contract's names, that could not be read and are left out of the event or its reading. Source:
	// docs/decisions/gateway.md, "Side values".
	LeftOut []string
	// RejectedValues are the errors, by field, of values that were measured with the reading and rejected without it.
	RejectedValues fault.Fields

	measurement   string // a supported kind, or MeasurementType in lower case
	bodyHash      [sha256.Size]byte
	isFutureClock bool // At is in the future
	isUnknownType bool // a measurement by its values, of an unknown type
}

// IsUnsupported reports whether the event is a measurement without a supported kind, and so without a reading.
func (e Event) IsUnsupported() bool {
	return e.Type == MeasurementCreated && !vitals.Kind(e.measurement).Valid()
}

// Format keeps events out of logs and error texts.
func (Event) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[event]") }

// LogValue keeps events out of structured logs.
func (Event) LogValue() slog.Value { return slog.StringValue("[event]") }

// Key is the permanent identity of an event, for deduplication: device, second and kind for a measurement; type, device or hub and time for
// other known events; a hash of the body for ignored ones. Vendors other than the contract's come first in it, so that keys of two vendors
// never collide. Source: docs/decisions/gateway.md, "Deduplication window versus retries" and "The four other event types".
func (e Event) Key() string {
	parts := []string{string(e.Type)}
	if e.Vendor != Contract {
		parts = []string{string(e.Vendor), string(e.Type)}
	}
	switch {
	case !e.Type.IsKnown() || e.isUnknownType && e.Reading == nil:
		parts = append(parts, hex.EncodeToString(e.bodyHash[:]))
	case e.Type == MeasurementCreated:
		kind := e.measurement
		if e.Reading != nil { // that a person confirmed, of an event without a readable kind
			kind = string(e.Reading.Kind)
		}
		parts = append(parts, e.DeviceID, e.At.Truncate(time.Second).Format(time.RFC3339), kind)
		if e.Index != "" {
			parts = append(parts, e.Index)
		}
	case eventTypes[e.Type].hub:
		parts = append(parts, e.HubID, validate.FormatInstant(e.At))
	default:
		parts = append(parts, e.DeviceID, validate.FormatInstant(e.At))
	}
	for i, part := range parts {
		parts[i] = url.PathEscape(part) // a bar in an identifier must not end the part
	}
	return strings.Join(parts, "|")
}

// eventNamespace separates event ids from other UUIDs of the same text.
var eventNamespace = uuid.MustParse("6f0b6a52-6d0c-4f3e-9c55-1f7a3f0e8d21")

// ID is the event's UUID, made from Key (RFC 9562, version 8, over SHA-256): a repeat has the same one.
func (e Event) ID() string { return e.PartID(e.Part) }

// PartID returns the ID of the event that sends a part of this one's reading separately.
func (e Event) PartID(addition string) string {
	key := e.Key()
	if addition != "" {
		key += "|+" + addition
	}
	return uuid.NewHash(sha256.New(), eventNamespace, []byte(key), 8).String()
}

// BodyID returns an ID made from the body, for events with an untrusted key.
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

// Parse parses an authenticated body. It returns a parse_error fault if it is no JSON object, and a validation fault with every wrong field
// in the gateway's names ("values.systolic"). Unknown event and measurement types are no errors, see EventType.IsKnown and
// Event.IsUnsupported.
func (g ContractAdapter) Parse(raw []byte, now time.Time) (Event, error) {
	var sent eventBody
	if err := validate.DecodeObject(raw, &sent); err != nil {
		return Event{}, err
	}
	sent.useAPINames()
	c := validate.NewChecks()
	event := Event{
		Vendor: g.vendor, Type: eventTypeOf(text(c, "event_type", sent.EventType, true, maxWord)), bodyHash: sha256.Sum256(raw), ReceivedAt: now,
	}
	if event.Type != "" && !event.Type.IsKnown() {
		sent.readUnknown(raw, g.MaxFuture, &event)
		return event, nil
	}
	side := validate.NewChecks()
	sent.readEnvelope(c, side, &event)
	event.At = c.Instant("timestamp", sent.Timestamp, true)
	c.NotFuture("timestamp", event.At, now, g.MaxFuture)
	event.isFutureClock = event.At.After(now.Add(g.MaxFuture))
	var reading vitals.Reading
	switch event.Type {
	case MeasurementCreated:
		if kind, ok := kindOf(strings.ToLower(sent.MeasurementType.Value)); ok && sent.Values.Given() {
			sent.Values = validate.Of(withSpelledSides(kind, sent.Values.Value))
		}
		reading = sent.readMeasurement(c, side, &event)
	case HubOffline:
		event.LastSeenAt = side.Instant("last_seen_at", sent.LastSeenAt, false)
	}
	if c.Err() != nil {
		if event.Type == "" {
			sent.readMeasurement(validate.NewChecks(), validate.NewChecks(), &event)
		}
		event.Implausible = sent.readImplausible(raw, c.Fields, event)
		if found, _ := sent.dangerousForeignValues(raw, side.Fields, event); found != nil && !event.Implausible.IsDangerous() {
			event.Implausible = found
		}
		maps.Copy(c.Fields, side.Fields) // its sender learns of all
		return event, c.Err()
	}
	for _, field := range slices.Sorted(maps.Keys(side.Fields)) {
		event.LeftOut = append(event.LeftOut, strings.TrimPrefix(field, "values."))
	}
	if reading.Kind.Valid() {
		reading.DeviceID, reading.MeasuredAt, reading.WithoutZone = event.DeviceID, event.At, !validate.HasZone(sent.Timestamp.Value)
		event.Reading = &reading
		if found, rejected := sent.dangerousForeignValues(raw, side.Fields, event); found != nil {
			event.Implausible, event.RejectedValues = found, rejected
		}
	} else if event.Type == MeasurementCreated {
		event.Implausible = sent.readImplausible(raw, fault.Fields{"measurement_type": nil}, event)
	}
	return event, nil
}

// readEnvelope reads the members that events of any type may have. Errors of those that the event can do without go to side.
func (b eventBody) readEnvelope(c, side *validate.Checks, event *Event) {
	must := eventTypes[event.Type]
	checksOf := func(identifies bool) *validate.Checks {
		if identifies {
			return c
		}
		return side
	}
	event.DeviceID = text(checksOf(must.device), "device_id", b.DeviceID, must.device, maxDeviceID)
	event.HubID = text(checksOf(must.hub), "hub_id", b.HubID, must.hub, maxDeviceID)
	event.PatientID = text(checksOf(must.patient), "patient_id", b.PatientID, must.patient && event.Vendor == Contract, maxPatientID)
	if b.DeviceModel.Given() {
		b.DeviceModel = validate.Of(validate.CleanLine(b.DeviceModel.Value))
	}
	event.DeviceModel = text(side, "device_model", b.DeviceModel, false, maxDeviceModel)
	event.BatteryLevel = within(side, "battery_level", b.BatteryLevel, 0, 100)
	event.SignalStrength = within(side, "signal_strength", b.SignalStrength, -150, 0)
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
