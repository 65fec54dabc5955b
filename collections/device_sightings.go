package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// toAttend says of a row of the devices that somebody has to look at it: its battery's band was not told of or has recovered, or
// its hub is new or back. Readings store facts and go on; this finds what they ask for, at once or after a crash.
const toAttend = `(
	(patient != '' AND ((battery_state = 'low' AND battery_told = '') OR (battery_state = 'critical' AND battery_told != 'critical'))
		AND EXISTS (SELECT 1 FROM patients p WHERE p.id = devices.patient AND p.active = TRUE AND p.deleted_at = ''))
	OR (battery_told != '' AND battery_state = 'normal' AND (battery_level > 30 OR EXISTS (SELECT 1 FROM alerts a
		WHERE a.device_id = devices.device_id AND a.device_id != '' AND a.type = 'device_battery' AND a.status = 'active')))
	OR (hub_id != '' AND last_seen_at != '' AND NOT EXISTS (SELECT 1 FROM hubs h
		WHERE h.hub_id = devices.hub_id AND (h.status = 'online' OR h.state_at >= devices.last_seen_at))))`

// newer: what is told now is not older than what was told last.
const newer = `excluded.last_seen_at != '' AND excluded.last_seen_at >= last_seen_at`

const seeDevice = `INSERT INTO devices (device_id, device_type, kind, model, status, hub_id, signal_strength,
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
	RETURNING ` + toAttend

// Sighting is what a stored reading says about its device. Times are those of the reading.
type Sighting struct {
	DeviceID, Kind, Model, HubID string
	Signal, BatteryLevel         *int64
	BatteryState                 string
	ReadAt                       time.Time
	ByGateway                    bool      // the gateway has just seen the device
	FreshAfter                   time.Time // a reading after that is no silence
}

// RecordSighting stores a sighting, in one statement; a device that nobody registered is listed as discovered. What is older than what is known
// changes nothing. attend says that the device is one of [DevicesToCheck] now.
func RecordSighting(tx core.App, s Sighting, now time.Time) (attend bool, err error) {
	at := Instant(s.ReadAt)
	row := dbx.Params{
		"device": s.DeviceID, "kind": s.Kind, "model": s.Model, "hub": s.HubID, "signal": s.Signal, "level": s.BatteryLevel,
		"band": s.BatteryState, "charged": "", "at": at, "seen": "", "now": Instant(now), "fresh": Instant(s.FreshAfter),
	}
	if s.ByGateway {
		row["seen"] = at
	}
	if s.BatteryLevel != nil {
		row["charged"] = at
	}
	err = tx.NonconcurrentDB().NewQuery(seeDevice).Bind(row).Row(&attend)
	return attend, wrap(err, "note what a reading says of its device")
}

// DevicesToCheck are the devices that somebody has to look at.
func DevicesToCheck(app core.App) ([]*Device, error) {
	return listOf[Device](app, Devices, dbx.NewExp(toAttend), "device_id")
}
