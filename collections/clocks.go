package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ClockBounds are the moments before which a device cannot have measured anything of a patient's: when the patient was enrolled, and the
// day on which the device was made; zero where they are not known.
func ClockBounds(app core.App, patientID, deviceID string) (enrolled, made time.Time, err error) {
	var enrolledAt, madeOn string
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT enrolled_at FROM triage_scores WHERE patient = {:patient}), ''),
			COALESCE((SELECT made_on FROM devices WHERE device_id = {:device}), '')`).
		Bind(dbx.Params{"patient": patientID, "device": deviceID}).Row(&enrolledAt, &madeOn)
	return ParseInstant(enrolledAt), ParseDay(madeOn, time.UTC), wrap(err, "find what a device's clock may say")
}

// NoteWrongClock notes that a reading came from a device whose clock is wrong; only the first until a sane time comes is kept. What was told
// of a clock that was ahead, and is over, says nothing of one that is dead: people are told anew.
func NoteWrongClock(tx core.App, deviceID, kind, patientID, observationID string, now time.Time) error {
	return noteClock(tx, deviceID, kind, patientID, observationID, now, time.Time{}, `ON CONFLICT (device_id) DO UPDATE SET clock_wrong_at = excluded.clock_wrong_at,
		clock_told_at = '', clock_patient = excluded.clock_patient, clock_observation = excluded.clock_observation WHERE clock_wrong_at = ''
			OR clock_told_at != '' AND (SELECT status NOT IN ('active', 'acknowledged') AND quarantine_id != '' FROM alerts
				WHERE device_id = {:device} AND device_id != '' AND type = 'device_clock' ORDER BY id DESC LIMIT 1)`)
}

// The columns of a device that say how its clock stands, and when it was made.
const (
	DeviceMadeOn       = "made_on"
	DeviceClockToldAt  = "clock_told_at"
	deviceClockWrongAt = "clock_wrong_at"
)

// ClockRight forgets that the clock was wrong.
func (d *Device) ClockRight() {
	for _, column := range []string{deviceClockWrongAt, DeviceClockToldAt, "clock_patient", "clock_observation"} {
		d.Set(column, "")
	}
}

// MeasuredAfter reports whether a reading of the device has a time after another: what its gateway says of it by itself tells nothing of its
// clock.
func (d *Device) MeasuredAfter(at time.Time) bool {
	return d.LastSeenAt().After(at) && d.LastReadingAt().After(at)
}

func (d *Device) ClockWrongAt() time.Time  { return instantOf(d, deviceClockWrongAt) }
func (d *Device) ClockToldAt() time.Time   { return instantOf(d, DeviceClockToldAt) }
func (d *Device) ClockPatient() string     { return d.GetString("clock_patient") }
func (d *Device) ClockObservation() string { return d.GetString("clock_observation") }

// NoteClockAhead notes that a device says of the future what it measures, and that its people know: it is right again once a time comes that
// lies after this.
func NoteClockAhead(tx core.App, deviceID, kind, patientID string, now time.Time) error {
	return noteClock(tx, deviceID, kind, patientID, "", now, now, `ON CONFLICT (device_id) DO UPDATE SET clock_wrong_at = excluded.clock_wrong_at,
		clock_told_at = excluded.clock_told_at, clock_patient = excluded.clock_patient, clock_observation = CASE clock_wrong_at WHEN '' THEN '' ELSE clock_observation END`)
}

// NoteClockStillAhead says that a time that has come is no sign of a right clock: it lay in the future when it came first.
func NoteClockStillAhead(tx core.App, deviceID string, at time.Time) error {
	return exec(tx, "note a clock that is ahead", `UPDATE devices SET clock_wrong_at = MAX(clock_wrong_at, {:at}) WHERE device_id = {:device} AND clock_wrong_at != ''`,
		dbx.Params{"at": Instant(at), "device": deviceID})
}

// noteClock writes how a clock stands; of a device that was not heard of before it is the first thing that is known.
func noteClock(tx core.App, deviceID, kind, patientID, observationID string, wrong, told time.Time, known string) error {
	return exec(tx, "note a wrong clock", `INSERT INTO devices (device_id, device_type, kind, status, created_at, clock_wrong_at, clock_told_at, clock_patient, clock_observation)
		VALUES ({:device}, {:kind}, {:kind}, 'discovered', {:wrong}, {:wrong}, {:told}, {:patient}, {:observation}) `+known, dbx.Params{
		"device": deviceID, "kind": kind, "wrong": Instant(wrong), "told": Instant(told), "patient": patientID, "observation": observationID,
	})
}

// OpenClockAlerts are the alerts of a type about a device and a patient that are not over, the newest first.
func OpenClockAlerts(app core.App, deviceID, patientID, alertType string) ([]*Alert, error) {
	return listOf[Alert](app, Alerts, dbx.NewExp(`device_id = {:device} AND device_id != '' AND patient = {:patient} AND type = {:type}
		AND status IN ('active', 'acknowledged')`, dbx.Params{"device": deviceID, "patient": patientID, "type": alertType}), "id DESC")
}

// EndClockAlerts ends the alerts about a device's clock, but for those that show what nobody has decided about.
func EndClockAlerts(tx core.App, deviceID, alertType, status, by string, now time.Time) ([]EndedAlert, error) {
	return endAlerts(tx, `device_id = {:device} AND device_id != '' AND type = {:type} AND status = 'active' AND NOT EXISTS (SELECT 1 FROM gateway_events g
		WHERE g.id = quarantine_id AND quarantine_id != '' AND g.status IN ('`+EventOpen+`', '`+EventRejected+`'))`,
		dbx.Params{"device": deviceID, "type": alertType}, status, by, now)
}

// EndAlert gives an alert that is not over a status that ends it.
func EndAlert(tx core.App, id, status, by string, now time.Time) (ended bool, err error) {
	list, err := endAlerts(tx, `id = {:id} AND status IN ('active', 'acknowledged')`, dbx.Params{"id": id}, status, by, now)
	return len(list) > 0, err
}

// UndecidedClockAlerts are a patient's open alerts of a type about events that wait for somebody, that belong to no escalation and about whose
// events there is no alert of another type, the newest first.
func UndecidedClockAlerts(app core.App, patientID, alertType, butNot string) ([]*Alert, error) {
	return listOf[Alert](app, Alerts, dbx.NewExp(`patient = {:patient} AND type = {:type} AND status = 'active' AND escalation = '' AND quarantine_id != ''
		AND EXISTS (SELECT 1 FROM gateway_events g WHERE g.id = quarantine_id AND g.status IN ('`+EventOpen+`', '`+EventRejected+`') AND g.alert = '')
		AND NOT EXISTS (SELECT 1 FROM alerts o WHERE o.quarantine_id = alerts.quarantine_id AND o.quarantine_id != '' AND o.type = {:other})`,
		dbx.Params{"patient": patientID, "type": alertType, "other": butNot}), "id DESC")
}

// DecidedEvents are the implausible events of a device and patient, of one time by its own clock, about which somebody has decided, the last
// decision first.
func DecidedEvents(app core.App, deviceID, patientID string, at time.Time) ([]string, error) {
	return queryColumn[string](app, "find what was decided", `SELECT id FROM gateway_events WHERE device_id = {:device} AND device_id != ''
		AND timestamp = {:at} AND implausible = TRUE AND status IN ('`+EventReleased+`', '`+EventDiscarded+`') AND (patient = {:patient}
			OR EXISTS (SELECT 1 FROM alerts a WHERE a.quarantine_id = gateway_events.id AND a.quarantine_id != '' AND a.patient = {:patient}))
		ORDER BY closed_at DESC, id`, dbx.Params{"device": deviceID, "patient": patientID, "at": Instant(at)})
}

// EventsAhead are the events of a device that wait for a decision about a patient and of which no alert is open, the newest first.
func EventsAhead(app core.App, deviceID, patientID string, limit int) ([]string, error) {
	return queryColumn[string](app, "list what a clock that is ahead said", `SELECT id FROM gateway_events WHERE device_id = {:device} AND patient = {:patient}
		AND patient != '' AND status = 'rejected' AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.quarantine_id = gateway_events.id AND a.quarantine_id != ''
			AND a.status IN ('active', 'acknowledged')) AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.id = gateway_events.alert
			AND a.status IN ('active', 'acknowledged')) ORDER BY received_at DESC, id DESC LIMIT +{:limit}`,
		dbx.Params{"device": deviceID, "patient": patientID, "limit": limit})
}
