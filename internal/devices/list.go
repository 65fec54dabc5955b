package devices

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
)

// Find finds a device, or a not-found fault.
func Find(app core.App, deviceID string) (*collections.Device, error) { return find(app, deviceID) }

// OnHubs returns the devices on the given hubs, by hub.
func OnHubs(app core.App, hubs []collections.Hub, careTeamOf string) (map[string][]*collections.Device, error) {
	on := map[string][]*collections.Device{}
	if len(hubs) == 0 {
		return on, nil
	}
	ids := make([]string, len(hubs))
	for i, hub := range hubs {
		ids[i] = hub.HubID
	}
	found, err := collections.DevicesOnHubs(app, ids, careTeamOf)
	for _, device := range found {
		on[device.HubID()] = append(on[device.HubID()], device)
	}
	return on, err
}

// AlertTypes are the types of alerts about devices and hubs, and about data that did not come.
var AlertTypes = []string{
	alerts.TypeMissedReading, alerts.TypeNoReading24h, alerts.TypeDeviceBattery, alerts.TypeHubOffline, alerts.TypeStaleReading, alerts.TypeDeviceInfo,
}
