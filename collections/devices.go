package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// The values of a device's status.
const (
	DeviceInventory    = "inventory"
	DeviceDiscovered   = "discovered"
	DeviceAssigned     = "assigned"
	DeviceConnected    = "connected"
	DeviceDisconnected = "disconnected"
	DeviceReplaced     = "replaced"
	DeviceRetired      = "retired"
)

// The columns of a device that its events, its assignments and staff write.
const (
	DeviceAssignedAt     = "assigned_at"
	DeviceBatteryAt      = "battery_at"
	DeviceBatteryLevel   = "battery_level"
	DeviceBatteryState   = "battery_state"
	DeviceBatteryTold    = "battery_told"
	DeviceFlagged        = "flagged"
	DeviceFlagReason     = "flag_reason"
	DeviceHub            = "hub_id"
	DeviceKind           = "kind"
	DeviceLastSeenAt     = "last_seen_at"
	DeviceManufacturer   = "manufacturer"
	DeviceModel          = "model"
	DevicePatient        = "patient"
	DeviceSerialNumber   = "serial_number"
	DeviceSetupBy        = "setup_completed_by"
	DeviceSetupAt        = "setup_completed_at"
	DeviceSetupNotes     = "setup_notes"
	DeviceSignalStrength = "signal_strength"
	DeviceStateAt        = "state_at"
	DeviceStatus         = "status"
	DeviceType           = "device_type"
	DeviceUDI            = "udi"
)

// Device is a measuring device, by the identifier the gateway knows it by.
type Device struct{ core.BaseRecordProxy }

// NewDevice returns an unsaved device.
func NewDevice(app core.App, deviceID string, now time.Time) (*Device, error) {
	return fresh[Device](app, Devices, map[string]any{"device_id": deviceID, "created_at": Instant(now)})
}

// FindDevice finds a device by the gateway's identifier.
func FindDevice(app core.App, deviceID string) (*Device, error) {
	return find[Device](app, Devices, dbx.HashExp{"device_id": deviceID})
}

// DeviceFilter narrows a list of devices; zero values do not.
type DeviceFilter struct {
	PatientID, Type, Status, BatteryState, HubID string
	// CareTeamOf keeps the devices of patients whose care team this user (record id) belongs to, and those nobody holds.
	CareTeamOf string
	// HeldBy keeps the devices of one patient, whatever the filter says.
	HeldBy *string
}

func (f DeviceFilter) conditions() Conditions {
	conditions := Conditions{}.Equal("patient", f.PatientID).Equal("device_type", f.Type).Equal("status", f.Status).
		Equal("battery_state", f.BatteryState).Equal("hub_id", f.HubID)
	if f.CareTeamOf != "" {
		conditions = append(conditions, dbx.Or(dbx.HashExp{"patient": ""}, OnCareTeam("patient", f.CareTeamOf)))
	}
	if f.HeldBy != nil {
		conditions = append(conditions, dbx.NewExp("patient = {:held} AND patient != ''", dbx.Params{"held": *f.HeldBy}))
	}
	return conditions
}

// PageOfDevices returns a page of devices by identifier, and how many there are in all.
func PageOfDevices(app core.App, f DeviceFilter, offset, limit int) ([]*Device, int, error) {
	return pageOf[Device](app, Devices, Every(f.conditions()), []string{"device_id"}, offset, limit)
}

// DevicesHeldBy are the devices in a patient's hands.
func DevicesHeldBy(app core.App, patientID string) ([]*Device, error) {
	return listOf[Device](app, Devices, Every(DeviceFilter{HeldBy: &patientID}.conditions()), "device_id")
}

// DevicesOnHubs are the devices on the given hubs.
func DevicesOnHubs(app core.App, hubIDs []string, careTeamOf string) ([]*Device, error) {
	conditions := append(DeviceFilter{CareTeamOf: careTeamOf}.conditions(), AnyOf("hub_id", hubIDs), dbx.NewExp("hub_id != ''"))
	return listOf[Device](app, Devices, Every(conditions), "device_id")
}

// PatientsOnHub are the active patients with a device on a hub.
func PatientsOnHub(app core.App, hubID string) ([]string, error) {
	return queryColumn[string](app, "find patients of a hub", `SELECT DISTINCT d.patient FROM devices d
		JOIN patients p ON p.id = d.patient AND p.active = TRUE AND p.deleted_at = ''
		WHERE d.hub_id = {:hub} AND d.hub_id != '' AND d.patient != '' ORDER BY d.patient`, dbx.Params{"hub": hubID})
}

