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

// DevicesWhere returns the devices that a condition picks, by identifier.
func DevicesWhere(app core.App, condition string, params dbx.Params) ([]*Device, error) {
	return listOf[Device](app, Devices, dbx.NewExp(condition, params), "device_id")
}

// PageOfDevices returns a page of devices by identifier, and how many there are in all.
func PageOfDevices(app core.App, conditions Conditions, offset, limit int) (page []*Device, total int, err error) {
	records, total, err := conditions.Page(app, Devices, "device_id", offset, limit)
	return allAs[Device](records), total, err
}

func (d *Device) DeviceID() string              { return d.GetString("device_id") }
func (d *Device) Type() string                  { return d.GetString("device_type") }
func (d *Device) Status() string                { return d.GetString("status") }
func (d *Device) PatientID() string             { return d.GetString("patient") }
func (d *Device) HubID() string                 { return d.GetString("hub_id") }
func (d *Device) BatteryLevel() *float64        { return Optional(d.ProxyRecord(), "battery_level") }
func (d *Device) BatteryState() string          { return d.GetString("battery_state") }
func (d *Device) BatteryTold() string           { return d.GetString("battery_told") }
func (d *Device) Flagged() bool                 { return d.GetBool("flagged") }
func (d *Device) AssignedAt() time.Time         { return d.instant("assigned_at") }
func (d *Device) BatteryAt() time.Time          { return d.instant("battery_at") }
func (d *Device) LastReadingAt() time.Time      { return d.instant("last_reading_at") }
func (d *Device) LastSeenAt() time.Time         { return d.instant("last_seen_at") }
func (d *Device) StateAt() time.Time            { return d.instant("state_at") }
func (d *Device) instant(name string) time.Time { return ParseInstant(d.GetString(name)) }
