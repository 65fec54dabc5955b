package devices

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Handle applies a device or hub event inside the transaction that stores it. The state follows the newest timestamp: an older event
// changes nothing. For measurements see [UpdateDevice]. Source: docs/decisions/gateway.md, "The four other event types".
func (e *Engine) Handle(tx core.App, event gateway.Event, now time.Time) error {
	switch event.Type {
	case gateway.HubHeartbeat:
		return recordHubAlive(tx, event.HubID, event.At, true, now)
	case gateway.HubOffline:
		return handleHubOffline(tx, event, now)
	case gateway.DeviceConnected, gateway.DeviceDisconnected, gateway.DeviceBatteryLow:
		return e.handleDevice(tx, event, now)
	}
	return nil
}

func (e *Engine) handleDevice(tx core.App, event gateway.Event, now time.Time) error {
	device, err := collections.FindDevice(tx, event.DeviceID)
	if collections.IsNotFound(err) {
		if device, err = collections.NewDevice(tx, event.DeviceID, now); err == nil {
			device.Set(collections.DeviceStatus, collections.DeviceDiscovered)
		}
	}
	if err != nil {
		return err
	}
	at := collections.FormatInstant(event.At)
	if !event.At.Before(device.LastSeenAt()) {
		updateDevice(device, event)
		if event.Type != gateway.DeviceDisconnected {
			device.Set(collections.DeviceLastSeenAt, at)
		}
	}
	if status, moved := nextStatus(device, event); moved {
		device.Set(collections.DeviceStatus, status)
		device.Set(collections.DeviceStateAt, at)
	}
	if !event.At.Before(device.BatteryAt()) {
		updateBattery(device, event)
	}
	if err := save(tx, device); err != nil {
		return err
	}
	if err := recordHubAlive(tx, event.HubID, event.At, false, now); err != nil {
		return err
	}
	return e.checkBattery(tx, device, now)
}

// updateDevice copies the device data of the event.
func updateDevice(device *collections.Device, event gateway.Event) {
	if event.HubID != "" {
		device.Set(collections.DeviceHub, event.HubID)
	}
	if event.DeviceModel != "" {
		device.Set(collections.DeviceReportedModel, event.DeviceModel)
	}
	if event.SignalStrength != nil {
		device.Set(collections.DeviceSignalStrength, *event.SignalStrength)
	}
}

// nextStatus returns the device's status after the event. A device out of service stays so.
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

// updateBattery stores the battery level. A battery_low event without a level means low, or still critical.
func updateBattery(device *collections.Device, event gateway.Event) {
	switch {
	case event.BatteryLevel != nil:
		device.Set(collections.DeviceBatteryLevel, *event.BatteryLevel)
		device.Set(collections.DeviceBatteryState, string(BatteryBandFor(float64(*event.BatteryLevel))))
	case event.Type != gateway.DeviceBatteryLow:
		return
	default:
		device.Set(collections.DeviceBatteryLevel, nil)
		if device.BatteryState() != string(BatteryCritical) {
			device.Set(collections.DeviceBatteryState, string(BatteryLow))
		}
	}
	device.Set(collections.DeviceBatteryAt, collections.FormatInstant(event.At))
}

// GatewayReport is the device data that the gateway sends with a measurement. The zero value is for readings from other sources.
type GatewayReport struct {
	ByGateway            bool
	HubID, Model         string
	BatteryLevel, Signal *int64 // percent; dBm
	// ReceivedAt is when an event with the device's own time arrived; zero for a time from elsewhere.
	ReceivedAt time.Time
}

// NewGatewayReport returns the report of an event.
func NewGatewayReport(event gateway.Event) GatewayReport {
	return GatewayReport{
		ByGateway: true, HubID: event.HubID, Model: event.DeviceModel, BatteryLevel: event.BatteryLevel, Signal: event.SignalStrength,
	}
}

// RecordSighting updates the registry from a stored reading, in one statement of the caller's transaction; an unregistered device is listed
// as discovered. check requests [Engine.CheckDevice] after the commit. Older data changes nothing.
func RecordSighting(tx core.App, r vitals.Reading, report GatewayReport, now time.Time) (check bool, err error) {
	if r.DeviceID == "" {
		return false, nil
	}
	seen := collections.DeviceUpdate{
		DeviceID: r.DeviceID, Kind: string(r.Kind), ReportedModel: report.Model, HubID: report.HubID, Signal: report.Signal, BatteryLevel: report.BatteryLevel,
		ReadAt: r.MeasuredAt, ByGateway: report.ByGateway, FreshAfter: now.Add(-silenceLimit),
	}
	if received := report.ReceivedAt; !received.IsZero() && ProvesClock(r.MeasuredAt, received) {
		seen.ProvenAt = received
	}
	if report.BatteryLevel != nil {
		seen.BatteryState = string(BatteryBandFor(float64(*report.BatteryLevel)))
	}
	return collections.UpdateDevice(tx, seen, now)
}

// CheckDevice applies the stored state of a device: battery alerts and orders, clock alerts, and a hub that is new or back. It may run at
// any time.
func (e *Engine) CheckDevice(app core.App, deviceID string, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		device, err := collections.FindDevice(tx, deviceID)
		if collections.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := recordHubAlive(tx, device.HubID(), device.LastSeenAt(), false, now); err != nil {
			return err
		}
		if err := checkClock(tx, device, now); err != nil {
			return err
		}
		return e.checkBattery(tx, device, now)
	})
}

// CheckDueDevices runs the checks that a crash prevented after a commit.
func (e *Engine) CheckDueDevices(app core.App, now time.Time) (checked int, err error) {
	devices, err := collections.DevicesToCheck(app)
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