// Clear forgets what was said of the device in the hands in which it was.
func (d *Device) Clear() {
	for _, column := range []string{
		DevicePatient, DeviceAssignedAt, DeviceBatteryTold, DeviceFlagReason, DeviceSetupAt, DeviceSetupBy, DeviceSetupNotes,
	} {
		d.Set(column, "")
	}
	d.Set(DeviceFlagged, false)
	d.ClockRight()
}

func (d *Device) DeviceID() string         { return d.GetString("device_id") }
func (d *Device) Type() string             { return d.GetString(DeviceType) }
func (d *Device) Kind() string             { return d.GetString(DeviceKind) }
func (d *Device) Model() string            { return d.GetString(DeviceModel) }
func (d *Device) Manufacturer() string     { return d.GetString(DeviceManufacturer) }
func (d *Device) SerialNumber() string     { return d.GetString(DeviceSerialNumber) }
func (d *Device) UDI() string              { return d.GetString(DeviceUDI) }
func (d *Device) Firmware() string         { return d.GetString("firmware_version") }
func (d *Device) FlagReason() string       { return d.GetString(DeviceFlagReason) }
func (d *Device) SignalStrength() *float64 { return Optional(d.ProxyRecord(), DeviceSignalStrength) }
func (d *Device) SetUpAt() time.Time       { return instantOf(d, DeviceSetupAt) }
func (d *Device) Status() string           { return d.GetString(DeviceStatus) }
func (d *Device) PatientID() string        { return d.GetString(DevicePatient) }
func (d *Device) HubID() string            { return d.GetString(DeviceHub) }
func (d *Device) BatteryLevel() *float64   { return Optional(d.ProxyRecord(), DeviceBatteryLevel) }
func (d *Device) BatteryState() string     { return d.GetString(DeviceBatteryState) }
func (d *Device) BatteryTold() string      { return d.GetString(DeviceBatteryTold) }
func (d *Device) Flagged() bool            { return d.GetBool(DeviceFlagged) }
func (d *Device) AssignedAt() time.Time    { return instantOf(d, DeviceAssignedAt) }
func (d *Device) BatteryAt() time.Time     { return instantOf(d, DeviceBatteryAt) }
func (d *Device) LastReadingAt() time.Time { return instantOf(d, "last_reading_at") }
func (d *Device) LastSeenAt() time.Time    { return instantOf(d, DeviceLastSeenAt) }
func (d *Device) StateAt() time.Time       { return instantOf(d, DeviceStateAt) }

// needsCheck says of a row of the devices that somebody has to look at it: its battery's band was not told of or has recovered,
// its hub is new or back, or its clock is wrong and nobody was told or right again. Readings store facts and go on; this finds what they ask for, at once or after a crash.
const needsCheck = `(
	(patient != '' AND ((battery_state = 'low' AND battery_told = '') OR (battery_state = 'critical' AND battery_told != 'critical'))
		AND EXISTS (SELECT 1 FROM patients p WHERE p.id = devices.patient AND p.active = TRUE AND p.deleted_at = ''))
	OR (battery_told != '' AND battery_state = 'normal' AND (battery_level > 30 OR EXISTS (SELECT 1 FROM alerts a
		WHERE a.device_id = devices.device_id AND a.device_id != '' AND a.type = 'device_battery' AND a.status = 'active')))
	OR (hub_id != '' AND last_seen_at != '' AND NOT EXISTS (SELECT 1 FROM hubs h
		WHERE h.hub_id = devices.hub_id AND (h.status = 'online' OR h.state_at >= devices.last_seen_at)))
	OR (clock_wrong_at != '' AND (clock_told_at = '' OR ` + rightAgain + `)))`

// rightAgain: the device has measured at a time after it was found wrong, and its gateway saw it. What the gateway says of a device by itself
// has the gateway's time. Source: docs/decisions/devices.md, "Wrong clock".
const rightAgain = `last_seen_at > clock_wrong_at AND last_reading_at > clock_wrong_at`

// newer: what is told now is not older than what was told last.
const newer = `excluded.last_seen_at != '' AND excluded.last_seen_at >= last_seen_at`

const recordSighting = `INSERT INTO devices (device_id, device_type, kind, model, status, hub_id, signal_strength,
		battery_level, battery_state, battery_at, last_reading_at, last_seen_at, created_at)
	VALUES (?, ?, ?, ?, 'discovered', ?, ?, ?, ?, ?, ?, ?, ?)
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
		flag_reason = CASE WHEN excluded.last_reading_at > ? THEN '' ELSE flag_reason END,
		flagged = CASE WHEN excluded.last_reading_at > ? THEN FALSE ELSE flagged END
	RETURNING ` + needsCheck + ` OR EXISTS (SELECT 1 FROM gateway_events e WHERE e.device_id = ? AND e.device_id != ''
		AND e.received_at > ? AND e.received_at < ? AND e.timestamp = ? AND e.implausible = TRUE)`

