package devices

import (
	"strings"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"
	"github.com/rickar/cal/v2"
	"github.com/rickar/cal/v2/us"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	maxID   = 128
	msgType = "Must be a word of 1 to 50 letters, digits, underscores and hyphens."
)

// AssignBody is the request body that assigns a device to a patient.
type AssignBody struct {
	DeviceID        validate.String `json:"device_id"`
	PatientID       validate.String `json:"patient_id"`
	DeviceType      validate.String `json:"device_type"`
	ShippingAddress validate.String `json:"shipping_address"`
	AssignedAt      validate.String `json:"assigned_at"`
	MakerBody
}

// Assignment is a valid AssignBody.
type Assignment struct {
	DeviceID, PatientID, Type string
	Kind                      vitals.Kind
	ShippingAddress           phi.Text  // "" for the patient's address
	At                        time.Time // zero for now
	Maker
}

// Read checks a body. Source: docs/decisions/devices.md, "Device assignment".
func (b AssignBody) Read(c *validate.Checks, now time.Time) Assignment {
	a := Assignment{
		DeviceID: c.Text("device_id", b.DeviceID, validate.Required(maxID).Identifier()), PatientID: c.UUID("patient_id", b.PatientID, true),
		ShippingAddress: phi.Text(c.Text("shipping_address", b.ShippingAddress, validate.Optional(500).Multiline())),
		At:              c.Instant("assigned_at", b.AssignedAt, false),
		Maker:           b.read(c),
	}
	a.Type, a.Kind = readType(c, b.DeviceType)
	if a.At.After(now) {
		c.Reject("assigned_at", "Must not be in the future.")
	}
	return a
}

func readType(c *validate.Checks, field validate.String) (deviceType string, kind vitals.Kind) {
	text := c.Text("device_type", field, validate.Required(0))
	if text == "" {
		return "", ""
	}
	deviceType, kind, ok := ParseType(text)
	if !ok {
		c.Reject("device_type", msgType)
	}
	return deviceType, kind
}

// Assigned is an assigned device.
type Assigned struct {
	Device *collections.Device
	// Delivery is the expected date, YYYY-MM-DD; "" if nothing is shipped.
	Delivery string
}

// Assign assigns a device to a patient, and registers a new one. If the patient has the device already, only its manufacturer data is
// updated. Faults: not_found for the patient; device_already_assigned; validation errors for an archived patient and for a time at which
// another patient had the device. Source: docs/decisions/devices.md, "Device assignment".
func (e *Engine) Assign(app core.App, a Assignment, by audit.Actor, now time.Time) (assigned Assigned, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		patient, err := findReceiver(tx, a.PatientID)
		if err != nil {
			return err
		}
		if assigned.Device, err = findOrNew(tx, a.DeviceID, now); err != nil {
			return err
		}
		switch assigned.Device.PatientID() {
		case "":
		case a.PatientID:
			if err := updateMaker(tx, assigned.Device, a, by, now); err != nil {
				return err
			}
			order, err := collections.LatestOrderDelivery(tx, a.DeviceID, a.PatientID)
			assigned.Delivery = order.Date
			return err
		default:
			return errHeldByAnother()
		}
		if err := e.startAssignment(tx, assigned.Device, a, by, now); err != nil {
			return err
		}
		address := a.ShippingAddress
		if address == "" {
			if address, err = addressOf(patient); err != nil {
				return err
			}
		}
		assigned.Delivery, err = e.ship(tx, a.DeviceID, a.PatientID, collections.OrderNew, address, by, now)
		return err
	})
	return assigned, err
}

func errHeldByAnother() error {
	return fault.State("device_already_assigned", "The device is assigned to another patient.")
}

// findReceiver returns a patient who may get a device.
func findReceiver(tx core.App, patientID string) (*collections.Patient, error) {
	patient, err := collections.FindPatient(tx, patientID)
	if err == nil && !patient.Active() {
		err = fault.Field("patient_id", "This patient is archived.")
	}
	return patient, fault.OrMissing(err)
}

func findOrNew(tx core.App, deviceID string, now time.Time) (*collections.Device, error) {
	device, err := collections.FindDevice(tx, deviceID)
	if collections.IsNotFound(err) {
		return collections.NewDevice(tx, deviceID, now)
	}
	if err == nil && (device.Status() == collections.DeviceReplaced || device.Status() == collections.DeviceRetired) {
		return nil, fault.State("invalid_state", "The device is out of service.")
	}
	return device, err
}

