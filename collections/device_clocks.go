package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ClockFacts is what is known about a device's clock when a reading arrives; zero times are unknown.
type ClockFacts struct {
	// Enrolled is when the practice began to monitor the patient: the enrollment, or an earlier assignment of a device.
	Enrolled time.Time
	// Assigned is the start of the device's assignment, if the patient holds it now. Made is the day on which it was made.
	Assigned, Made time.Time
	// Newest is the newest time of the device's own readings.
	Newest time.Time
	// IsProven: a reading of the device arrived soon after its time, and none had a doubtful time since.
	IsProven bool
	// WasAhead: the device sent this same time before, when it was in the future.
	WasAhead bool
}

// maxAheadLookup bounds how far ahead a future measurement may have been that is looked up when its time comes.
const maxAheadLookup = 7 * 24 * time.Hour

// FindClockFacts returns the facts about a patient and a device that sends a time.
func FindClockFacts(app core.App, patientID, deviceID string, at time.Time) (f ClockFacts, err error) {
	var ahead, proven bool
	var enrolled, assigned, made, newest string
	err = app.DB().NewQuery(`SELECT
			COALESCE((SELECT MIN(t.enrolled_at, COALESCE((SELECT MIN(assigned_at) FROM device_assignments WHERE patient = t.patient), t.enrolled_at))
				FROM triage_scores t WHERE t.patient = {:patient}), ''),
			COALESCE((SELECT assigned_at FROM device_assignments WHERE device_id = {:device} AND unassigned_at = '' AND patient = {:patient}), ''),
			COALESCE(d.made_on, ''), COALESCE(d.newest_measured_at, ''), COALESCE(d.clock_proven_at, '') != '',
			EXISTS (SELECT 1 FROM gateway_events e WHERE e.device_id = {:device} AND e.device_id != '' AND e.received_at > {:since} AND e.received_at < {:at}
				AND e.timestamp = {:at} AND e.implausible = TRUE)
		FROM (SELECT 1) LEFT JOIN devices d ON d.device_id = {:device}`).
		Bind(dbx.Params{"patient": patientID, "device": deviceID, "at": FormatInstant(at), "since": FormatInstant(at.Add(-maxAheadLookup))}).
		Row(&enrolled, &assigned, &made, &newest, &proven, &ahead)
	return ClockFacts{
		Enrolled: ParseInstant(enrolled), Assigned: ParseInstant(assigned), Made: ParseDay(made, time.UTC),
		Newest: ParseInstant(newest), IsProven: proven, WasAhead: ahead,
	}, wrap(err, "find what is known about a device's clock")
}

// Arrival is when a reading was measured, by its device, and received.
type Arrival struct{ MeasuredAt, ReceivedAt time.Time }

// LastArrival returns the patient's reading of a device that arrived last before a time; zero for none. What a person or a replay stored later is
// excluded.
func LastArrival(app core.App, patientID, deviceID string, before time.Time) (last Arrival, err error) {
	var measured, received string
	err = app.DB().NewQuery(`SELECT measured_at, created_at FROM observations
		WHERE patient = {:patient} AND device_id = {:device} AND source = 'gateway' AND received_at = '' AND created_at < {:before}
		ORDER BY created_at DESC LIMIT 1`).
		Bind(dbx.Params{"patient": patientID, "device": deviceID, "before": FormatInstant(before)}).Row(&measured, &received)
	return Arrival{ParseInstant(measured), ParseInstant(received)}, wrap(IgnoreNotFound(err), "find the last reading of a device")
}

// EndClockProof records that nothing proves the clock of a device any more.
func EndClockProof(tx core.App, deviceID string) error {
	return exec(tx, "end the proof of a clock", `UPDATE devices SET clock_proven_at = '' WHERE device_id = {:device} AND clock_proven_at != ''`,
		dbx.Params{"device": deviceID})
}

// Columns of a device about its clock and its date of manufacture.
const (
	DeviceMadeOn          = "made_on"
	deviceClockNotifiedAt = "clock_told_at"
	deviceClockWrongAt    = "clock_wrong_at"
)

// ClearClockFault clears the record of doubtful and future times.
func (d *Device) ClearClockFault() {
	for _, column := range []string{deviceClockWrongAt, deviceClockNotifiedAt, "clock_patient", "clock_observation"} {
		d.Set(column, "")
	}
}

// MeasuredAfter reports whether a reading of the device has a time after another. Events that the gateway itself sends have the gateway's time
// and do not count.
func (d *Device) MeasuredAfter(at time.Time) bool {
	return d.LastSeenAt().After(at) && d.LastReadingAt().After(at)
}

func (d *Device) ClockWrongAt() time.Time { return instantOf(d, deviceClockWrongAt) }

// RecordClockFault records that a device sends doubtful or future times and that the clinicians are notified. Nothing proves its clock
// from then on, and it is right again once a time after now arrives. It creates a device that was not registered.
func RecordClockFault(tx core.App, deviceID, kind, patientID string, now time.Time) error {
	return exec(tx, "record a doubtful time", `INSERT INTO devices (device_id, device_type, kind, status, created_at, clock_wrong_at, clock_told_at, clock_patient)
		VALUES ({:device}, {:kind}, {:kind}, 'discovered', {:now}, {:now}, {:now}, {:patient}) ON CONFLICT (device_id) DO UPDATE SET
			clock_wrong_at = excluded.clock_wrong_at, clock_told_at = excluded.clock_told_at, clock_patient = excluded.clock_patient,
			clock_proven_at = ''`, dbx.Params{
		"device": deviceID, "kind": kind, "now": FormatInstant(now), "patient": patientID,
	})
}

