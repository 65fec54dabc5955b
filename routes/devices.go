package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/patients"
)

// deviceView is a device as the contract shows it.
type deviceView struct {
	DeviceID         string   `json:"device_id"`
	DeviceType       *string  `json:"device_type"`
	Model            *string  `json:"model"`
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
		DeviceID: device.DeviceID(), DeviceType: orNull(device.Type()), Model: orNull(device.Model()), Status: device.Status(),
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

// assignmentView is one patient's time with a device.
type assignmentView struct {
	PatientID string  `json:"patient_id"`
	From      *string `json:"from"`
	To        *string `json:"to"`
}

// deviceDetail is a single device, with who held it.
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
}

func (a *api) assignDevice(c *call) error {
	var body devices.AssignBody
	if err := c.decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	assignment := body.Read(checks, c.Now)
	if err := checks.Err(); err != nil {
		return err
	}
	if _, err := collections.FindPatient(c.App, assignment.PatientID); collections.Missing(err) {
		return fault.Missing()
	} else if err != nil {
		return err
	}
	if err := a.reach(c, assignment.PatientID); err != nil {
		return err
	}
	assigned, err := a.Devices.Assign(c.App, assignment, c.actor(), c.Now)
	if err != nil {
		return err
	}
	device := assigned.Device
	return c.ok(assigningView{
		Status: "assigned", EstimatedDelivery: orNull(assigned.Delivery), DeviceID: device.DeviceID(), PatientID: device.PatientID(),
		DeviceType: device.Type(), AssignedAt: instantOrNull(device.AssignedAt()),
	})
}

func (a *api) registerDevice(c *call) error {
	var body devices.RegisterBody
	if err := c.decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	registration := body.Read(checks)
	if err := checks.Err(); err != nil {
		return err
	}
	device, err := devices.Register(c.App, registration, c.actor(), c.Now)
	if err != nil {
		return err
	}
	return c.created(viewDevice(device))
}

// device finds the device of the path, if the caller may see it: a portal user those of the own patient only.
func (a *api) device(c *call) (*collections.Device, error) {
	device, err := devices.Find(c.App, c.Request.PathValue("device_id"))
	if err != nil {
		return nil, err
	}
	holder := device.PatientID()
	if c.Scope == access.Own && (holder == "" || holder != c.Caller.PatientID) {
		return nil, fault.Missing()
	}
	if holder == "" {
		return device, nil
	}
	return device, a.reach(c, holder)
}

func (a *api) readDevice(c *call) error {
	device, err := a.device(c)
	if err != nil {
		return err
	}
	history, err := collections.AssignmentsOf(c.App, device.DeviceID())
	if err != nil {
		return err
	}
	detail, holders := deviceDetail{viewDevice(device), []assignmentView{}}, map[string]bool{}
	for _, held := range history {
		patient := held.PatientID()
		if visible, err := a.seesHolder(c, patient); err != nil {
			return err
		} else if !visible {
			continue
		}
		detail.Assignments = append(detail.Assignments, assignmentView{patient, instantOrNull(held.From()), instantOrNull(held.To())})
		holders[patient] = true
	}
	if len(holders) > 0 {
		if err := c.recordRead(audit.PatientRead, "Device", device.DeviceID(), sortedKeys(holders)...); err != nil {
			return err
		}
	}
	return c.ok(detail)
}

// seesHolder reports whether the caller may know that a patient held a device.
func (a *api) seesHolder(c *call, patientID string) (bool, error) {
	switch {
	case c.Scope == access.Own:
		return patientID == c.Caller.PatientID, nil
	case a.confinedToTeams(c):
		return patients.OnCareTeam(c.App, patientID, c.Caller.RecordID)
	}
	return true, nil
}

func (a *api) unassignDevice(c *call) error {
	return a.change(c, func(device *collections.Device) (*collections.Device, error) {
		reason, err := c.reason()
		if err != nil {
			return nil, err
		}
		return devices.Unassign(c.App, device.DeviceID(), reason, c.actor(), c.Now)
	})
}

func (a *api) replaceDevice(c *call) error {
	return a.change(c, func(device *collections.Device) (*collections.Device, error) {
		var body devices.ReplaceBody
		if err := c.decode(&body); err != nil {
			return nil, err
		}
		checks := input.NewChecks()
		replacement := body.Read(checks, device.DeviceID())
		if err := checks.Err(); err != nil {
			return nil, err
		}
		return a.Devices.Replace(c.App, device.DeviceID(), replacement, c.actor(), c.Now)
	})
}

func (a *api) completeDeviceSetUp(c *call) error {
	return a.change(c, func(device *collections.Device) (*collections.Device, error) {
		var body devices.SetUpBody
		if err := c.decodeOptional(&body); err != nil {
			return nil, err
		}
		checks := input.NewChecks()
		done := body.Read(checks, c.Now)
		if err := checks.Err(); err != nil {
			return nil, err
		}
		return devices.CompleteSetUp(c.App, device.DeviceID(), done, c.actor(), c.Now)
	})
}

// change answers with the device that a change of the one in the path leads to.
func (a *api) change(c *call, move func(*collections.Device) (*collections.Device, error)) error {
	device, err := a.device(c)
	if err != nil {
		return err
	}
	if device, err = move(device); err != nil {
		return err
	}
	return c.ok(viewDevice(device))
}
