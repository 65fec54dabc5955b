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
	DeviceModel          = "model"
	DevicePatient        = "patient"
	DeviceSetupBy        = "setup_completed_by"
	DeviceSetupAt        = "setup_completed_at"
	DeviceSetupNotes     = "setup_notes"
	DeviceSignalStrength = "signal_strength"
	DeviceStateAt        = "state_at"
	DeviceStatus         = "status"
	DeviceType           = "device_type"
)

// Device is a measuring device, by the identifier the gateway knows it by.
type Device struct{ core.BaseRecordProxy }

// NewDevice returns an unsaved device.
func NewDevice(app core.App, deviceID string, now time.Time) (*Device, error) {
	record, err := New(app, Devices)
	if err != nil {
		return nil, err
	}
	record.Set("device_id", deviceID)
	record.Set("created_at", Instant(now))
	d := &Device{}
	d.SetProxyRecord(record)
	return d, nil
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
	conditions := append(DeviceFilter{CareTeamOf: careTeamOf}.conditions(), oneOf("hub_id", hubIDs), dbx.NewExp("hub_id != ''"))
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
}

func (d *Device) DeviceID() string              { return d.GetString("device_id") }
func (d *Device) Type() string                  { return d.GetString(DeviceType) }
func (d *Device) Kind() string                  { return d.GetString(DeviceKind) }
func (d *Device) Model() string                 { return d.GetString(DeviceModel) }
func (d *Device) Firmware() string              { return d.GetString("firmware_version") }
func (d *Device) FlagReason() string            { return d.GetString(DeviceFlagReason) }
func (d *Device) SignalStrength() *float64      { return Optional(d.ProxyRecord(), DeviceSignalStrength) }
func (d *Device) SetUpAt() time.Time            { return d.instant(DeviceSetupAt) }
func (d *Device) Status() string                { return d.GetString(DeviceStatus) }
func (d *Device) PatientID() string             { return d.GetString(DevicePatient) }
func (d *Device) HubID() string                 { return d.GetString(DeviceHub) }
func (d *Device) BatteryLevel() *float64        { return Optional(d.ProxyRecord(), DeviceBatteryLevel) }
func (d *Device) BatteryState() string          { return d.GetString(DeviceBatteryState) }
func (d *Device) BatteryTold() string           { return d.GetString(DeviceBatteryTold) }
func (d *Device) Flagged() bool                 { return d.GetBool(DeviceFlagged) }
func (d *Device) AssignedAt() time.Time         { return d.instant(DeviceAssignedAt) }
func (d *Device) BatteryAt() time.Time          { return d.instant(DeviceBatteryAt) }
func (d *Device) LastReadingAt() time.Time      { return d.instant("last_reading_at") }
func (d *Device) LastSeenAt() time.Time         { return d.instant(DeviceLastSeenAt) }
func (d *Device) StateAt() time.Time            { return d.instant(DeviceStateAt) }
func (d *Device) instant(name string) time.Time { return ParseInstant(d.GetString(name)) }