// ExtendFutureClock records that a device time was in the future on arrival, so that reaching it
// does not count as evidence of a right clock. From then on nothing proves the clock.
func ExtendFutureClock(tx core.App, deviceID string, at time.Time) error {
	return exec(tx, "record a future clock", `UPDATE devices SET clock_wrong_at = MAX(clock_wrong_at, {:at}), clock_proven_at = ''
		WHERE device_id = {:device} AND clock_wrong_at != ''`,
		dbx.Params{"at": FormatInstant(at), "device": deviceID})
}

// ExtendNewestTime records the true time of a reading of a device, which a person confirmed.
func ExtendNewestTime(tx core.App, deviceID string, at time.Time) error {
	return exec(tx, "record a confirmed time", `UPDATE devices SET newest_measured_at = MAX(newest_measured_at, {:at}) WHERE device_id = {:device}`,
		dbx.Params{"at": FormatInstant(at), "device": deviceID})
}

// ClockAlertSince returns the last alert of a type about doubtful times of a device and patient raised since a time; nil for none. Alerts
// about a future clock, which name a quarantined event, and retracted ones are excluded.
func ClockAlertSince(app core.App, deviceID, patientID, alertType string, since time.Time) (*Alert, error) {
	found, err := listOf[Alert](app, Alerts, dbx.NewExp(`device_id = {:device} AND device_id != '' AND patient = {:patient} AND type = {:type}
		AND quarantine_id = '' AND created_at >= {:since} AND resolution_reason != 'withdrawn'`, dbx.Params{
		"device": deviceID, "patient": patientID, "type": alertType, "since": FormatInstant(since),
	}), "id DESC")
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// ClockAlertKey selects the alerts about a device's clock for one patient, and the suspect reason
// of their readings.
type ClockAlertKey struct{ DeviceID, PatientID, AlertType, Reason string }

// ResolveAnsweredClockAlerts gives the open alerts about a clock a closed status, unless a reading of the device still waits for a decision.
func ResolveAnsweredClockAlerts(tx core.App, q ClockAlertKey, status, by string, now time.Time) ([]ResolvedAlert, error) {
	return resolveAlerts(tx, `device_id = {:device} AND device_id != '' AND patient = {:patient} AND type = {:type} AND quarantine_id = ''
		AND status IN ('active', 'acknowledged') AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.status = 'suspect' AND o.patient = {:patient}
			AND o.device_id = {:device} AND o.suspect_reason = {:reason})`,
		dbx.Params{"device": q.DeviceID, "patient": q.PatientID, "type": q.AlertType, "reason": q.Reason}, status, by, now)
}

// LatestWaitingReading returns the id of the newest stored suspect reading that a clock alert is
// about; "" for none.
func LatestWaitingReading(app core.App, q ClockAlertKey) (string, error) {
	return queryValue[string](app, "find a reading with a doubtful time", `SELECT COALESCE((SELECT id FROM observations WHERE status = 'suspect' AND patient = {:patient}
		AND device_id = {:device} AND device_id != '' AND suspect_reason = {:reason} ORDER BY created_at DESC, id DESC LIMIT 1), '')`,
		dbx.Params{"patient": q.PatientID, "device": q.DeviceID, "reason": q.Reason})
}

// EndTimeDoubt dates the alerts of a reading by its confirmed time.
func EndTimeDoubt(tx core.App, observationID string, at, now time.Time) error {
	return update(tx, "date the alerts of a reading", Alerts, dbx.Params{"time_in_doubt": false, "measured_at": FormatInstant(at), "updated_at": FormatInstant(now)},
		dbx.NewExp("observation = {:observation} AND observation != '' AND time_in_doubt = TRUE", dbx.Params{"observation": observationID}))
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

// EventsOfMeasurement returns the quarantined events of a device and patient with a device time in one second, decided ones first, the last
// decision first. Undecided ones may have no patient yet.
func EventsOfMeasurement(app core.App, deviceID, patientID string, at time.Time) ([]string, error) {
	second := at.Truncate(time.Second)
	return queryColumn[string](app, "find the events of a measurement", `SELECT id FROM gateway_events WHERE device_id = {:device} AND device_id != ''
		AND status != 'handled' AND status != 'ignored' AND timestamp >= {:from} AND timestamp < {:until} AND (patient = {:patient}
			OR EXISTS (SELECT 1 FROM alerts a WHERE a.quarantine_id = gateway_events.id AND a.quarantine_id != '' AND a.patient = {:patient})
			OR patient = '' AND status IN ('`+EventOpen+`', '`+EventRejected+`')
				AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.quarantine_id = gateway_events.id AND a.quarantine_id != ''))
		ORDER BY closed_at DESC, id`,
		dbx.Params{"device": deviceID, "patient": patientID, "from": FormatInstant(second), "until": FormatInstant(second.Add(time.Second))})
}

// FutureEvents returns the undecided events of a device and patient without an open alert, newest first.
func FutureEvents(app core.App, deviceID, patientID string, limit int) ([]string, error) {
	return queryColumn[string](app, "list events of a future clock", `SELECT id FROM gateway_events WHERE device_id = {:device} AND patient = {:patient}
		AND patient != '' AND status = 'rejected' AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.quarantine_id = gateway_events.id AND a.quarantine_id != ''
			AND a.status IN ('active', 'acknowledged')) AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.id = gateway_events.alert
			AND a.status IN ('active', 'acknowledged')) ORDER BY received_at DESC, id DESC LIMIT +{:limit}`,
		dbx.Params{"device": deviceID, "patient": patientID, "limit": limit})
}
