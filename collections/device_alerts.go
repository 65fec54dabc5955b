package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

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
