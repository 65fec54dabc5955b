package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// DeviceHolder returns the patient to whom the device was assigned at the given moment; "" when nobody held it.
func DeviceHolder(app core.App, deviceID string, at time.Time) (patientID string, err error) {
	patientID, err = queryValue[string](app, "find device holder", DeviceHolderQuery("+{:device}", "+{:at}"), dbx.Params{"device": deviceID, "at": Instant(at)})
	return patientID, unlessMissing(err)
}

// DeviceHolderQuery finds who held a device at a moment; the two are parameters, with a plus (see internal/sqlite), or columns of a query around it.
func DeviceHolderQuery(device, at string) string {
	return `SELECT patient FROM device_assignments
		WHERE device_id = ` + device + ` AND assigned_at <= ` + at + ` AND (unassigned_at = '' OR unassigned_at > ` + at + `)
		ORDER BY assigned_at DESC LIMIT 1`
}

// CurrentHolder returns who holds the device now, and since when; "" when nobody does, and since when nobody did, which is zero for one that
// nobody ever held.
func CurrentHolder(app core.App, deviceID string) (patientID string, since time.Time, err error) {
	var from, until string
	err = app.DB().NewQuery(`SELECT patient, assigned_at, unassigned_at FROM device_assignments WHERE device_id = {:device}
		ORDER BY unassigned_at = '' DESC, unassigned_at DESC LIMIT 1`).
		Bind(dbx.Params{"device": deviceID}).Row(&patientID, &from, &until)
	if until != "" {
		patientID, from = "", until
	}
	return patientID, ParseInstant(from), wrap(unlessMissing(err), "find who holds a device")
}

// DeviceAssignment says who held a device, and when.
type DeviceAssignment struct{ core.BaseRecordProxy }

// AsDeviceAssignment reads a record of the device assignments as one.
func AsDeviceAssignment(record *core.Record) *DeviceAssignment { return as[DeviceAssignment](record) }

