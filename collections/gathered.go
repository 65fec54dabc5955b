package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Gathering is what an alert says of several events of one device that are alike. Its values are JSON by field.
type Gathering struct {
	Count  int             `json:"count"`
	Latest json.RawMessage `json:"latest"`
	// Told are those by which people were told, the last first.
	Told []ToldValues `json:"told"`
	// Message is what the alert says of the worst event by itself.
	Message string `json:"message"`
}

// ToldValues are what people were told of one event, and the value that was named.
type ToldValues struct {
	Values json.RawMessage `json:"values"`
	Value  float64         `json:"value"`
}

// ReadGathering reads a stored one; the zero value where there is none.
func ReadGathering(stored string) (g Gathering, err error) {
	if stored == "" {
		return g, nil
	}
	if err := json.Unmarshal([]byte(stored), &g); err != nil {
		return g, fmt.Errorf("read what an alert gathers: %w", err)
	}
	return g, nil
}

// OpenGathering opens and reads the one that stands with an event.
func OpenGathering(sealed, eventID string) (Gathering, error) {
	if sealed == "" {
		return Gathering{}, nil
	}
	plain, err := OpenValue(sealed, GatewayEvents, "gathered", eventID)
	if err != nil {
		return Gathering{}, err
	}
	return ReadGathering(plain)
}

// GatheringsOf are those that stand with events, by event; those of one event alone, and those that cannot be opened, are left out.
func GatheringsOf(app core.App, eventIDs ...string) (map[string]Gathering, error) {
	if len(eventIDs) == 0 {
		return nil, nil
	}
	sealed, err := readMap[string]("read what alerts gather", app.DB().Select("id", "gathered").From(GatewayEvents).
		Where(dbx.And(AnyOf("id", eventIDs), dbx.NewExp("gathered != ''"))))
	found := map[string]Gathering{}
	for id, text := range sealed {
		if g, err := OpenGathering(text, id); err == nil {
			found[id] = g
		}
	}
	return found, err
}

// ReportedBy says which events are alike: of one device and patient, about one parameter, as severe, as reliable and as old.
type ReportedBy struct {
	Patient, Device, Type, Parameter, Level, Origin string
	Late                                            bool
	// Over: alerts that something newer has ended since a time, instead of those that wait.
	Over  bool
	Since time.Time
}

// GatheringAlerts are the alerts that may gather one more event like theirs, the newest first.
func GatheringAlerts(app core.App, of ReportedBy) ([]*Alert, error) {
	state := `status = 'active'`
	if of.Over {
		state = `status = 'auto_resolved' AND resolution_reason = 'superseded' AND created_at >= {:since}`
	}
	return listOf[Alert](app, Alerts, dbx.NewExp(`patient = {:patient} AND type = {:type} AND parameter = {:parameter} AND level = {:level} AND origin = {:origin}
		AND late = {:late} AND `+state+` AND EXISTS (SELECT 1 FROM gateway_events g WHERE g.id = quarantine_id AND quarantine_id != ''
			AND g.device_id = {:device} AND g.status IN ('`+EventOpen+`', '`+EventRejected+`'))`, dbx.Params{
		"patient": of.Patient, "type": of.Type, "parameter": of.Parameter, "level": of.Level, "origin": of.Origin, "late": of.Late,
		"device": of.Device, "since": Instant(of.Since),
	}), "id DESC")
}

// NoteGathered says which alert gathers an event, and whose it is.
func NoteGathered(tx core.App, eventID, alertID, patientID string) error {
	return update(tx, "note what gathers an event", GatewayEvents, dbx.Params{"alert": alertID, "patient": patientID}, dbx.HashExp{"id": eventID})
}

// GatheredEvents are the events that an alert gathers and that somebody may still decide about, the newest first.
func GatheredEvents(app core.App, alertID string) ([]string, error) {
	return queryColumn[string](app, "list what an alert gathers", `SELECT id FROM gateway_events WHERE alert = {:alert} AND alert != ''
		AND status IN ('`+EventOpen+`', '`+EventRejected+`') ORDER BY received_at DESC, id DESC`, dbx.Params{"alert": alertID})
}

// Shown is the event by which an alert shows what it gathers.
type Shown struct {
	EventID          string
	Values           phi.Text
	Value, Threshold float64
}

// Gather stores what an alert gathers, when the latest of it was measured, the message about all, and what it shows unless that stays.
func (a *Alert) Gather(tx core.App, g Gathering, message phi.Text, measured time.Time, shown *Shown, now time.Time) error {
	raw, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode what an alert gathers: %w", err)
	}
	columns := []string{"message", "measured_at", "updated_at"}
	a.Load(map[string]any{"message": message.Reveal(), "measured_at": Instant(measured), "updated_at": Instant(now)})
	if shown != nil {
		if err := update(tx, "clear what an alert gathers", GatewayEvents, dbx.Params{"gathered": ""}, dbx.HashExp{"id": a.QuarantineID()}); err != nil {
			return err
		}
		a.Load(map[string]any{
			"reported_values": shown.Values.Reveal(), "quarantine_id": shown.EventID, "value": shown.Value, "threshold": shown.Threshold,
		})
		columns = append(columns, "reported_values", "quarantine_id", "value", "threshold")
	}
	sealed, err := Seal(string(raw), "gateway_events.gathered", a.QuarantineID())
	if err != nil {
		return fmt.Errorf("seal what an alert gathers: %w", err)
	}
	if err := update(tx, "store what an alert gathers", GatewayEvents, dbx.Params{"gathered": sealed}, dbx.HashExp{"id": a.QuarantineID()}); err != nil {
		return err
	}
	return Update(tx, a.ProxyRecord(), columns...)
}
