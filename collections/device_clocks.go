package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ClockBounds returns the moments before which a device cannot have measured a patient: the enrollment, and the day on which the device was
// made; zero if unknown.
func ClockBounds(app core.App, patientID, deviceID string) (enrolled, made time.Time, err error) {
	var enrolledAt, madeOn string
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT enrolled_at FROM triage_scores WHERE patient = {:patient}), ''),
			COALESCE((SELECT made_on FROM devices WHERE device_id = {:device}), '')`).
		Bind(dbx.Params{"patient": patientID, "device": deviceID}).Row(&enrolledAt, &madeOn)
	return ParseInstant(enrolledAt), ParseDay(madeOn, time.UTC), wrap(err, "find the earliest valid measurement time")
}

// RecordWrongClock records a reading from a device with a wrong clock. Only the first one until a valid time is kept. A closed notification
// about a future clock does not count for a reset clock, so the clinicians are notified again.
func RecordWrongClock(tx core.App, deviceID, kind, patientID, observationID string, now time.Time) error {
	return recordClock(tx, deviceID, kind, patientID, observationID, now, time.Time{}, `ON CONFLICT (device_id) DO UPDATE SET clock_wrong_at = excluded.clock_wrong_at,
		clock_told_at = '', clock_patient = excluded.clock_patient, clock_observation = excluded.clock_observation WHERE clock_wrong_at = ''
			OR clock_told_at != '' AND (SELECT status NOT IN ('active', 'acknowledged') AND quarantine_id != '' FROM alerts
				WHERE device_id = {:device} AND device_id != '' AND type = 'device_clock' ORDER BY id DESC LIMIT 1)`)
}

// Columns of a device about its clock and its date of manufacture.
const (
	DeviceMadeOn          = "made_on"
	DeviceClockNotifiedAt = "clock_told_at"
	deviceClockWrongAt    = "clock_wrong_at"
)

// ClearClockFault clears the record of a wrong clock.
func (d *Device) ClearClockFault() {
	for _, column := range []string{deviceClockWrongAt, DeviceClockNotifiedAt, "clock_patient", "clock_observation"} {
		d.Set(column, "")
	}
}

// MeasuredAfter reports whether a reading of the device has a time after another. Events that the gateway itself sends have the gateway's time
// and do not count.
func (d *Device) MeasuredAfter(at time.Time) bool {
	return d.LastSeenAt().After(at) && d.LastReadingAt().After(at)
}

func (d *Device) ClockWrongAt() time.Time    { return instantOf(d, deviceClockWrongAt) }
func (d *Device) ClockNotifiedAt() time.Time { return instantOf(d, DeviceClockNotifiedAt) }
func (d *Device) ClockPatient() string       { return d.GetString("clock_patient") }
func (d *Device) ClockObservation() string   { return d.GetString("clock_observation") }

// RecordFutureClock records that a device sends future times and that the clinicians are notified. The clock is right again once a time after
// now arrives.
func RecordFutureClock(tx core.App, deviceID, kind, patientID string, now time.Time) error {
	return recordClock(tx, deviceID, kind, patientID, "", now, now, `ON CONFLICT (device_id) DO UPDATE SET clock_wrong_at = excluded.clock_wrong_at,
		clock_told_at = excluded.clock_told_at, clock_patient = excluded.clock_patient, clock_observation = CASE clock_wrong_at WHEN '' THEN '' ELSE clock_observation END`)
}

// ExtendFutureClock ignores a time that has been reached as evidence of a right clock, because it was in the future when it first arrived.
func ExtendFutureClock(tx core.App, deviceID string, at time.Time) error {
	return exec(tx, "record a future clock", `UPDATE devices SET clock_wrong_at = MAX(clock_wrong_at, {:at}) WHERE device_id = {:device} AND clock_wrong_at != ''`,
		dbx.Params{"at": Instant(at), "device": deviceID})
}

// recordClock stores the state of a clock. It creates a device that was not registered.
func recordClock(tx core.App, deviceID, kind, patientID, observationID string, wrong, notified time.Time, onConflict string) error {
	return exec(tx, "record a wrong clock", `INSERT INTO devices (device_id, device_type, kind, status, created_at, clock_wrong_at, clock_told_at, clock_patient, clock_observation)
		VALUES ({:device}, {:kind}, {:kind}, 'discovered', {:wrong}, {:wrong}, {:told}, {:patient}, {:observation}) `+onConflict, dbx.Params{
		"device": deviceID, "kind": kind, "wrong": Instant(wrong), "told": Instant(notified), "patient": patientID, "observation": observationID,
	})
}

// OpenClockAlerts returns the open alerts of a type about a device and patient, newest first.
func OpenClockAlerts(app core.App, deviceID, patientID, alertType string) ([]*Alert, error) {
	return listOf[Alert](app, Alerts, dbx.NewExp(`device_id = {:device} AND device_id != '' AND patient = {:patient} AND type = {:type}
		AND status IN ('active', 'acknowledged')`, dbx.Params{"device": deviceID, "patient": patientID, "type": alertType}), "id DESC")
}

// ResolveClockAlerts closes the alerts about a device's clock, except those with an undecided quarantined event.
func ResolveClockAlerts(tx core.App, deviceID, alertType, status, by string, now time.Time) ([]ResolvedAlert, error) {
	return resolveAlerts(tx, `device_id = {:device} AND device_id != '' AND type = {:type} AND status = 'active' AND NOT EXISTS (SELECT 1 FROM gateway_events g
		WHERE g.id = quarantine_id AND quarantine_id != '' AND g.status IN ('`+EventOpen+`', '`+EventRejected+`'))`,
		dbx.Params{"device": deviceID, "type": alertType}, status, by, now)
}

// ResolveAlert gives an open alert a closed status.
func ResolveAlert(tx core.App, id, status, by string, now time.Time) (ended bool, err error) {
	list, err := resolveAlerts(tx, `id = {:id} AND status IN ('active', 'acknowledged')`, dbx.Params{"id": id}, status, by, now)
	return len(list) > 0, err
}

// UndecidedClockAlerts returns a patient's active alerts of a type about quarantined events that have no escalation and no alert of another
// type, newest first.
func UndecidedClockAlerts(app core.App, patientID, alertType, butNot string) ([]*Alert, error) {
	return listOf[Alert](app, Alerts, dbx.NewExp(`patient = {:patient} AND type = {:type} AND status = 'active' AND escalation = '' AND quarantine_id != ''
		AND EXISTS (SELECT 1 FROM gateway_events g WHERE g.id = quarantine_id AND g.status IN ('`+EventOpen+`', '`+EventRejected+`') AND g.alert = '')
		AND NOT EXISTS (SELECT 1 FROM alerts o WHERE o.quarantine_id = alerts.quarantine_id AND o.quarantine_id != '' AND o.type = {:other})`,
		dbx.Params{"patient": patientID, "type": alertType, "other": butNot}), "id DESC")
}

// DecidedEvents returns the implausible events of a device and patient with one device time that a person released or discarded, the last
// decision first.
func DecidedEvents(app core.App, deviceID, patientID string, at time.Time) ([]string, error) {
	return queryColumn[string](app, "find decided events", `SELECT id FROM gateway_events WHERE device_id = {:device} AND device_id != ''
		AND timestamp = {:at} AND implausible = TRUE AND status IN ('`+EventReleased+`', '`+EventDiscarded+`') AND (patient = {:patient}
			OR EXISTS (SELECT 1 FROM alerts a WHERE a.quarantine_id = gateway_events.id AND a.quarantine_id != '' AND a.patient = {:patient}))
		ORDER BY closed_at DESC, id`, dbx.Params{"device": deviceID, "patient": patientID, "at": Instant(at)})
}

// FutureEvents returns the undecided events of a device and patient without an open alert, newest first.
func FutureEvents(app core.App, deviceID, patientID string, limit int) ([]string, error) {
	return queryColumn[string](app, "list events of a future clock", `SELECT id FROM gateway_events WHERE device_id = {:device} AND patient = {:patient}
		AND patient != '' AND status = 'rejected' AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.quarantine_id = gateway_events.id AND a.quarantine_id != ''
			AND a.status IN ('active', 'acknowledged')) AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.id = gateway_events.alert
			AND a.status IN ('active', 'acknowledged')) ORDER BY received_at DESC, id DESC LIMIT +{:limit}`,
		dbx.Params{"device": deviceID, "patient": patientID, "limit": limit})
}
