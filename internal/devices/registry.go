package devices

import (
	"slices"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// RegisterBody is the request body that registers a device.
type RegisterBody struct {
	DeviceID   validate.String `json:"device_id"`
	DeviceType validate.String `json:"device_type"`
	MakerBody
	ManufactureDate validate.String `json:"manufacture_date"`
}

// Registration is a valid RegisterBody.
type Registration struct {
	DeviceID, Type string
	Kind           vitals.Kind
	Maker
	ManufactureDate string // date; "" if unknown
}

// Read checks a body. Source: docs/decisions/devices.md, "Device registry".
func (b RegisterBody) Read(c *validate.Checks) Registration {
	r := Registration{DeviceID: c.Text("device_id", b.DeviceID, validate.Required(maxID).Identifier()), Maker: b.read(c)}
	r.ManufactureDate = c.Date("manufacture_date", b.ManufactureDate, false)
	r.Type, r.Kind = readType(c, b.DeviceType)
	return r
}

// Register adds a device to the inventory: a new one, or a discovered one. Any other is a validation fault.
func Register(app core.App, r Registration, by audit.Actor, now time.Time) (device *collections.Device, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		device, err = collections.FindDevice(tx, r.DeviceID)
		switch {
		case collections.IsNotFound(err):
			if device, err = collections.NewDevice(tx, r.DeviceID, now); err != nil {
				return err
			}
		case err != nil:
			return err
		}
		if err := checkUnregistered(tx, device); err != nil {
			return err
		}
		device.Set(collections.DeviceStatus, collections.DeviceInventory)
		device.Set(collections.DeviceType, r.Type)
		if r.Kind != "" {
			device.Set(collections.DeviceKind, string(r.Kind))
		}
		r.setColumns(device)
		if r.ManufactureDate != "" {
			device.Set(collections.DeviceMadeOn, r.ManufactureDate)
		}
		if err := save(tx, device); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.DeviceCreate, Actor: by, ResourceType: audit.ResourceDevice, ResourceID: r.DeviceID, Changes: audit.Changes{"device_type": {New: r.Type}},
		}, now)
	})
	return device, err
}

// checkUnregistered returns a fault unless the device is new or known only from its own events.
func checkUnregistered(tx core.App, device *collections.Device) error {
	switch device.Status() {
	case "", collections.DeviceDiscovered:
		return nil
	case collections.DeviceConnected, collections.DeviceDisconnected:
		history, err := collections.AssignmentsOf(tx, device.DeviceID())
		if err != nil || len(history) == 0 {
			return err
		}
	}
	return fault.Field("device_id", "This device is registered already.")
}

// Unassign returns a device to the inventory. An unassigned device is an invalid_state fault.
func Unassign(app core.App, deviceID string, reason phi.Text, by audit.Actor, now time.Time) (device *collections.Device, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if device, err = findHeld(tx, deviceID); err != nil {
			return err
		}
		return endAssignment(tx, device, collections.DeviceInventory, audit.DeviceUnassign, reason, by, now)
	})
	return device, err
}

// findHeld returns an assigned device.
func findHeld(tx core.App, deviceID string) (*collections.Device, error) {
	device, err := Find(tx, deviceID)
	if err == nil && device.PatientID() == "" {
		return nil, fault.State("invalid_state", "The device is not assigned.")
	}
	return device, err
}

