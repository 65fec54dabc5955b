package devices

import (
	"time"

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

// RecordSighting notes what a stored reading says about its device, in one statement of the caller's transaction; a device that nobody
// registered is listed as discovered. check says that [Engine.CheckDevice] has something to do once the reading is committed.
// What is older than what is known changes nothing.
func RecordSighting(tx core.App, r vitals.Reading, told Envelope, now time.Time) (check bool, err error) {
	if r.DeviceID == "" {
		return false, nil
	}
	seen := collections.Sighting{
		DeviceID: r.DeviceID, Kind: string(r.Kind), Model: told.Model, HubID: told.HubID, Signal: told.Signal, BatteryLevel: told.BatteryLevel,
		ReadAt: r.MeasuredAt, ByGateway: told.ByGateway, FreshAfter: now.Add(-silenceLimit),
	}
	if told.BatteryLevel != nil {
		seen.BatteryState = string(BandOf(float64(*told.BatteryLevel)))
	}
	return collections.RecordSighting(tx, seen, now)
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

// CheckDueDevices checks every device that asks for it: what a crash left behind after a commit.
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
