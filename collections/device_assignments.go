package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// DeviceHolder returns the patient with a device at a time, or "".
func DeviceHolder(app core.App, deviceID string, at time.Time) (patientID string, err error) {
	patientID, err = queryValue[string](app, "find device holder", DeviceHolderQuery("+{:device}", "+{:at}"), dbx.Params{"device": deviceID, "at": FormatInstant(at)})
	return patientID, IgnoreNotFound(err)
}

// DeviceHolderQuery selects the patient with a device at a time. The arguments are parameters, with a plus (see internal/sqlite), or columns
// of an outer query.
func DeviceHolderQuery(device, at string) string {
	return `SELECT patient FROM device_assignments
		WHERE device_id = ` + device + ` AND assigned_at <= ` + at + ` AND (unassigned_at = '' OR unassigned_at > ` + at + `)
		ORDER BY assigned_at DESC LIMIT 1`
}

// CurrentHolder returns the patient with the device and the start of the assignment. Without a patient it returns "" and the end of the last
// assignment, or zero.
func CurrentHolder(app core.App, deviceID string) (patientID string, since time.Time, err error) {
	var from, until string
	err = app.DB().NewQuery(`SELECT patient, assigned_at, unassigned_at FROM device_assignments WHERE device_id = {:device}
		ORDER BY unassigned_at = '' DESC, unassigned_at DESC LIMIT 1`).
		Bind(dbx.Params{"device": deviceID}).Row(&patientID, &from, &until)
	if until != "" {
		patientID, from = "", until
	}
	return patientID, ParseInstant(from), wrap(IgnoreNotFound(err), "find who holds a device")
}

// DeviceAssignment is the time a patient has a device.
type DeviceAssignment struct{ core.BaseRecordProxy }

// AsDeviceAssignment converts a record of the device assignments.
func AsDeviceAssignment(record *core.Record) *DeviceAssignment { return as[DeviceAssignment](record) }

// NewDeviceAssignment returns an unsaved assignment.
func NewDeviceAssignment(app core.App, deviceID, patientID string, from time.Time, by string) (*DeviceAssignment, error) {
	return newRecord[DeviceAssignment](app, DeviceAssignments, map[string]any{
		"device_id": deviceID, "patient": patientID, "assigned_at": FormatInstant(from), "assigned_by": by,
	})
}

// SetUpRecord is the patient's education with a device.
type SetUpRecord struct {
	At string `json:"at"` // stored instant; "" for none
	By string `json:"by"` // e-mail address
}

// SetUpRecords are stored as JSON.
type SetUpRecords []SetUpRecord

// Scan implements sql.Scanner. Damaged JSON gives none.
func (l *SetUpRecords) Scan(stored any) error { scanJSON(stored, l); return nil }

// AssignmentEarlierSetups are the set-ups of an assignment before the latest.
const AssignmentEarlierSetups = "earlier_setups"

// SetUp returns the latest set-up of the assignment.
func (a *DeviceAssignment) SetUp() SetUpRecord {
	return SetUpRecord{a.GetString(DeviceSetupAt), a.GetString(DeviceSetupBy)}
}

// KeepSetUp adds a set-up to the earlier ones of the assignment.
func (a *DeviceAssignment) KeepSetUp(s SetUpRecord) {
	var list SetUpRecords
	_ = a.UnmarshalJSONField(AssignmentEarlierSetups, &list) // damaged JSON gives none
	a.Set(AssignmentEarlierSetups, append(list, s))
}

// HasBilledSetup reports whether a 99453 of a patient is billed for the education of a day, and not undone.
func HasBilledSetup(app core.App, patientID, day string) (bool, error) {
	return queryValue[bool](app, "find the entry of a set-up", `SELECT EXISTS (SELECT 1 FROM billing_entries WHERE patient = {:patient} AND cpt_code = '99453'
		AND billing_period_start = {:day} AND lifecycle_status NOT IN ('voided', 'refunded'))`, dbx.Params{"patient": patientID, "day": day})
}

// AssignmentsOf returns the assignments of a device, oldest first.
func AssignmentsOf(app core.App, deviceID string) ([]*DeviceAssignment, error) {
	return listOf[DeviceAssignment](app, DeviceAssignments, dbx.HashExp{"device_id": deviceID}, "assigned_at", "id")
}

// CurrentAssignment returns the open assignment of a device.
func CurrentAssignment(app core.App, deviceID string) (*DeviceAssignment, error) {
	return find[DeviceAssignment](app, DeviceAssignments, dbx.NewExp("device_id = {:device} AND unassigned_at = ''", dbx.Params{"device": deviceID}))
}

func (a *DeviceAssignment) DeviceID() string  { return a.GetString("device_id") }
func (a *DeviceAssignment) PatientID() string { return a.GetString("patient") }
func (a *DeviceAssignment) From() time.Time   { return instantOf(a, "assigned_at") }
func (a *DeviceAssignment) To() time.Time     { return instantOf(a, "unassigned_at") } // zero while it is open

// End records when, by which user and why the assignment ended.
func (a *DeviceAssignment) End(at time.Time, by string, reason phi.Text) {
	a.Set("unassigned_at", FormatInstant(at))
	a.Set("unassigned_by", by)
	a.Set("unassign_reason", reason.Reveal())
}

// Overlaps reports whether the assignment overlaps a span; a zero end is open.
func (a *DeviceAssignment) Overlaps(from, to time.Time) bool {
	return (to.IsZero() || a.From().Before(to)) && (a.To().IsZero() || a.To().After(from))
}

// UnassignDevices ends a patient's assignments and returns the device ids.
func UnassignDevices(tx core.App, patientID, by string, now time.Time) (devices []string, err error) {
	params := dbx.Params{"patient": patientID, "by": by, "at": FormatInstant(now)}
	err = tx.NonconcurrentDB().NewQuery(`UPDATE device_assignments SET unassigned_at = {:at}, unassigned_by = {:by}
		WHERE patient = {:patient} AND unassigned_at = '' RETURNING device_id`).Bind(params).Column(&devices)
	if err != nil {
		return nil, wrap(err, "end device assignments")
	}
	return devices, exec(tx, "unassign devices", `UPDATE devices SET patient = '', assigned_at = '', status = 'inventory'
		WHERE patient = {:patient} AND patient != ''`, params)
}