// endAssignment ends a patient's assignment of a device, and resolves its device alerts.
func endAssignment(tx core.App, device *collections.Device, status string, event audit.Event, reason phi.Text, by audit.Actor, now time.Time) error {
	patientID := device.PatientID()
	assignment, err := collections.CurrentAssignment(tx, device.DeviceID())
	if err != nil && !collections.IsNotFound(err) {
		return err
	}
	if err == nil {
		end := now
		if !end.After(assignment.From()) {
			end = assignment.From().Add(time.Microsecond) // ended at the moment of assignment
		}
		assignment.End(end, alerts.ActorName(by), reason)
		if err := save(tx, assignment); err != nil {
			return err
		}
	}
	device.ClearAssignment()
	device.Set(collections.DeviceStatus, status)
	if err := save(tx, device); err != nil {
		return err
	}
	err = audit.Append(tx, audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceDevice, ResourceID: device.DeviceID(), PatientID: patientID, Reason: reason,
	}, now)
	if err != nil {
		return err
	}
	for _, alertType := range []string{alerts.TypeNoReading24h, alerts.TypeDeviceBattery, alerts.TypeDeviceClock} {
		if err := resolveAlerts(tx, device.DeviceID(), alertType, patientID, "", now); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceBody is the request body that replaces a device.
type ReplaceBody struct {
	NewDeviceID validate.String `json:"new_device_id"`
	Reason      validate.String `json:"reason"`
}

// Replacement is a valid ReplaceBody.
type Replacement struct {
	NewDeviceID string
	Reason      phi.Text
}

// Read checks a body about the device deviceID.
func (b ReplaceBody) Read(c *validate.Checks, deviceID string) Replacement {
	r := Replacement{
		NewDeviceID: c.Text("new_device_id", b.NewDeviceID, validate.Required(maxID).Identifier()),
		Reason:      phi.Text(c.Text("reason", b.Reason, validate.Required(500).Multiline())),
	}
	if r.NewDeviceID == deviceID {
		c.Reject("new_device_id", "Must be another device.")
	}
	return r
}

// Replace assigns another device of the same type to the holder of a device, from now on, and returns it. The measurement schedule stays.
// Faults: not_found; invalid_state if the old device is unassigned; device_already_assigned if the new one is assigned. Source:
// docs/decisions/devices.md, "Device registry".
func (e *Engine) Replace(app core.App, deviceID string, r Replacement, by audit.Actor, now time.Time) (successor *collections.Device, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		old, err := findHeld(tx, deviceID)
		if err != nil {
			return err
		}
		if successor, err = findOrNew(tx, r.NewDeviceID, now); err != nil {
			return err
		}
		if holder := successor.PatientID(); holder != "" {
			if holder == old.PatientID() {
				return fault.State("device_already_assigned", "The patient has that device already.")
			}
			return errHeldByAnother()
		}
		patient, err := findReceiver(tx, old.PatientID())
		if err != nil {
			return err
		}
		if err := endAssignment(tx, old, collections.DeviceReplaced, audit.DeviceReplace, r.Reason, by, now); err != nil {
			return err
		}
		given := Assignment{
			DeviceID: r.NewDeviceID, PatientID: patient.Id, Type: old.Type(), Kind: vitals.Kind(old.Kind()),
		}
		if err := e.startAssignment(tx, successor, given, by, now); err != nil {
			return err
		}
		address, err := addressOf(patient)
		if err != nil {
			return err
		}
		_, err = e.ship(tx, r.NewDeviceID, patient.Id, collections.OrderReplacement, address, by, now)
		return err
	})
	return successor, err
}

// SetUpBody is the request body that records the education of a patient; every member is optional.
type SetUpBody struct {
	EducatedBy  validate.Integer `json:"educated_by"`
	CompletedAt validate.String  `json:"completed_at"`
	Notes       validate.String  `json:"notes"`
}

// SetUp is a valid SetUpBody.
type SetUp struct {
	EducatedBy  int64     // number of a user; 0 for the caller
	CompletedAt time.Time // zero for now
	Notes       phi.Text
}

// Read checks a body. Source: docs/decisions/billing.md, "99453".
func (b SetUpBody) Read(c *validate.Checks, now time.Time) SetUp {
	s := SetUp{CompletedAt: c.Instant("completed_at", b.CompletedAt, false), Notes: phi.Text(c.Text("notes", b.Notes, validate.Optional(4000).Multiline()))}
	if by := c.Integer("educated_by", b.EducatedBy, false); by != nil {
		if s.EducatedBy = *by; *by <= 0 {
			c.Reject("educated_by", "Must be the id of a user.")
		}
	}
	if s.CompletedAt.After(now) {
		c.Reject("completed_at", "Must not be in the future.")
	}
	return s
}

// CompleteSetUp records the education of the device's holder, the evidence for CPT 99453. A repeat corrects it, unless the earlier one is of another episode of
// care or billed: both are kept then. Faults: not_found for the device or the user; invalid_state if the device is unassigned. Source:
// docs/decisions/billing.md, "99453".
func CompleteSetUp(app core.App, deviceID string, s SetUp, by audit.Actor, now time.Time) (device *collections.Device, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if device, err = findHeld(tx, deviceID); err != nil {
			return err
		}
		educator, err := educatorOf(tx, s, by)
		if err != nil {
			return err
		}
		at := s.CompletedAt
		if at.IsZero() {
			at = now
		}
		assignment, err := collections.CurrentAssignment(tx, deviceID)
		if err != nil && !collections.IsNotFound(err) {
			return err
		}
		records := []core.Model{device}
		device.Set(collections.DeviceSetupNotes, s.Notes.Reveal())
		columns := map[string]string{collections.DeviceSetupAt: collections.FormatInstant(at), collections.DeviceSetupBy: educator}
		for column, value := range columns {
			device.Set(column, value)
		}
		if assignment != nil {
			if err := keepEarlierSetUp(tx, assignment, at); err != nil {
				return err
			}
			for column, value := range columns {
				assignment.Set(column, value)
			}
			records = append(records, assignment)
		}
		for _, record := range records {
			if err := save(tx, record); err != nil {
				return err
			}
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.DeviceSetUp, Actor: by, ResourceType: audit.ResourceDevice, ResourceID: deviceID, PatientID: device.PatientID(),
			Changes: audit.Changes{"setup_completed_at": {New: columns["setup_completed_at"]}, "setup_completed_by": {New: educator}},
		}, now)
	})
	return device, err
}

