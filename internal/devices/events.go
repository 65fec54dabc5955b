package devices

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vitals"
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
		if err := checkClock(tx, device, now); err != nil {
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

// Source: docs/decisions/gateway.md, "Hub heartbeat".
const (
	hubSilence   = 15 * time.Minute   // without any word
	hubWatchedOn = 7 * 24 * time.Hour // after the last hub.heartbeat
)

// recordHubAlive notes that a signed event named the hub: it was alive then. One that was offline before is back, and its alerts are
// over.
func recordHubAlive(tx core.App, hubID string, at time.Time, heartbeat bool, now time.Time) error {
	if hubID == "" || at.IsZero() {
		return nil
	}
	hub, known, err := collections.FindHub(tx, hubID)
	if err != nil {
		return err
	}
	back := known && hub.Status == collections.HubOffline && at.After(hub.StateSince())
	if !known || back {
		hub.HubID, hub.Status, hub.StateAt = hubID, collections.HubOnline, collections.Instant(at)
	}
	hub.LastHeardAt = collections.Instant(at)
	if heartbeat {
		hub.LastHeartbeatAt = collections.Instant(at)
	}
	if err := collections.StoreHub(tx, hub, now); err != nil || !back {
		return err
	}
	if err := noteHub(tx, audit.HubOnline, hubID, now); err != nil {
		return err
	}
	return resolveAlerts(tx, hubID, alerts.TypeHubOffline, "", "Hub "+hubID+" is back.", now)
}

// goOffline takes a hub.offline event. One that is older than the hub's state, or than its last word, changes nothing.
func goOffline(tx core.App, event gateway.Event, now time.Time) error {
	hub, known, err := collections.FindHub(tx, event.HubID)
	if err != nil {
		return err
	}
	if known && (event.At.Before(hub.StateSince()) || event.At.Before(hub.Heard())) {
		return nil
	}
	was := hub.Status
	hub.HubID = event.HubID
	if !known || event.LastSeenAt.After(hub.Heard()) {
		hub.LastHeardAt = collections.Instant(event.LastSeenAt)
	}
	return turnOff(tx, hub, was, event.At, now)
}

// turnOff stores the hub as offline since at, and alerts for each patient with a device on it unless that was done when it
// went offline.
func turnOff(tx core.App, hub collections.Hub, was string, at, now time.Time) error {
	hub.Status, hub.StateAt = collections.HubOffline, collections.Instant(at)
	if err := collections.StoreHub(tx, hub, now); err != nil || was == collections.HubOffline {
		return err
	}
	if err := noteHub(tx, audit.HubOffline, hub.HubID, now); err != nil {
		return err
	}
	patients, err := collections.PatientsOnHub(tx, hub.HubID)
	if err != nil {
		return err
	}
	for _, patient := range patients {
		draft := alerts.Draft{
			PatientID: patient, DeviceID: hub.HubID, MeasuredAt: at, Unmeasured: true,
			Finding: alerts.Finding{Type: alerts.TypeHubOffline, Level: alerts.Warning, Message: "Hub " + hub.HubID + " is offline."},
		}
		if _, err := raise(tx, alarm{draft: draft, kind: notifications.DeviceAlertRaised}, now); err != nil {
			return err
		}
	}
	return nil
}

func noteHub(tx core.App, event audit.Event, hubID string, now time.Time) error {
	return audit.Append(tx, audit.Entry{Event: event, Actor: audit.System(), ResourceType: audit.ResourceHub, ResourceID: hubID}, now)
}

// CheckHubs turns the hubs off that have fallen silent. listeningSince is when this service began to listen: before that,
// silence was its own. A hub counts as offline from the end of the time it had, so that an event that comes late from
// after that moment brings it back.
func CheckHubs(app core.App, listeningSince, now time.Time) (silent int, err error) {
	if now.Sub(listeningSince) < hubSilence {
		return 0, nil
	}
	hubs, err := collections.SilentHubs(app, now.Add(-hubWatchedOn), now.Add(-hubSilence))
	if err != nil {
		return 0, err
	}
	for _, found := range hubs {
		err := app.RunInTransaction(func(tx core.App) error {
			hub, known, err := collections.FindHub(tx, found.HubID)
			if err != nil || !known || hub.Status == collections.HubOffline || !hub.Heard().Before(now.Add(-hubSilence)) {
				return err // it spoke in between
			}
			silent++
			return turnOff(tx, hub, hub.Status, hub.Heard().Add(hubSilence), now)
		})
		if err != nil {
			return silent, err
		}
	}
	return silent, nil
}
