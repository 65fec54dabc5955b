package collections

import (
	"cmp"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Values of a device's status.
const (
	DeviceInventory    = "inventory"
	DeviceDiscovered   = "discovered"
	DeviceAssigned     = "assigned"
	DeviceConnected    = "connected"
	DeviceDisconnected = "disconnected"
	DeviceReplaced     = "replaced"
	DeviceRetired      = "retired"
)

// Columns of a device that events, assignments and staff write.
const (
	DeviceAssignedAt      = "assigned_at"
	DeviceBatteryAt       = "battery_at"
	DeviceBatteryLevel    = "battery_level"
	DeviceBatteryState    = "battery_state"
	DeviceBatteryNotified = "battery_told"
	DeviceFlagged         = "flagged"
	DeviceFlagReason      = "flag_reason"
	DeviceHub             = "hub_id"
	DeviceKind            = "kind"
	DeviceLastSeenAt      = "last_seen_at"
	DeviceManufacturer    = "manufacturer"
	DeviceModel           = "model"
	DevicePatient         = "patient"
	DeviceReportedModel   = "reported_model"
	DeviceSerialNumber    = "serial_number"
	DeviceSetupBy         = "setup_completed_by"
	DeviceSetupAt         = "setup_completed_at"
	DeviceSetupNotes      = "setup_notes"
	DeviceSignalStrength  = "signal_strength"
	DeviceStateAt         = "state_at"
	DeviceStatus          = "status"
	DeviceType            = "device_type"
	DeviceUDI             = "udi"
)

// Device is a measuring device, named by the gateway's identifier.
type Device struct{ core.BaseRecordProxy }

// NewDevice returns an unsaved device.
func NewDevice(app core.App, deviceID string, now time.Time) (*Device, error) {
	return newRecord[Device](app, Devices, map[string]any{"device_id": deviceID, "created_at": FormatInstant(now)})
}

// FindDevice finds a device by the gateway's identifier.
func FindDevice(app core.App, deviceID string) (*Device, error) {
	return find[Device](app, Devices, dbx.HashExp{"device_id": deviceID})
}

// DeviceFilter narrows a list of devices; zero values do not narrow.
type DeviceFilter struct {
	PatientID, Type, Status, BatteryState, HubID string
	// CareTeamOf selects the devices of patients of a user's care teams (record id), and unassigned ones.
	CareTeamOf string
	// AssignedTo selects the devices of one patient; for "" it selects none.
	AssignedTo *string
}

func (f DeviceFilter) conditions() Conditions {
	conditions := Conditions{}.Equal("patient", f.PatientID).Equal("device_type", f.Type).Equal("status", f.Status).
		Equal("battery_state", f.BatteryState).Equal("hub_id", f.HubID)
	if f.CareTeamOf != "" {
		conditions = append(conditions, dbx.Or(dbx.HashExp{"patient": ""}, OnCareTeam("patient", f.CareTeamOf)))
	}
	if f.AssignedTo != nil {
		conditions = append(conditions, dbx.NewExp("patient = {:held} AND patient != ''", dbx.Params{"held": *f.AssignedTo}))
	}
	return conditions
}

// PageOfDevices returns a page of devices by identifier, and the total.
func PageOfDevices(app core.App, f DeviceFilter, offset, limit int) ([]*Device, int, error) {
	return pageOf[Device](app, Devices, AllOf(f.conditions()), []string{"device_id"}, offset, limit)
}

// DevicesOfPatient returns the devices assigned to a patient.
func DevicesOfPatient(app core.App, patientID string) ([]*Device, error) {
	return listOf[Device](app, Devices, AllOf(DeviceFilter{AssignedTo: &patientID}.conditions()), "device_id")
}

// DevicesOnHubs returns the devices on the given hubs.
func DevicesOnHubs(app core.App, hubIDs []string, careTeamOf string) ([]*Device, error) {
	conditions := append(DeviceFilter{CareTeamOf: careTeamOf}.conditions(), AnyOf("hub_id", hubIDs), dbx.NewExp("hub_id != ''"))
	return listOf[Device](app, Devices, AllOf(conditions), "device_id")
}

// PatientsOnHub returns the active patients with a device on a hub who are not on hold.
func PatientsOnHub(app core.App, hubID string, now time.Time) ([]string, error) {
	return queryColumn[string](app, "find patients of a hub", `SELECT DISTINCT d.patient FROM devices d
		JOIN patients p ON p.id = d.patient AND p.active = TRUE AND p.deleted_at = ''
			AND NOT (p.hold_ended_at = '' AND p.hold_until > {:now})
		WHERE d.hub_id = {:hub} AND d.hub_id != '' AND d.patient != '' ORDER BY d.patient`, dbx.Params{"hub": hubID, "now": FormatInstant(now)})
}

// ClearAssignment clears the columns that belong to the device's current assignment.
func (d *Device) ClearAssignment() {
	for _, column := range []string{
		DevicePatient, DeviceAssignedAt, DeviceBatteryNotified, DeviceFlagReason, DeviceSetupAt, DeviceSetupBy, DeviceSetupNotes,
	} {
		d.Set(column, "")
	}
	d.Set(DeviceFlagged, false)
	d.ClearClockFault()
}

func (d *Device) DeviceID() string         { return d.GetString("device_id") }
func (d *Device) Type() string             { return d.GetString(DeviceType) }
func (d *Device) Kind() string             { return d.GetString(DeviceKind) }
func (d *Device) Model() string            { return cmp.Or(d.GetString(DeviceModel), d.ReportedModel()) }
func (d *Device) ReportedModel() string    { return d.GetString(DeviceReportedModel) }
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
func (d *Device) BatteryNotified() string  { return d.GetString(DeviceBatteryNotified) }
func (d *Device) Flagged() bool            { return d.GetBool(DeviceFlagged) }
func (d *Device) AssignedAt() time.Time    { return instantOf(d, DeviceAssignedAt) }
func (d *Device) BatteryAt() time.Time     { return instantOf(d, DeviceBatteryAt) }
func (d *Device) LastReadingAt() time.Time { return instantOf(d, "last_reading_at") }
func (d *Device) LastSeenAt() time.Time    { return instantOf(d, DeviceLastSeenAt) }
func (d *Device) StateAt() time.Time       { return instantOf(d, DeviceStateAt) }

// needsCheck matches devices with pending work: an unreported or recovered battery band, a new or returned hub, or a clock that is
// right again. Readings only store facts; this condition finds the work they cause, at once or after a crash.
const needsCheck = `(
	(patient != '' AND ((battery_state = 'low' AND battery_told = '') OR (battery_state = 'critical' AND battery_told != 'critical'))
		AND EXISTS (SELECT 1 FROM patients p WHERE p.id = devices.patient AND p.active = TRUE AND p.deleted_at = ''))
	OR (battery_told != '' AND battery_state = 'normal' AND (battery_level > 30 OR EXISTS (SELECT 1 FROM alerts a
		WHERE a.device_id = devices.device_id AND a.device_id != '' AND a.type = 'device_battery' AND a.status = 'active')))
	OR (hub_id != '' AND last_seen_at != '' AND NOT EXISTS (SELECT 1 FROM hubs h
		WHERE h.hub_id = devices.hub_id AND (h.status = 'online' OR h.state_at >= devices.last_seen_at)))
	OR (clock_wrong_at != '' AND ` + clockCorrected + `))`

// clockCorrected: the device measured, and its gateway saw it, after the clock fault. The gateway's own events carry the gateway's time.
// Source: docs/decisions/devices.md, "Doubtful time".
const clockCorrected = `last_seen_at > clock_wrong_at AND last_reading_at > clock_wrong_at`

// modelOfDevice is the model of the device d: the one that a person entered, else the one that its events state. Source:
// docs/decisions/devices.md, "Device registry".
const modelOfDevice = `COALESCE(NULLIF(d.model, ''), d.reported_model, '')`

// isNewer: the update is not older than the stored one.
const isNewer = `excluded.last_seen_at != '' AND excluded.last_seen_at >= last_seen_at`

// isNewerImport: a file states it with a reading that is not older than the stored ones, of a device that its gateway never saw.
const isNewerImport = `last_seen_at = '' AND excluded.last_reading_at >= last_reading_at`

const upsertDevice = `INSERT INTO devices (device_id, device_type, kind, reported_model, status, hub_id, signal_strength,
		battery_level, battery_state, battery_at, last_reading_at, last_seen_at, newest_measured_at, clock_proven_at, created_at)
	VALUES (?, ?, ?, ?, 'discovered', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (device_id) DO UPDATE SET
		device_type = CASE device_type WHEN '' THEN excluded.device_type ELSE device_type END,
		kind = CASE kind WHEN '' THEN excluded.kind ELSE kind END,
		reported_model = CASE WHEN excluded.reported_model != '' AND (reported_model = '' OR ` + isNewer + ` OR ` + isNewerImport + `)
			THEN excluded.reported_model ELSE reported_model END,
		hub_id = CASE WHEN excluded.hub_id != '' AND ` + isNewer + ` THEN excluded.hub_id ELSE hub_id END,
		signal_strength = CASE WHEN excluded.signal_strength IS NOT NULL AND ` + isNewer + ` THEN excluded.signal_strength ELSE signal_strength END,
		status = CASE WHEN status IN ('assigned', 'disconnected') AND excluded.last_seen_at != '' AND excluded.last_seen_at >= state_at
			THEN 'connected' ELSE status END,
		state_at = CASE WHEN status IN ('assigned', 'disconnected') THEN MAX(state_at, excluded.last_seen_at) ELSE state_at END,
		battery_level = CASE WHEN excluded.battery_at != '' AND excluded.battery_at >= battery_at THEN excluded.battery_level ELSE battery_level END,
		battery_state = CASE WHEN excluded.battery_at != '' AND excluded.battery_at >= battery_at THEN excluded.battery_state ELSE battery_state END,
		battery_at = MAX(battery_at, excluded.battery_at),
		last_reading_at = MAX(last_reading_at, excluded.last_reading_at),
		last_seen_at = MAX(last_seen_at, excluded.last_seen_at),
		newest_measured_at = MAX(newest_measured_at, excluded.newest_measured_at),
		clock_proven_at = MAX(clock_proven_at, excluded.clock_proven_at),
		flag_reason = CASE WHEN excluded.last_reading_at > ? THEN '' ELSE flag_reason END,
		flagged = CASE WHEN excluded.last_reading_at > ? THEN FALSE ELSE flagged END
	RETURNING ` + needsCheck + ` OR EXISTS (SELECT 1 FROM gateway_events e WHERE e.device_id = ? AND e.device_id != ''
		AND e.status != 'handled' AND e.timestamp >= ? AND e.timestamp < ?)`

// DeviceUpdate is the state of a device that a stored reading reports. Times are those of the reading.
type DeviceUpdate struct {
	DeviceID, Kind, ReportedModel, HubID string
	Signal, BatteryLevel                 *int64
	BatteryState                         string
	ReadAt                               time.Time
	ByGateway                            bool      // the gateway saw the device
	ProvenAt                             time.Time // when the reading proved the device's clock; zero if it did not
	FreshAfter                           time.Time // a later reading ends silence
}

// UpdateDevice stores an update with one statement; an unregistered device is added as discovered. Values older than the stored ones change
// nothing. check reports that the device is now one of [DevicesToCheck], or that an event with this second of its clock is or was in quarantine.
func UpdateDevice(tx core.App, s DeviceUpdate, now time.Time) (check bool, err error) {
	at, seen, charged := FormatInstant(s.ReadAt), "", ""
	if s.ByGateway {
		seen = at
	}
	if s.BatteryLevel != nil {
		charged = at
	}
	fresh, second := FormatInstant(s.FreshAfter), s.ReadAt.Truncate(time.Second)
	found, err := WriteReturning(tx, upsertDevice,
		s.DeviceID, s.Kind, s.Kind, s.ReportedModel, s.HubID, s.Signal, s.BatteryLevel, s.BatteryState, charged, at, seen, seen, FormatInstant(s.ProvenAt), FormatInstant(now), // of a new row
		fresh, fresh, s.DeviceID, FormatInstant(second), FormatInstant(second.Add(time.Second)))
	return found != 0, wrap(err, "update the device of a reading")
}

// DevicesToCheck returns the devices with pending work.
func DevicesToCheck(app core.App) ([]*Device, error) {
	return listOf[Device](app, Devices, dbx.NewExp(needsCheck), "device_id")
}

// AssignedDevice is an assigned device, as the check for silent devices needs it.
type AssignedDevice struct {
	DeviceID      string `db:"device_id"`
	PatientID     string `db:"patient"`
	AssignedAt    string `db:"assigned_at"`
	LastReadingAt string `db:"last_reading_at"`
	Flagged       bool   `db:"flagged"`
	TimeZone      string `db:"time_zone"`
	HoldEnd       string `db:"hold_end"` // of the latest patient hold
	Delivery      string `db:"delivery"`
	LastAlert     string `db:"last_alert"` // its time and record id
	Missed        bool   `db:"missed"`
}

// SilentDevices returns active patients' devices without a reading since a time, and flagged ones.
func SilentDevices(app core.App, since time.Time) ([]AssignedDevice, error) {
	return queryAll[AssignedDevice](app, "list silent devices", `SELECT d.device_id, d.patient, d.assigned_at, d.last_reading_at, d.flagged, p.time_zone,
			COALESCE(NULLIF(p.hold_ended_at, ''), p.hold_until) AS hold_end,
			COALESCE((SELECT estimated_delivery FROM device_orders o WHERE o.device_id = d.device_id AND o.patient = d.patient
				AND o.status != 'cancelled' ORDER BY created_at DESC LIMIT 1), '') AS delivery,
			COALESCE((SELECT MAX(a.created_at || ' ' || a.id) FROM alerts a WHERE a.device_id = d.device_id AND a.device_id != ''
				AND a.type = 'no_reading_24h' AND a.patient = d.patient), '') AS last_alert,
			EXISTS (SELECT 1 FROM alerts a WHERE a.patient = d.patient AND a.acknowledged = FALSE AND a.type = 'missed_reading') AS missed
		FROM devices d JOIN patients p ON p.id = d.patient AND p.active = TRUE AND p.deleted_at = ''
		WHERE d.patient != '' AND (d.flagged = TRUE OR MAX(d.last_reading_at, d.assigned_at) < {:before}) ORDER BY d.device_id`,
		dbx.Params{"before": FormatInstant(since)})
}

// FlagDevice sets a device's flag, unless a reading or another patient came in between; because "" clears it.
func FlagDevice(app core.App, d AssignedDevice, because string) error {
	return update(app, "flag device", Devices, dbx.Params{DeviceFlagged: because != "", DeviceFlagReason: because},
		dbx.HashExp{"device_id": d.DeviceID, "patient": d.PatientID, "last_reading_at": d.LastReadingAt})
}
