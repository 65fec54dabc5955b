package devices

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
)

// Filter narrows a list of devices; zero values do not.
type Filter struct {
	PatientID, Type, Status, BatteryState, HubID string
	// CareTeamOf keeps the devices of patients whose care team this user (record id) belongs to, and those nobody holds.
	CareTeamOf string
	// HeldBy keeps the devices of one patient, whatever the filter says.
	HeldBy *string
}

func (f Filter) conditions() collections.Conditions {
	conditions := collections.Conditions{}.Equal("patient", f.PatientID).Equal("device_type", f.Type).Equal("status", f.Status).
		Equal("battery_state", f.BatteryState).Equal("hub_id", f.HubID)
	if f.CareTeamOf != "" {
		conditions = append(conditions, dbx.Or(dbx.HashExp{"patient": ""}, collections.OnCareTeam("patient", f.CareTeamOf)))
	}
	if f.HeldBy != nil {
		conditions = append(conditions, dbx.NewExp("patient = {:held} AND patient != ''", dbx.Params{"held": *f.HeldBy}))
	}
	return conditions
}

// List returns a page of devices by identifier, and how many there are in all.
func List(app core.App, f Filter, offset, limit int) ([]*collections.Device, int, error) {
	return collections.PageOfDevices(app, f.conditions(), offset, limit)
}

// Find finds a device, or a not-found fault.
func Find(app core.App, deviceID string) (*collections.Device, error) { return find(app, deviceID) }

// OnHubs returns the devices on the given hubs, by hub.
func OnHubs(app core.App, hubs []collections.Hub, careTeamOf string) (map[string][]*collections.Device, error) {
	on := map[string][]*collections.Device{}
	if len(hubs) == 0 {
		return on, nil
	}
	ids := make([]any, len(hubs))
	for i, hub := range hubs {
		ids[i] = hub.HubID
	}
	conditions := append(Filter{CareTeamOf: careTeamOf}.conditions(), dbx.In("hub_id", ids...), dbx.NewExp("hub_id != ''"))
	found, _, err := collections.PageOfDevices(app, conditions, 0, -1)
	for _, device := range found {
		on[device.HubID()] = append(on[device.HubID()], device)
	}
	return on, err
}

// AlertTypes are the types of alerts about devices and hubs, and about data that did not come.
var AlertTypes = []string{
	alerts.TypeMissedReading, alerts.TypeNoReading24h, alerts.TypeDeviceBattery, alerts.TypeHubOffline, alerts.TypeStaleReading, alerts.TypeDeviceInfo,
}