// startAssignment starts the assignment of an unassigned device.
func (e *Engine) startAssignment(tx core.App, device *collections.Device, a Assignment, by audit.Actor, now time.Time) error {
	history, err := collections.AssignmentsOf(tx, a.DeviceID)
	if err != nil {
		return err
	}
	from := a.At
	if from.IsZero() {
		from = assignmentStart(now, history)
	}
	for _, earlier := range history {
		if earlier.Overlaps(from, time.Time{}) {
			return fault.Field("assigned_at", "The device was assigned at that time already.")
		}
	}
	assignment, err := collections.NewDeviceAssignment(tx, a.DeviceID, a.PatientID, from, alerts.ActorName(by))
	if err != nil {
		return err
	}
	if err := save(tx, assignment); err != nil {
		return err
	}
	device.ClearAssignment()
	for column, value := range map[string]string{
		collections.DevicePatient: a.PatientID, collections.DeviceAssignedAt: collections.FormatInstant(from),
		collections.DeviceStatus: collections.DeviceAssigned, collections.DeviceType: a.Type,
	} {
		device.Set(column, value)
	}
	if a.Kind != "" {
		device.Set(collections.DeviceKind, string(a.Kind))
	}
	a.setColumns(device)
	if err := save(tx, device); err != nil {
		return err
	}
	err = audit.Append(tx, audit.Entry{
		Event: audit.DeviceAssign, Actor: by, ResourceType: audit.ResourceDevice, ResourceID: a.DeviceID, PatientID: a.PatientID,
		Changes: audit.Changes{"device_type": {New: a.Type}, "assigned_at": {New: collections.FormatInstant(from)}},
	}, now)
	if err != nil {
		return err
	}
	if err := triage.RescoreMinor(tx, a.PatientID, now); err != nil {
		return err
	}
	return e.checkBattery(tx, device, now)
}

// assignmentStart returns when an assignment made now begins: at the current whole second, because devices report whole seconds and the
// first reading belongs to the new holder; but not before the end of the last assignment.
func assignmentStart(now time.Time, history []*collections.DeviceAssignment) time.Time {
	from := now.Truncate(time.Second)
	for _, earlier := range history {
		if end := earlier.To(); end.After(from) {
			from = end
		}
	}
	return from
}

// ship orders the shipment if the practice ships devices, and returns the expected date.
func (e *Engine) ship(tx core.App, deviceID, patientID, kind string, address phi.Text, by audit.Actor, now time.Time) (string, error) {
	if !e.rules.ManagedMode {
		return "", nil
	}
	return e.order(tx, deviceID, patientID, kind, address, alerts.ActorName(by), now)
}

func (e *Engine) order(tx core.App, deviceID, patientID, kind string, address phi.Text, by string, now time.Time) (delivery string, err error) {
	delivery = DeliveryDate(now, e.rules.PracticeZone, e.rules.DeliveryWorkingDays)
	return delivery, collections.StoreDeviceOrder(tx, collections.DeviceOrder{
		DeviceID: deviceID, PatientID: patientID, Kind: kind, EstimatedDelivery: delivery, RequestedBy: by, ShippingAddress: address,
	}, now)
}

// addressOf returns the patient's address on one line; "" for none.
func addressOf(patient *collections.Patient) (phi.Text, error) {
	if err := collections.Readable(patient.ProxyRecord()); err != nil {
		return "", err // an unreadable address must not become an empty one
	}
	a := patient.Demographics().Address
	if a == nil {
		return "", nil
	}
	var parts []string
	for _, part := range []string{a.Line1, a.Line2, a.City, strings.TrimSpace(a.State + " " + a.Zip), a.Country} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	line := []rune(strings.Join(parts, ", "))
	return phi.Text(line[:min(len(line), 500)]), nil
}

// workdays are Monday to Friday without the US federal holidays as observed.
var workdays = func() *cal.BusinessCalendar {
	calendar := cal.NewBusinessCalendar()
	calendar.Cacheable = true
	calendar.AddHoliday(us.Holidays...)
	return calendar
}()

// DeliveryDate returns the date, YYYY-MM-DD, a number of working days after today in the practice's zone. Source:
// docs/decisions/devices.md, "Device assignment".
func DeliveryDate(now time.Time, zone *time.Location, workingDays int) string {
	year, month, day := now.In(zone).Date()
	today := time.Date(year, month, day, 12, 0, 0, 0, time.UTC) // a calendar date: no zone may move it
	if workingDays == 0 {
		return today.Format(time.DateOnly)
	}
	return workdays.WorkdaysFrom(today, workingDays).Format(time.DateOnly)
}

// GuardAssignment checks an assignment before any save: it ends after it begins, and overlaps no other of the device. The patient of past
// readings depends on it.
func GuardAssignment(app core.App, record *core.Record) error {
	assignment := collections.AsDeviceAssignment(record)
	from, to := assignment.From(), assignment.To()
	if from.IsZero() {
		return validation.Errors{"assigned_at": validation.NewError("validation_required", "This field is required.")}
	}
	if !to.IsZero() && !to.After(from) {
		return validation.Errors{"unassigned_at": validation.NewError("validation_invalid_value", "Must be after assigned_at.")}
	}
	history, err := collections.AssignmentsOf(app, assignment.DeviceID())
	if err != nil {
		return err
	}
	for _, other := range history {
		if other.Id != record.Id && other.Overlaps(from, to) {
			return validation.Errors{"assigned_at": validation.NewError("validation_overlap", "The device was assigned at that time already.")}
		}
	}
	return nil
}
