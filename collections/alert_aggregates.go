package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Aggregate is the state of an alert that covers several similar events of one device. Its values are JSON by field.
type Aggregate struct {
	Count  int             `json:"count"`
	Latest json.RawMessage `json:"latest"`
	// Notified are the events that clinicians were notified of, latest first.
	Notified []NotifiedValues `json:"told"`
	// Message is the alert's text for the worst event alone.
	Message string `json:"message"`
}

// NotifiedValues are the values of an event in a notification, and the value named in it.
type NotifiedValues struct {
	Values json.RawMessage `json:"values"`
	Value  float64         `json:"value"`
}

// ParseAggregate parses a stored aggregate; "" gives the zero value.
func ParseAggregate(stored string) (g Aggregate, err error) {
	if stored == "" {
		return g, nil
	}
	if err := json.Unmarshal([]byte(stored), &g); err != nil {
		return g, fmt.Errorf("parse alert aggregate: %w", err)
	}
	return g, nil
}

// OpenAggregate decrypts and parses the aggregate stored with an event.
func OpenAggregate(sealed, eventID string) (Aggregate, error) {
	if sealed == "" {
		return Aggregate{}, nil
	}
	plain, err := OpenValue(sealed, GatewayEvents, "gathered", eventID)
	if err != nil {
		return Aggregate{}, err
	}
	return ParseAggregate(plain)
}

// AggregatesOfEvents returns the aggregates stored with events, by event. It omits events without one and unreadable ones.
func AggregatesOfEvents(app core.App, eventIDs ...string) (map[string]Aggregate, error) {
	if len(eventIDs) == 0 {
		return nil, nil
	}
	sealed, err := readMap[string]("read alert aggregates", app.DB().Select("id", "gathered").From(GatewayEvents).
		Where(dbx.And(AnyOf("id", eventIDs), dbx.NewExp("gathered != ''"))))
	found := map[string]Aggregate{}
	for id, text := range sealed {
		if g, err := OpenAggregate(text, id); err == nil {
			found[id] = g
		}
	}
	return found, err
}

// AggregateKey selects similar events: same device, patient, parameter, severity, origin and lateness.
type AggregateKey struct {
	Patient, Device, Type, Parameter, Level, Origin string
	Late                                            bool
	// Closed selects alerts superseded since a time, instead of active ones.
	Closed bool
	Since  time.Time
}

// AlertsToAggregate returns the alerts that may cover another such event, newest first.
func AlertsToAggregate(app core.App, of AggregateKey) ([]*Alert, error) {
	state := `status = 'active'`
	if of.Closed {
		state = `status = 'auto_resolved' AND resolution_reason = 'superseded' AND created_at >= {:since}`
	}
	return listOf[Alert](app, Alerts, dbx.NewExp(`patient = {:patient} AND type = {:type} AND parameter = {:parameter} AND level = {:level} AND origin = {:origin}
		AND late = {:late} AND `+state+` AND EXISTS (SELECT 1 FROM gateway_events g WHERE g.id = quarantine_id AND quarantine_id != ''
			AND g.device_id = {:device} AND g.status IN ('`+EventOpen+`', '`+EventRejected+`'))`, dbx.Params{
		"patient": of.Patient, "type": of.Type, "parameter": of.Parameter, "level": of.Level, "origin": of.Origin, "late": of.Late,
		"device": of.Device, "since": FormatInstant(of.Since),
	}), "id DESC")
}

// SetAggregateAlert stores the alert that covers an event, and the event's patient.
func SetAggregateAlert(tx core.App, eventID, alertID, patientID string) error {
	return update(tx, "set alert of event", GatewayEvents, dbx.Params{"alert": alertID, "patient": patientID}, dbx.HashExp{"id": eventID})
}

// AggregatedEvents returns the undecided events that an alert covers, newest first.
func AggregatedEvents(app core.App, alertID string) ([]string, error) {
	return queryColumn[string](app, "list events of alert", `SELECT id FROM gateway_events WHERE alert = {:alert} AND alert != ''
		AND status IN ('`+EventOpen+`', '`+EventRejected+`') ORDER BY received_at DESC, id DESC`, dbx.Params{"alert": alertID})
}

// ShownEvent is the event that the alert's values come from.
type ShownEvent struct {
	EventID          string
	Values           phi.Text
	Value, Threshold float64
}

// StoreAggregate stores the aggregate, the time of its latest measurement and the common message; shown replaces the displayed event unless
// nil.
func (a *Alert) StoreAggregate(tx core.App, g Aggregate, message phi.Text, measured time.Time, shown *ShownEvent, now time.Time) error {
	raw, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode alert aggregate: %w", err)
	}
	columns := []string{"message", "measured_at", "updated_at"}
	a.Load(map[string]any{"message": message.Reveal(), "measured_at": FormatInstant(measured), "updated_at": FormatInstant(now)})
	if shown != nil {
		if err := update(tx, "clear alert aggregate", GatewayEvents, dbx.Params{"gathered": ""}, dbx.HashExp{"id": a.QuarantineID()}); err != nil {
			return err
		}
		a.Load(map[string]any{
			"reported_values": shown.Values.Reveal(), "quarantine_id": shown.EventID, "value": shown.Value, "threshold": shown.Threshold,
		})
		columns = append(columns, "reported_values", "quarantine_id", "value", "threshold")
	}
	sealed, err := Seal(string(raw), "gateway_events.gathered", a.QuarantineID())
	if err != nil {
		return fmt.Errorf("seal alert aggregate: %w", err)
	}
	if err := update(tx, "store alert aggregate", GatewayEvents, dbx.Params{"gathered": sealed}, dbx.HashExp{"id": a.QuarantineID()}); err != nil {
		return err
	}
	return Update(tx, a.ProxyRecord(), columns...)
}