// NewDeviceAssignment returns an unsaved assignment.
func NewDeviceAssignment(app core.App, deviceID, patientID string, from time.Time, by string) (*DeviceAssignment, error) {
	return fresh[DeviceAssignment](app, DeviceAssignments, map[string]any{
		"device_id": deviceID, "patient": patientID, "assigned_at": Instant(from), "assigned_by": by,
	})
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
func (a *DeviceAssignment) From() time.Time   { return instantOf(a, "assigned_at") }
func (a *DeviceAssignment) To() time.Time     { return instantOf(a, "unassigned_at") } // the end of the assignment; zero while it lasts

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

// The kinds of device orders.
const (
	OrderNew         = "new"
	OrderReplacement = "replacement"
)

// DeviceOrder is an order that waits for staff to place it.
type DeviceOrder struct {
	DeviceID, PatientID, Kind string
	EstimatedDelivery         string // YYYY-MM-DD
	RequestedBy               string // e-mail address or system
	ShippingAddress           phi.Text
}

// StoreOrder stores a requested order.
func StoreOrder(tx core.App, o DeviceOrder, now time.Time) error {
	_, err := store(tx, "store device order", DeviceOrders, map[string]any{
		"device_id": o.DeviceID, "patient": o.PatientID, "kind": o.Kind, "status": "requested", "estimated_delivery": o.EstimatedDelivery,
		"requested_by": o.RequestedBy, "shipping_address": o.ShippingAddress.Reveal(), "created_at": Instant(now), "updated_at": Instant(now),
	})
	return err
}

// Delivery is when an order that ships a device to a patient is expected, and when it was made.
type Delivery struct {
	Date      string // YYYY-MM-DD; "" without an order
	CreatedAt time.Time
}

// LatestDelivery returns the delivery of the latest order that ships a device to a patient.
func LatestDelivery(app core.App, deviceID, patientID string) (Delivery, error) {
	var date, created string
	err := app.DB().NewQuery(`SELECT estimated_delivery, created_at FROM device_orders
		WHERE device_id = {:device} AND patient = {:patient} AND status != 'cancelled' ORDER BY created_at DESC LIMIT 1`).
		Bind(dbx.Params{"device": deviceID, "patient": patientID}).Row(&date, &created)
	return Delivery{date, ParseInstant(created)}, wrap(unlessMissing(err), "find device order")
}

// ReplacementOpen reports whether a replacement of the device is on its way already.
func ReplacementOpen(app core.App, deviceID, patientID string) (bool, error) {
	return queryValue[bool](app, "find replacement order", `SELECT EXISTS (SELECT 1 FROM device_orders WHERE device_id = {:device} AND patient = {:patient}
		AND kind = 'replacement' AND status IN ('requested', 'ordered'))`,
		dbx.Params{"device": deviceID, "patient": patientID})
}

// MissedAlertOf reports whether a patient has had a missed_reading alert about a day.
func MissedAlertOf(app core.App, patientID, day string) (bool, error) {
	return queryValue[bool](app, "find missed_reading alert",
		`SELECT EXISTS (SELECT 1 FROM alerts WHERE patient = {:patient} AND parameter = {:day} AND type = 'missed_reading')`,
		dbx.Params{"patient": patientID, "day": day})
}

// HeldDevice is a device in a patient's hands, as far as its silence is concerned.
type HeldDevice struct {
	DeviceID      string `db:"device_id"`
	PatientID     string `db:"patient"`
	AssignedAt    string `db:"assigned_at"`
	LastReadingAt string `db:"last_reading_at"`
	Flagged       bool   `db:"flagged"`
	TimeZone      string `db:"time_zone"`
	Delivery      string `db:"delivery"`
	LastAlert     string `db:"last_alert"` // its time and record id
	Missed        bool   `db:"missed"`
}

// QuietDevices are the devices in active patients' hands that may have been silent since a time, or are flagged.
func QuietDevices(app core.App, since time.Time) ([]HeldDevice, error) {
	return queryAll[HeldDevice](app, "list quiet devices", `SELECT d.device_id, d.patient, d.assigned_at, d.last_reading_at, d.flagged, p.time_zone,
			COALESCE((SELECT estimated_delivery FROM device_orders o WHERE o.device_id = d.device_id AND o.patient = d.patient
				AND o.status != 'cancelled' ORDER BY created_at DESC LIMIT 1), '') AS delivery,
			COALESCE((SELECT MAX(a.created_at || ' ' || a.id) FROM alerts a WHERE a.device_id = d.device_id AND a.device_id != ''
				AND a.type = 'no_reading_24h' AND a.patient = d.patient), '') AS last_alert,
			EXISTS (SELECT 1 FROM alerts a WHERE a.patient = d.patient AND a.acknowledged = FALSE AND a.type = 'missed_reading') AS missed
		FROM devices d JOIN patients p ON p.id = d.patient AND p.active = TRUE AND p.deleted_at = ''
		WHERE d.patient != '' AND (d.flagged = TRUE OR MAX(d.last_reading_at, d.assigned_at) < {:before}) ORDER BY d.device_id`,
		dbx.Params{"before": Instant(since)})
}

// FlagDevice writes a device's flag, unless a reading or a new holder came in between; because is "" to take it back.
func FlagDevice(app core.App, d HeldDevice, because string) error {
	return update(app, "flag device", Devices, dbx.Params{DeviceFlagged: because != "", DeviceFlagReason: because},
		dbx.HashExp{"device_id": d.DeviceID, "patient": d.PatientID, "last_reading_at": d.LastReadingAt})
}

// DayCount is how many readings of a kind a day has.
type DayCount struct {
	Day      string `db:"day"`
	Kind     string `db:"observation_type"`
	Readings int    `db:"readings"`
}

// ReadingDays counts the readings of a patient by day and kind, both ends included.
func ReadingDays(app core.App, patientID, first, last string) ([]DayCount, error) {
	return queryAll[DayCount](app, "read reading days", `SELECT day, observation_type, readings FROM reading_days
		WHERE patient = {:patient} AND day BETWEEN {:first} AND {:last}`, dbx.Params{"patient": patientID, "first": first, "last": last})
}

// DailyCounts counts the practice's final readings by day and kind, both ends included.
func DailyCounts(app core.App, first, last string) ([]DayCount, error) {
	return queryAll[DayCount](app, "read daily counts", `SELECT day, observation_type, readings FROM daily_counts
		WHERE day BETWEEN {:first} AND {:last} AND status = 'final'`, dbx.Params{"first": first, "last": last})
}
