package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/routes/web"
)

func (a *api) listDevices(c *web.Call) error {
	q := c.Query()
	p := q.Paging()
	filter := collections.DeviceFilter{
		PatientID: q.PatientID(), HubID: q.Text("hub_id", 128),
		Status: q.OneOf("status", collections.DeviceInventory, collections.DeviceDiscovered, collections.DeviceAssigned,
			collections.DeviceConnected, collections.DeviceDisconnected, collections.DeviceReplaced, collections.DeviceRetired),
		BatteryState: q.OneOf("battery_state", string(devices.BatteryNormal), string(devices.BatteryLow), string(devices.BatteryCritical)),
	}
	if text := q.Text("device_type", 50); text != "" {
		filter.Type, _, _ = devices.ParseType(text) // what is no device type is none that any device has
	}
	if err := q.Err(); err != nil {
		return err
	}
	if c.Scope == access.Own {
		filter.HeldBy = &c.Caller.PatientID
	}
	var err error
	if filter.CareTeamOf, err = a.team(c, filter.PatientID); err != nil {
		return err
	}
	page, total, err := collections.PageOfDevices(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableOnly(page)
	if err := recordShown(c, audit.ResourceDevice, page, (*collections.Device).PatientID); err != nil {
		return err
	}
	return web.List(c, p, total, web.Views(page, viewDevice), unreadable)
}

// hubView is a hub as the contract shows it.
type hubView struct {
	HubID  string `json:"hub_id"`
	Status string `json:"status"`
	// LastHeartbeatAt is when the hub was last heard of: every signed event that names it counts.
	LastHeartbeatAt *string     `json:"last_heartbeat_at"`
	Devices         []hubDevice `json:"devices"`
}

// hubDevice is a device on a hub.
type hubDevice struct {
	DeviceID   string  `json:"device_id"`
	DeviceType *string `json:"device_type"`
	Status     string  `json:"status"`
	PatientID  *string `json:"patient_id"`
}

func (a *api) listHubs(c *web.Call) error {
	q := c.Query()
	p := q.Paging()
	if err := q.Err(); err != nil {
		return err
	}
	page, total, err := collections.PageOfHubs(c.App, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	team, err := a.team(c, "")
	if err != nil {
		return err
	}
	on, err := devices.OnHubs(c.App, page, team)
	if err != nil {
		return err
	}
	views, shown := make([]hubView, len(page)), []*collections.Device{}
	for i, hub := range page {
		views[i] = hubView{HubID: hub.HubID, Status: hub.Status, LastHeartbeatAt: instantOrNull(hub.Heard()), Devices: []hubDevice{}}
		for _, device := range on[hub.HubID] {
			views[i].Devices = append(views[i].Devices, hubDevice{device.DeviceID(), orNull(device.Type()), device.Status(), orNull(device.PatientID())})
			shown = append(shown, device)
		}
	}
	if err := recordShown(c, audit.ResourceHub, shown, (*collections.Device).PatientID); err != nil {
		return err
	}
	return web.List(c, p, total, views, 0)
}

func (a *api) listDeviceAlerts(c *web.Call) error {
	q := c.Query()
	p := q.Paging()
	filter := alertFilter(q, devices.AlertTypes)
	filter.Among, filter.DeviceID = devices.AlertTypes, q.Text("device_id", 128)
	if err := q.Err(); err != nil {
		return err
	}
	return a.answerAlerts(c, p, filter, false)
}