// soughtAhead bounds how far ahead a measurement may have lain that is looked for when its time has come.
const soughtAhead = 7 * 24 * time.Hour

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
// changes nothing. check says that the device is one of [DevicesToCheck] now, or said this very time before, when it lay in the future.
func RecordSighting(tx core.App, s Sighting, now time.Time) (check bool, err error) {
	at, seen, charged := Instant(s.ReadAt), "", ""
	if s.ByGateway {
		seen = at
	}
	if s.BatteryLevel != nil {
		charged = at
	}
	fresh, since := Instant(s.FreshAfter), Instant(s.ReadAt.Add(-soughtAhead))
	found, err := WriteReturning(tx, recordSighting,
		s.DeviceID, s.Kind, s.Kind, s.Model, s.HubID, s.Signal, s.BatteryLevel, s.BatteryState, charged, at, seen, Instant(now), // a new row
		fresh, fresh, s.DeviceID, since, at, at)
	return found != 0, wrap(err, "note what a reading says of its device")
}

// DevicesToCheck are the devices that somebody has to look at.
func DevicesToCheck(app core.App) ([]*Device, error) {
	return listOf[Device](app, Devices, dbx.NewExp(needsCheck), "device_id")
}

// The values of a hub's status.
const (
	HubOnline  = "online"
	HubOffline = "offline"
)

// Hub is a row of the hubs, with when it was last heard of: itself, or a device that reported through it.
type Hub struct {
	HubID           string `db:"hub_id"`
	Status          string `db:"status"`
	LastHeartbeatAt string `db:"last_heartbeat_at"`
	StateAt         string `db:"state_at"`
	LastHeardAt     string `db:"heard_at"`
}

func (h Hub) Heard() time.Time      { return ParseInstant(h.LastHeardAt) } // when the hub was last heard of
func (h Hub) StateSince() time.Time { return ParseInstant(h.StateAt) }     // the time of the event that set the status

const selectHubs = `SELECT * FROM (SELECT h.hub_id, h.status, h.last_heartbeat_at, h.state_at, MAX(h.last_event_at,
		COALESCE((SELECT MAX(d.last_seen_at) FROM devices d WHERE d.hub_id = h.hub_id AND d.hub_id != ''), '')) AS heard_at FROM hubs h) `

// FindHub finds a hub; ok is false when there is none.
func FindHub(app core.App, hubID string) (hub Hub, ok bool, err error) {
	err = app.DB().NewQuery(selectHubs + `WHERE hub_id = {:hub}`).Bind(dbx.Params{"hub": hubID}).One(&hub)
	if Missing(err) {
		return hub, false, nil
	}
	return hub, err == nil, wrap(err, "find hub")
}

// SilentHubs are the hubs thought online that sent a heartbeat after watchedSince and nothing since heardBefore.
func SilentHubs(app core.App, watchedSince, heardBefore time.Time) (hubs []Hub, err error) {
	err = app.DB().NewQuery(selectHubs + `WHERE status = 'online' AND last_heartbeat_at > {:watched} AND heard_at < {:heard} ORDER BY hub_id`).
		Bind(dbx.Params{"watched": Instant(watchedSince), "heard": Instant(heardBefore)}).All(&hubs)
	return hubs, wrap(err, "find silent hubs")
}

// PageOfHubs returns a page of hubs by identifier, and how many there are in all.
func PageOfHubs(app core.App, offset, limit int) (page []Hub, total int, err error) {
	if total, err = (Conditions{}).Count(app, Hubs); err != nil {
		return nil, 0, err
	}
	err = app.DB().NewQuery(selectHubs + `ORDER BY hub_id LIMIT +{:limit} OFFSET +{:offset}`).
		Bind(dbx.Params{"limit": limit, "offset": offset}).All(&page)
	return page, total, wrap(err, "list hubs")
}

// StoreHub writes a hub; the times of a stored one only ever move forward.
func StoreHub(tx core.App, hub Hub, now time.Time) error {
	return exec(tx, "store hub", `INSERT INTO hubs (hub_id, status, last_heartbeat_at, last_event_at, state_at, created_at)
			VALUES ({:hub}, {:status}, {:beat}, {:heard}, {:state}, {:now})
		ON CONFLICT (hub_id) DO UPDATE SET status = {:status}, state_at = {:state},
			last_heartbeat_at = MAX(last_heartbeat_at, {:beat}), last_event_at = MAX(last_event_at, {:heard})`, dbx.Params{
		"hub": hub.HubID, "status": hub.Status, "beat": hub.LastHeartbeatAt, "heard": hub.LastHeardAt, "state": hub.StateAt, "now": Instant(now),
	})
}