// keepEarlierSetUp keeps the recorded set-up of an assignment beside one at another time, if it is billed or the patient was archived and restored between
// them.
func keepEarlierSetUp(tx core.App, assignment *collections.DeviceAssignment, at time.Time) error {
	earlier := assignment.SetUp()
	if earlier.At == "" || earlier.At == collections.FormatInstant(at) {
		return nil
	}
	day := collections.ParseInstant(earlier.At).In(collections.PracticeZone(tx)).Format(time.DateOnly)
	if isBilled, err := collections.HasBilledSetup(tx, assignment.PatientID(), day); err != nil || isBilled {
		assignment.KeepSetUp(earlier)
		return err
	}
	patient, err := collections.FindPatientAnyState(tx, assignment.PatientID())
	if err != nil {
		return err
	}
	restored := []string{collections.FormatInstant(patient.UnarchivedAt())}
	for _, pause := range patient.Interruptions() {
		restored = append(restored, pause.Until)
	}
	first, last := min(earlier.At, collections.FormatInstant(at)), max(earlier.At, collections.FormatInstant(at))
	if slices.ContainsFunc(restored, func(r string) bool { return first < r && r <= last }) {
		assignment.KeepSetUp(earlier)
	}
	return nil
}

// educatorOf returns the e-mail address of the staff member who educated the patient.
func educatorOf(tx core.App, s SetUp, by audit.Actor) (string, error) {
	if s.EducatedBy == 0 || strconv.FormatInt(s.EducatedBy, 10) == by.ID {
		return alerts.ActorName(by), nil
	}
	user, err := collections.FindUser(tx, collections.NumberID(s.EducatedBy))
	if collections.IsNotFound(err) || (err == nil && user.Role() == string(authz.Patient)) {
		return "", fault.Missing()
	}
	if err != nil {
		return "", err
	}
	return user.Email(), nil
}

// MakerBody is the manufacturer data in a request body.
type MakerBody struct {
	Manufacturer validate.String `json:"manufacturer"`
	Model        validate.String `json:"model"`
	SerialNumber validate.String `json:"serial_number"`
	UDI          validate.String `json:"udi"`
}

// Maker is the manufacturer data that a caller sent, by column; "" clears a value. What was not sent is kept.
type Maker map[string]string

func (b MakerBody) read(c *validate.Checks) Maker {
	m := Maker{}
	for _, f := range []struct {
		name, column string
		sent         validate.String
		limit        int
	}{
		{"manufacturer", collections.DeviceManufacturer, b.Manufacturer, 100},
		{"model", collections.DeviceModel, b.Model, 100},
		{"serial_number", collections.DeviceSerialNumber, b.SerialNumber, 100},
		{"udi", collections.DeviceUDI, b.UDI, 300},
	} {
		if value := c.Text(f.name, f.sent, validate.Optional(f.limit)); f.sent.Sent() {
			m[f.column] = value
		}
	}
	return m
}

// setColumns stores the given data and keeps the rest.
func (m Maker) setColumns(device *collections.Device) {
	for column, value := range m {
		device.Set(column, value)
	}
	if made := ManufactureDate(m[collections.DeviceUDI]); made != "" {
		device.Set(collections.DeviceMadeOn, made)
	}
}

// updateMaker updates the manufacturer data of an assigned device.
func updateMaker(tx core.App, device *collections.Device, a Assignment, by audit.Actor, now time.Time) error {
	if len(a.Maker) == 0 {
		return nil
	}
	a.setColumns(device)
	if err := save(tx, device); err != nil {
		return err
	}
	return audit.Append(tx, audit.Entry{
		Event: audit.DeviceAssign, Actor: by, ResourceType: audit.ResourceDevice, ResourceID: a.DeviceID, PatientID: a.PatientID,
	}, now)
}
