package routes

import (
	"maps"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

type deviceView struct {
	DeviceID         string   `json:"device_id"`
	DeviceType       *string  `json:"device_type"`
	Manufacturer     *string  `json:"manufacturer"`
	Model            *string  `json:"model"`
	ReportedModel    *string  `json:"reported_model"`
	SerialNumber     *string  `json:"serial_number"`
	UDI              *string  `json:"udi"`
	Status           string   `json:"status"`
	PatientID        *string  `json:"patient_id"`
	AssignedAt       *string  `json:"assigned_at"`
	HubID            *string  `json:"hub_id"`
	BatteryLevel     *float64 `json:"battery_level"`
	BatteryState     *string  `json:"battery_state"`
	SignalStrength   *float64 `json:"signal_strength"`
	LastReadingAt    *string  `json:"last_reading_at"`
	LastSeenAt       *string  `json:"last_seen_at"`
	FirmwareVersion  *string  `json:"firmware_version"`
	SetupCompletedAt *string  `json:"setup_completed_at"`
	Flagged          bool     `json:"flagged"`
	FlagReason       *string  `json:"flag_reason"`
}

func viewDevice(device *collections.Device) deviceView {
	view := deviceView{
		DeviceID: device.DeviceID(), DeviceType: orNull(device.Type()), Manufacturer: orNull(device.Manufacturer()),
		Model: orNull(device.Model()), ReportedModel: orNull(device.ReportedModel()), SerialNumber: orNull(device.SerialNumber()),
		UDI: orNull(device.UDI()), Status: device.Status(),
		PatientID: orNull(device.PatientID()), AssignedAt: instantOrNull(device.AssignedAt()), HubID: orNull(device.HubID()),
		BatteryLevel: device.BatteryLevel(), BatteryState: orNull(device.BatteryState()), SignalStrength: device.SignalStrength(),
		LastReadingAt: instantOrNull(device.LastReadingAt()), LastSeenAt: instantOrNull(device.LastSeenAt()),
		FirmwareVersion: orNull(device.Firmware()), SetupCompletedAt: instantOrNull(device.SetUpAt()),
	}
	if device.Flagged() && device.PatientID() != "" {
		view.Flagged, view.FlagReason = true, orNull(device.FlagReason())
	}
	return view
}

// assignmentView is one assignment of a device to a patient.
type assignmentView struct {
	PatientID string  `json:"patient_id"`
	From      *string `json:"from"`
	To        *string `json:"to"`
}

// deviceDetail is a single device with its assignment history.
type deviceDetail struct {
	deviceView
	Assignments []assignmentView `json:"assignments"`
}

// assigningView is the answer to assigning a device.
type assigningView struct {
	Status            string  `json:"status"`
	EstimatedDelivery *string `json:"estimated_delivery"`
	DeviceID          string  `json:"device_id"`
	PatientID         string  `json:"patient_id"`
	DeviceType        string  `json:"device_type"`
	AssignedAt        *string `json:"assigned_at"`
	Manufacturer      *string `json:"manufacturer"`
	Model             *string `json:"model"`
	SerialNumber      *string `json:"serial_number"`
	UDI               *string `json:"udi"`
}

func (a *api) assignDevice(c *web.Call) error {
	assignment, err := web.Read(c, func(body devices.AssignBody, checks *validate.Checks) devices.Assignment {
		return body.Read(checks, c.Now)
	})
	if err != nil {
		return err
	}
	if _, err := collections.FindPatient(c.App, assignment.PatientID); err != nil {
		return fault.OrMissing(err)
	}
	if err := a.authorizePatient(c, assignment.PatientID); err != nil {
		return err
	}
	assigned, err := a.Devices.Assign(c.App, assignment, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	device := assigned.Device
	return c.OK(assigningView{
		Status: "assigned", EstimatedDelivery: orNull(assigned.Delivery), DeviceID: device.DeviceID(), PatientID: device.PatientID(),
		DeviceType: device.Type(), AssignedAt: instantOrNull(device.AssignedAt()), Manufacturer: orNull(device.Manufacturer()),
		Model: orNull(device.Model()), SerialNumber: orNull(device.SerialNumber()), UDI: orNull(device.UDI()),
	})
}

func (a *api) registerDevice(c *web.Call) error {
	return create(c, fromBody(devices.RegisterBody.Read), devices.Register, web.RespondWith(c.Created, viewDevice))
}

// device finds the device of the path and checks that the caller may see it; a portal user sees devices of their own
// patient only.
func (a *api) device(c *web.Call) (*collections.Device, error) {
	device, err := devices.Find(c.App, c.Request.PathValue("device_id"))
	if err != nil {
		return nil, err
	}
	holder := device.PatientID()
	if c.Reach == authz.Own && (holder == "" || holder != c.Caller.PatientID) {
		return nil, fault.Missing()
	}
	if holder == "" {
		return device, nil
	}
	return device, a.authorizePatient(c, holder)
}

func (a *api) readDevice(c *web.Call, device *collections.Device) error {
	history, err := collections.AssignmentsOf(c.App, device.DeviceID())
	if err != nil {
		return err
	}
	detail := deviceDetail{viewDevice(device), []assignmentView{}}
	for _, held := range history {
		patient := held.PatientID()
		if visible, err := a.canSeeHolder(c, patient); err != nil {
			return err
		} else if !visible {
			continue
		}
		detail.Assignments = append(detail.Assignments, assignmentView{patient, instantOrNull(held.From()), instantOrNull(held.To())})
	}
	return c.Respond(detail, recordShown(c, audit.ResourceDevice, device.DeviceID(), detail.Assignments, func(v assignmentView) string { return v.PatientID }))
}

// canSeeHolder reports whether the caller may see that a patient held a device.
func (a *api) canSeeHolder(c *web.Call, patientID string) (bool, error) {
	switch {
	case c.Reach == authz.Own:
		return patientID == c.Caller.PatientID, nil
	case a.confinedToTeams(c):
		return patients.IsOnCareTeam(c.App, patientID, c.Caller.RecordID)
	}
	return true, nil
}

func (a *api) unassignDevice(c *web.Call, device *collections.Device) error {
	return change(c, device.DeviceID(), reason, devices.Unassign, web.RespondWith(c.OK, viewDevice))
}

func (a *api) replaceDevice(c *web.Call, device *collections.Device) error {
	read := fromBody(func(body devices.ReplaceBody, checks *validate.Checks) devices.Replacement {
		return body.Read(checks, device.DeviceID())
	})
	return change(c, device.DeviceID(), read, a.Devices.Replace, web.RespondWith(c.OK, viewDevice))
}

func (a *api) completeDeviceSetUp(c *web.Call, device *collections.Device) error {
	done, err := web.ReadOptional(c, func(body devices.SetUpBody, checks *validate.Checks) devices.SetUp { return body.Read(checks, c.Now) })
	if err != nil {
		return err
	}
	return web.RespondWith(c.OK, viewDevice)(devices.CompleteSetUp(c.App, device.DeviceID(), done, c.Actor(), c.Now))
}

func (a *api) listDevices(c *web.Call) (err error) {
	q, p := c.Listing()
	filter := collections.DeviceFilter{
		PatientID: q.PatientID(), HubID: q.Text("hub_id", 128),
		Status: q.OneOf("status", collections.DeviceInventory, collections.DeviceDiscovered, collections.DeviceAssigned,
			collections.DeviceConnected, collections.DeviceDisconnected, collections.DeviceReplaced, collections.DeviceRetired),
		BatteryState: q.OneOf("battery_state", string(devices.BatteryNormal), string(devices.BatteryLow), string(devices.BatteryCritical)),
	}
	if text := q.Text("device_type", 50); text != "" {
		filter.Type, _, _ = devices.ParseType(text) // an unknown type is no device
	}
	if err := q.Err(); err != nil {
		return err
	}
	if c.Reach == authz.Own {
		filter.AssignedTo = &c.Caller.PatientID
	}
	if filter.CareTeamOf, err = a.careTeamFilter(c, filter.PatientID); err != nil {
		return err
	}
	return list(c, p, audit.ResourceDevice, eachWithoutLookup(viewDevice))(collections.PageOfDevices(c.App, filter, p.Offset(), p.Size))
}

type hubView struct {
	HubID  string `json:"hub_id"`
	Status string `json:"status"`
	// LastHeartbeatAt is the time of the last signed event that names the hub.
	LastHeartbeatAt *string     `json:"last_heartbeat_at"`
	Devices         []hubDevice `json:"devices"`
}

type hubDevice struct {
	DeviceID   string  `json:"device_id"`
	DeviceType *string `json:"device_type"`
	Status     string  `json:"status"`
	PatientID  *string `json:"patient_id"`
	// PatientName is the holder's name, if the caller may see it.
	PatientName *string `json:"patient_name"`
}

func (a *api) listHubs(c *web.Call) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	page, total, err := collections.PageOfHubs(c.App, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	team, err := a.careTeamFilter(c, "")
	if err != nil {
		return err
	}
	on, err := devices.DevicesByHub(c.App, page, team)
	if err != nil {
		return err
	}
	names, err := patients.Names(c.App, distinct(slices.Concat(slices.Collect(maps.Values(on))...), (*collections.Device).PatientID))
	if err != nil {
		return err
	}
	views, shown := make([]hubView, len(page)), []*collections.Device{}
	for i, hub := range page {
		views[i] = hubView{HubID: hub.HubID, Status: hub.Status, LastHeartbeatAt: instantOrNull(hub.LastSeen()), Devices: []hubDevice{}}
		for _, device := range on[hub.HubID] {
			views[i].Devices = append(views[i].Devices, hubDevice{device.DeviceID(), orNull(device.Type()), device.Status(), orNull(device.PatientID()), orNull(names[device.PatientID()].FullName())})
			shown = append(shown, device)
		}
	}
	if err := recordShown(c, audit.ResourceHub, "", shown, (*collections.Device).PatientID); err != nil {
		return err
	}
	return web.RespondPage(c, p, total, views, 0)
}

func (a *api) listDeviceAlerts(c *web.Call) error {
	q, p := c.Listing()
	filter := alertFilter(q, alerts.DeviceTypes)
	filter.Types, filter.DeviceID = alerts.DeviceTypes, q.Text("device_id", 128)
	if err := q.Err(); err != nil {
		return err
	}
	return a.answerAlerts(c, p, filter, false, viewAlertsOf)
}
