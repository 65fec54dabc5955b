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

// See notes what a stored reading says about its device, in one statement of the caller's transaction; a device that nobody
// registered is listed as discovered. attend says that [Engine.Attend] has something to do once the reading is committed.
// What is older than what is known changes nothing.
func See(tx core.App, r vitals.Reading, told Envelope, now time.Time) (attend bool, err error) {
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
	return collections.SeeDevice(tx, seen, now)
}

// Attend does what the stored state of a device asks for: the battery's alerts and orders, the hub that is new or back. It is
// harmless when there is nothing to do.
func (e *Engine) Attend(app core.App, deviceID string, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		device, err := collections.FindDevice(tx, deviceID)
		if collections.Missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := hear(tx, device.HubID(), device.LastSeenAt(), false, now); err != nil {
			return err
		}
		return e.attendBattery(tx, device, now)
	})
}

// AttendDue attends to every device that asks for it: what a crash left behind after a commit.
func (e *Engine) AttendDue(app core.App, now time.Time) (attended int, err error) {
	devices, err := collections.DevicesToAttend(app)
	if err != nil {
		return 0, err
	}
	for _, device := range devices {
		if err := e.Attend(app, device.DeviceID(), now); err != nil {
			return attended, err
		}
		attended++
	}
	return attended, nil
}
