package devices

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Envelope is what the gateway tells of a device along with a measurement. The zero value tells nothing: the reading came
// another way.
type Envelope struct {
	ByGateway            bool
	HubID, Model         string
	BatteryLevel, Signal *int64 // percent; dBm
}

// EnvelopeOf is the envelope of an event.
func EnvelopeOf(event gateway.Event) Envelope {
	return Envelope{
		ByGateway: true, HubID: event.HubID, Model: event.DeviceModel, BatteryLevel: event.BatteryLevel, Signal: event.SignalStrength,
	}
}

// due says of a row of the devices that somebody has to look at it: its battery's band was not told of or has recovered, or
// its hub is new or back. Readings store facts and go on; this finds what they ask for, at once or after a crash.
const due = `(
	(patient != '' AND ((battery_state = 'low' AND battery_told = '') OR (battery_state = 'critical' AND battery_told != 'critical'))
		AND EXISTS (SELECT 1 FROM patients p WHERE p.id = devices.patient AND p.active = TRUE AND p.deleted_at = ''))
	OR (battery_told != '' AND battery_state = 'normal' AND (battery_level > 30 OR EXISTS (SELECT 1 FROM alerts a
		WHERE a.device_id = devices.device_id AND a.device_id != '' AND a.type = 'device_battery' AND a.status = 'active')))
	OR (hub_id != '' AND last_seen_at != '' AND NOT EXISTS (SELECT 1 FROM hubs h
		WHERE h.hub_id = devices.hub_id AND (h.status = 'online' OR h.state_at >= devices.last_seen_at))))`

// newer: what is told now is not older than what was told last.
const newer = `excluded.last_seen_at != '' AND excluded.last_seen_at >= last_seen_at`

const sighting = `INSERT INTO devices (device_id, device_type, kind, model, status, hub_id, signal_strength,
		battery_level, battery_state, battery_at, last_reading_at, last_seen_at, created_at)
	VALUES ({:device}, {:kind}, {:kind}, {:model}, 'discovered', {:hub}, {:signal}, {:level}, {:band}, {:charged}, {:at}, {:seen}, {:now})
	ON CONFLICT (device_id) DO UPDATE SET
		device_type = CASE device_type WHEN '' THEN excluded.device_type ELSE device_type END,
		kind = CASE kind WHEN '' THEN excluded.kind ELSE kind END,
		model = CASE WHEN excluded.model != '' AND ` + newer + ` THEN excluded.model ELSE model END,
		hub_id = CASE WHEN excluded.hub_id != '' AND ` + newer + ` THEN excluded.hub_id ELSE hub_id END,
		signal_strength = CASE WHEN excluded.signal_strength IS NOT NULL AND ` + newer + ` THEN excluded.signal_strength ELSE signal_strength END,
		status = CASE WHEN status IN ('assigned', 'disconnected') AND excluded.last_seen_at != '' AND excluded.last_seen_at >= state_at
			THEN 'connected' ELSE status END,
		state_at = CASE WHEN status IN ('assigned', 'disconnected') THEN MAX(state_at, excluded.last_seen_at) ELSE state_at END,
		battery_level = CASE WHEN excluded.battery_at != '' AND excluded.battery_at >= battery_at THEN excluded.battery_level ELSE battery_level END,
		battery_state = CASE WHEN excluded.battery_at != '' AND excluded.battery_at >= battery_at THEN excluded.battery_state ELSE battery_state END,
		battery_at = MAX(battery_at, excluded.battery_at),
		last_reading_at = MAX(last_reading_at, excluded.last_reading_at),
		last_seen_at = MAX(last_seen_at, excluded.last_seen_at),
		flag_reason = CASE WHEN excluded.last_reading_at > {:fresh} THEN '' ELSE flag_reason END,
		flagged = CASE WHEN excluded.last_reading_at > {:fresh} THEN FALSE ELSE flagged END
	RETURNING ` + due

// RecordSighting notes what a stored reading says about its device, in one statement of the caller's transaction; a device that nobody
// registered is listed as discovered. check says that [Engine.CheckDevice] has something to do once the reading is committed.
// What is older than what is known changes nothing.
func RecordSighting(tx core.App, r vitals.Reading, told Envelope, now time.Time) (check bool, err error) {
	if r.DeviceID == "" {
		return false, nil
	}
	at := collections.Instant(r.MeasuredAt)
	row := dbx.Params{
		"device": r.DeviceID, "kind": string(r.Kind), "model": told.Model, "hub": told.HubID, "signal": told.Signal,
		"level": told.BatteryLevel, "band": "", "charged": "", "at": at, "seen": "", "now": collections.Instant(now),
		"fresh": collections.Instant(now.Add(-silenceLimit)),
	}
	if told.ByGateway {
		row["seen"] = at
	}
	if told.BatteryLevel != nil {
		row["band"], row["charged"] = string(BandOf(float64(*told.BatteryLevel))), at
	}
	if err := tx.NonconcurrentDB().NewQuery(sighting).Bind(row).Row(&check); err != nil {
		return false, fmt.Errorf("note what a reading says of its device: %w", err)
	}
	return check, nil
}

// CheckDevice does what the stored state of a device asks for: the battery's alerts and orders, the hub that is new or back. It is
// harmless when there is nothing to do.
func (e *Engine) CheckDevice(app core.App, deviceID string, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		device, err := collections.FindDevice(tx, deviceID)
		if collections.Missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := recordHubAlive(tx, device.HubID(), device.LastSeenAt(), false, now); err != nil {
			return err
		}
		return e.checkBattery(tx, device, now)
	})
}

// CheckDueDevices does so for every device that asks for it: what a crash left behind after a commit.
func (e *Engine) CheckDueDevices(app core.App, now time.Time) (checked int, err error) {
	devices, err := collections.DevicesWhere(app, due, nil)
	if err != nil {
		return 0, err
	}
	for _, device := range devices {
		if err := e.CheckDevice(app, device.DeviceID(), now); err != nil {
			return checked, err
		}
		checked++
	}
	return checked, nil
}
