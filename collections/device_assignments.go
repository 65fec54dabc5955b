package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// DeviceHolder returns the patient to whom the device was assigned at the given moment; "" when nobody held it.
func DeviceHolder(app core.App, deviceID string, at time.Time) (patientID string, err error) {
	err = app.DB().NewQuery(DeviceHolderQuery("{:device}", "{:at}")).Bind(dbx.Params{"device": deviceID, "at": Instant(at)}).Row(&patientID)
	if Missing(err) {
		return "", nil
	}
	return patientID, wrap(err, "find device holder")
}

// DeviceHolderQuery finds who held a device at a moment; the two are parameters, or columns of a query around it.
func DeviceHolderQuery(device, at string) string {
	return `SELECT patient FROM device_assignments
		WHERE device_id = ` + device + ` AND assigned_at <= ` + at + ` AND (unassigned_at = '' OR unassigned_at > ` + at + `)
		ORDER BY assigned_at DESC LIMIT 1`
}

// CurrentHolder returns who holds the device now, and since when; "" when nobody does.
func CurrentHolder(app core.App, deviceID string) (patientID string, since time.Time, err error) {
	var from string
	err = app.DB().NewQuery(`SELECT patient, assigned_at FROM device_assignments WHERE device_id = {:device} AND unassigned_at = ''`).
		Bind(dbx.Params{"device": deviceID}).Row(&patientID, &from)
	return patientID, ParseInstant(from), wrap(unlessMissing(err), "find who holds a device")
}

// DeviceAssignment says who held a device, and when.
type DeviceAssignment struct{ core.BaseRecordProxy }

// AsDeviceAssignment reads a record of the device assignments as one.
func AsDeviceAssignment(record *core.Record) *DeviceAssignment { return as[DeviceAssignment](record) }

// NewDeviceAssignment returns an unsaved assignment.
func NewDeviceAssignment(app core.App, deviceID, patientID string, from time.Time, by string) (*DeviceAssignment, error) {
	record, err := New(app, DeviceAssignments)
	if err != nil {
		return nil, err
	}
	for column, value := range map[string]string{"device_id": deviceID, "patient": patientID, "assigned_at": Instant(from), "assigned_by": by} {
		record.Set(column, value)
	}
	return AsDeviceAssignment(record), nil
}

// AssignmentsOf are the assignments of a device, oldest first.
func AssignmentsOf(app core.App, deviceID string) ([]*DeviceAssignment, error) {
	return listOf[DeviceAssignment](app, DeviceAssignments, dbx.HashExp{"device_id": deviceID}, "assigned_at", "id")
}

// CurrentAssignment is the open assignment of a device.
func CurrentAssignment(app core.App, deviceID string) (*DeviceAssignment, error) {
	return find[DeviceAssignment](app, DeviceAssignments, dbx.NewExp("device_id = {:device} AND unassigned_at = ''", dbx.Params{"device": deviceID}))
}

func (a *DeviceAssignment) DeviceID() string  { return a.GetString("device_id") }
func (a *DeviceAssignment) PatientID() string { return a.GetString("patient") }
func (a *DeviceAssignment) From() time.Time   { return ParseInstant(a.GetString("assigned_at")) }
func (a *DeviceAssignment) To() time.Time     { return ParseInstant(a.GetString("unassigned_at")) } // the end of the assignment; zero while it lasts

// End says when, by whom and why the assignment was ended.
func (a *DeviceAssignment) End(at time.Time, by string, reason phi.Text) {
	a.Set("unassigned_at", Instant(at))
	a.Set("unassigned_by", by)
	a.Set("unassign_reason", reason.Reveal())
}

// Overlaps reports whether the assignment shares a moment with the span from from to to; a zero end is open.
func (a *DeviceAssignment) Overlaps(from, to time.Time) bool {
	return (to.IsZero() || a.From().Before(to)) && (a.To().IsZero() || a.To().After(from))
}

// TakeDevices ends the assignments of a patient and returns the ids of the devices.
func TakeDevices(tx core.App, patientID, by string, now time.Time) (devices []string, err error) {
	params := dbx.Params{"patient": patientID, "by": by, "at": Instant(now)}
	err = tx.NonconcurrentDB().NewQuery(`UPDATE device_assignments SET unassigned_at = {:at}, unassigned_by = {:by}
		WHERE patient = {:patient} AND unassigned_at = '' RETURNING device_id`).Bind(params).Column(&devices)
	if err != nil {
		return nil, wrap(err, "end device assignments")
	}
	return devices, exec(tx, "take devices back", `UPDATE devices SET patient = '', assigned_at = '', status = 'inventory'
		WHERE patient = {:patient} AND patient != ''`, params)
}
