package devices

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/gateway"
)

// Handle does what an event of a device or hub means, inside the transaction that stores the event. State follows the
// newest timestamp: an older event is stored and changes nothing. Measurements are no such events, see [RecordSighting].
// Source: docs/decisions/gateway.md, "The four other event types".
func (e *Engine) Handle(tx core.App, event gateway.Event, now time.Time) error {
	switch event.Type {
	case gateway.HubHeartbeat:
		return recordHubAlive(tx, event.HubID, event.At, true, now)
	case gateway.HubOffline:
		return goOffline(tx, event, now)
	case gateway.DeviceConnected, gateway.DeviceDisconnected, gateway.DeviceBatteryLow:
		return e.handleDevice(tx, event, now)
	}
	return nil
}

// RecordHub notes the hub that an event names which became no observation: every signed event that names a hub shows that it is
// alive, unless it says that it is not. An event without a time of its own counts from its arrival, and none from the future.
func RecordHub(tx core.App, event gateway.Event, now time.Time) error {
	if event.Type == gateway.HubOffline {
		return nil
	}
	at := event.At
	if at.IsZero() || at.After(now) {
		at = now
	}
	return recordHubAlive(tx, event.HubID, at, false, now)
}

func (e *Engine) handleDevice(tx core.App, event gateway.Event, now time.Time) error {
	device, err := collections.FindDevice(tx, event.DeviceID)
	if collections.Missing(err) {
		if device, err = collections.NewDevice(tx, event.DeviceID, now); err == nil {
			device.Set(collections.DeviceStatus, collections.DeviceDiscovered)
		}
	}
	if err != nil {
		return err
	}
	at := collections.Instant(event.At)
	if !event.At.Before(device.LastSeenAt()) {
		tell(device, event)
		if event.Type != gateway.DeviceDisconnected {
			device.Set(collections.DeviceLastSeenAt, at)
		}
	}
	if status, moved := nextStatus(device, event); moved {
		device.Set(collections.DeviceStatus, status)
		device.Set(collections.DeviceStateAt, at)
	}
	if !event.At.Before(device.BatteryAt()) {
		charge(device, event)
	}
	if err := save(tx, device); err != nil {
		return err
	}
	if err := recordHubAlive(tx, event.HubID, event.At, false, now); err != nil {
		return err
	}
	return e.checkBattery(tx, device, now)
}

// tell takes over what the event says about the device.
func tell(device *collections.Device, event gateway.Event) {
	if event.HubID != "" {
		device.Set(collections.DeviceHub, event.HubID)
	}
	if event.DeviceModel != "" {
		device.Set(collections.DeviceModel, event.DeviceModel)
	}
	if event.SignalStrength != nil {
		device.Set(collections.DeviceSignalStrength, *event.SignalStrength)
	}
}

// nextStatus is where the event takes the device, registered or not. One that is out of service stays so.
func nextStatus(device *collections.Device, event gateway.Event) (status string, moved bool) {
	if event.Type == gateway.DeviceBatteryLow || event.At.Before(device.StateAt()) {
		return "", false
	}
	switch device.Status() {
	case collections.DeviceReplaced, collections.DeviceRetired:
		return device.Status(), true
	}
	if event.Type == gateway.DeviceConnected {
		return collections.DeviceConnected, true
	}
	return collections.DeviceDisconnected, true
}

// charge takes over the battery's level. A battery_low event without one means low, or still critical.
func charge(device *collections.Device, event gateway.Event) {
	switch {
	case event.BatteryLevel != nil:
		device.Set(collections.DeviceBatteryLevel, *event.BatteryLevel)
		device.Set(collections.DeviceBatteryState, string(BandOf(float64(*event.BatteryLevel))))
	case event.Type != gateway.DeviceBatteryLow:
		return
	default:
		device.Set(collections.DeviceBatteryLevel, nil)
		if device.BatteryState() != string(BatteryCritical) {
			device.Set(collections.DeviceBatteryState, string(BatteryLow))
		}
	}
	device.Set(collections.DeviceBatteryAt, collections.Instant(event.At))
}
