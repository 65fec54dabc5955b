package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/input"
)

func (a *api) listDevices(c *call) error {
	q := c.query()
	p := q.paging()
	filter := devices.Filter{
		PatientID: q.patientID(), HubID: q.text("hub_id", 128),
		Status: q.oneOf("status", collections.DeviceInventory, collections.DeviceDiscovered, collections.DeviceAssigned,
			collections.DeviceConnected, collections.DeviceDisconnected, collections.DeviceReplaced, collections.DeviceRetired),
		BatteryState: q.oneOf("battery_state", string(devices.BatteryNormal), string(devices.BatteryLow), string(devices.BatteryCritical)),
	}
	if text := q.text("device_type", 50); text != "" {
		filter.Type, _, _ = devices.ParseType(text) // what is no device type is none that any device has
	}
	if err := q.err(); err != nil {
		return err
	}
	if c.Scope == access.Own {
		filter.HeldBy = &c.Caller.PatientID
	}
	var err error
	if filter.CareTeamOf, err = a.team(c, filter.PatientID); err != nil {
		return err
	}
	page, total, err := devices.List(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableOnly(page)
	views, patients := make([]deviceView, len(page)), map[string]bool{}
	for i, device := range page {
		views[i] = viewDevice(device)
		if patient := device.PatientID(); patient != "" {
			patients[patient] = true
		}
	}
	if len(patients) > 0 {
		if err := c.recordRead(audit.PatientRead, "Device", "", sortedKeys(patients)...); err != nil {
			return err
		}
	}
	return list(c, p, total, views, unreadable)
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

func (a *api) listHubs(c *call) error {
	q := c.query()
	p := q.paging()
	if err := q.err(); err != nil {
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
	views, patients := make([]hubView, len(page)), map[string]bool{}
	for i, hub := range page {
		views[i] = hubView{HubID: hub.HubID, Status: hub.Status, Devices: []hubDevice{}}
		if heard := hub.Heard(); !heard.IsZero() {
			views[i].LastHeartbeatAt = new(input.FormatInstant(heard))
		}
		for _, device := range on[hub.HubID] {
			views[i].Devices = append(views[i].Devices, hubDevice{device.DeviceID(), orNull(device.Type()), device.Status(), orNull(device.PatientID())})
			if patient := device.PatientID(); patient != "" {
				patients[patient] = true
			}
		}
	}
	if len(patients) > 0 {
		if err := c.recordRead(audit.PatientRead, "Hub", "", sortedKeys(patients)...); err != nil {
			return err
		}
	}
	return list(c, p, total, views, 0)
}

func (a *api) listDeviceAlerts(c *call) error {
	q := c.query()
	p := q.paging()
	filter := alertFilter(q, devices.AlertTypes)
	filter.Among, filter.DeviceID = devices.AlertTypes, q.text("device_id", 128)
	if err := q.err(); err != nil {
		return err
	}
	return a.answerAlerts(c, p, filter, false)
}
