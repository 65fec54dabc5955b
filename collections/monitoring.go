package collections

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// activePatients matches monitored patients; careTeamOf narrows to a user's care teams unless "".
func activePatients(id, careTeamOf string) Conditions {
	where := Conditions{dbx.NewExp("active = TRUE AND deleted_at = ''")}
	if careTeamOf != "" {
		where = append(where, OnCareTeam(id, careTeamOf))
	}
	return where
}

// ScheduledPatient is an active patient's measurement schedule.
type ScheduledPatient struct {
	ID        string `db:"id"`
	Schedule  string `db:"schedule"` // JSON; "" for none
	CreatedAt string `db:"created_at"`
	Zone      string `db:"time_zone"`
	holdRow
}

// Hold returns the patient's latest hold.
func (p ScheduledPatient) Hold() PatientHold { return p.hold() }

// ScheduledPatients returns the schedules of the active patients.
func ScheduledPatients(app core.App, careTeamOf string) (patients []ScheduledPatient, err error) {
	err = app.DB().Select("id", "COALESCE(monitoring_schedule, '') AS schedule", "created_at", "time_zone").AndSelect(strings.Split(holdColumns, ", ")...).From(Patients).
		Where(AllOf(activePatients("id", careTeamOf))).All(&patients)
	return patients, wrap(err, "list scheduled patients")
}

// AssignmentWithOrder is a device assignment with the latest order of the device for the patient.
type AssignmentWithOrder struct {
	Patient   string `db:"patient"`
	Kind      string `db:"kind"`
	From      string `db:"assigned_at"`
	To        string `db:"unassigned_at"`
	Delivery  string `db:"delivery"`
	OrderedAt string `db:"ordered_at"`
	Read      bool   `db:"read"` // a reading arrived since the assignment
}

// AssignmentsSince returns the assignments that had not ended before a day.
func AssignmentsSince(app core.App, day string) ([]AssignmentWithOrder, error) {
	return queryAll[AssignmentWithOrder](app, "list device assignments", `SELECT a.patient, d.kind, a.assigned_at, a.unassigned_at, COALESCE(o.estimated_delivery, '') AS delivery,
			COALESCE(o.created_at, '') AS ordered_at, d.last_reading_at >= a.assigned_at AS read
		FROM device_assignments a JOIN devices d ON d.device_id = a.device_id
		LEFT JOIN device_orders o ON o.id = (SELECT id FROM device_orders WHERE device_id = a.device_id AND patient = a.patient
			AND status != 'cancelled' ORDER BY created_at DESC LIMIT 1)
		WHERE d.kind != '' AND (a.unassigned_at = '' OR a.unassigned_at >= {:first})`, dbx.Params{"first": day})
}

// PatientDay is a day of a patient.
type PatientDay struct{ Patient, Day string }

// ReadingsByDay counts the daily readings of active patients; first and last are inclusive.
func ReadingsByDay(app core.App, careTeamOf, first, last string) (map[PatientDay]int, error) {
	query := app.DB().Select("r.patient", "r.day", "SUM(r.readings)").From("patients p").
		Join("CROSS JOIN", "reading_days r", dbx.NewExp( // CROSS fixes the join order: one index search per patient
			"r.patient = p.id AND r.day BETWEEN {:first} AND {:last}", dbx.Params{"first": first, "last": last})).
		Where(AllOf(activePatients("p.id", careTeamOf))).GroupBy("r.patient", "r.day")
	received := map[PatientDay]int{}
	err := eachRow("read reading days", query, func(rows *dbx.Rows) error {
		var key PatientDay
		var readings int
		err := rows.Scan(&key.Patient, &key.Day, &readings)
		received[key] = readings
		return err
	})
	return received, err
}

// CountMonitored counts the active patients with at least one device.
func CountMonitored(app core.App, careTeamOf string) (int, error) {
	where := activePatients("id", careTeamOf).And("EXISTS (SELECT 1 FROM devices d WHERE d.patient = patients.id AND d.patient != '')")
	return countOf(app.DB().Select("COUNT(*)").From(Patients).Where(AllOf(where)))
}

// CountCompliant counts the active patients of a time zone, and those with at least that many days with device data since a day.
func CountCompliant(app core.App, careTeamOf, zone, since string, days int) (all, enough int, err error) {
	where := append(activePatients("id", careTeamOf), dbx.HashExp{"time_zone": zone})
	err = app.DB().Select("COUNT(*)", `COALESCE(SUM((SELECT COUNT(DISTINCT r.day) FROM reading_days r
			WHERE r.patient = patients.id AND r.day >= {:since} AND r.device_readings > 0) >= {:days}), 0)`).
		From(Patients).Where(AllOf(where)).AndBind(dbx.Params{"since": since, "days": days}).Row(&all, &enough)
	return all, enough, wrap(err, "count compliant patients")
}

// CountUnacknowledged counts the unacknowledged alerts of some types.
func CountUnacknowledged(app core.App, careTeamOf string, types []string) (int, error) {
	unacknowledged := false
	return Conditions{AnyOf("type", types)}.Is("acknowledged", &unacknowledged).OnCareTeamOf(careTeamOf).Count(app, Alerts)
}

// AverageProcessing returns the mean processing time of the readings stored since a time, in milliseconds.
func AverageProcessing(app core.App, careTeamOf string, since time.Time) (mean float64, err error) {
	where := Conditions{dbx.NewExp("created_at > {:since}", dbx.Params{"since": FormatInstant(since)})}.OnCareTeamOf(careTeamOf)
	err = app.DB().Select("COALESCE(AVG(processing_ms), 0)").From(Observations).Where(AllOf(where)).Row(&mean)
	return mean, wrap(err, "average processing time")
}

// WatchedPatient is the part of an active patient that the check for missed readings needs.
type WatchedPatient struct {
	ID        string
	TimeZone  string   // IANA name, or "" for the practice's
	Schedule  Schedule // nil for none
	CreatedAt time.Time
	Hold      PatientHold // the latest, without notes
}

// PatientZones returns the names of the active patients' time zones; "" is the practice's.
func PatientZones(app core.App) (zones []string, err error) {
	err = app.DB().NewQuery(`SELECT DISTINCT time_zone FROM patients WHERE active = TRUE AND deleted_at = '' ORDER BY time_zone`).Column(&zones)
	return zones, wrap(err, "list time zones of patients")
}

// WatchedPatients returns the active patients of a time zone, in order of ids.
func WatchedPatients(app core.App, zone string) ([]WatchedPatient, error) {
	return watchedPatients(app, "time_zone = {:value}", zone)
}

// FindWatchedPatient finds an active patient.
func FindWatchedPatient(app core.App, id string) (WatchedPatient, error) {
	found, err := watchedPatients(app, "id = {:value}", id)
	if err == nil && len(found) == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return WatchedPatient{}, err
	}
	return found[0], nil
}

func watchedPatients(app core.App, where, value string) (patients []WatchedPatient, err error) {
	var rows []struct {
		ID        string `db:"id"`
		TimeZone  string `db:"time_zone"`
		Schedule  string `db:"monitoring_schedule"`
		CreatedAt string `db:"created_at"`
		holdRow
	}
	err = app.DB().NewQuery(`SELECT id, time_zone, COALESCE(monitoring_schedule, '') AS monitoring_schedule, created_at, ` + holdColumns + ` FROM patients
		WHERE active = TRUE AND deleted_at = '' AND ` + where + ` ORDER BY id`).Bind(dbx.Params{"value": value}).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("list watched patients: %w", err)
	}
	for _, row := range rows {
		patient := WatchedPatient{ID: row.ID, TimeZone: row.TimeZone, CreatedAt: ParseInstant(row.CreatedAt), Hold: row.hold()}
		if json.Unmarshal([]byte(row.Schedule), &patient.Schedule) != nil {
			patient.Schedule = nil // no schedule stored
		}
		patients = append(patients, patient)
	}
	return patients, nil
}

// ActiveProviderEmail returns the email address of a patient's primary provider, or "" if none can sign in.
func ActiveProviderEmail(app core.App, patientID string) (email string, err error) {
	err = app.DB().NewQuery(`SELECT COALESCE(u.email, '') FROM patients p JOIN users u ON u.id = p.primary_provider AND u.is_active = TRUE
		WHERE p.id = {:patient}`).Bind(dbx.Params{"patient": patientID}).Row(&email)
	return email, wrap(IgnoreNotFound(err), "find primary provider")
}

// MeasuredKind is a patient and a kind of observation with recent readings.
type MeasuredKind struct {
	PatientID string `db:"patient"`
	Kind      string `db:"observation_type"`
	TimeZone  string `db:"time_zone"`
}

// RecentlyMeasured returns the active patients and kinds with readings stored since a time.
func RecentlyMeasured(app core.App, since time.Time) ([]MeasuredKind, error) {
	return queryAll[MeasuredKind](app, "list recently measured", `SELECT DISTINCT o.patient, o.observation_type, p.time_zone
		FROM observations o INDEXED BY idx_observations_created
		JOIN patients p ON p.id = o.patient AND p.active = TRUE AND p.deleted_at = ''
		WHERE o.created_at >= {:since} AND o.status = 'final' ORDER BY o.patient, o.observation_type`,
		dbx.Params{"since": FormatInstant(since)})
}

// CountTeamPatients counts the active patients of a user's care teams.
func CountTeamPatients(app core.App, userID string) (int, error) {
	return countOf(app.DB().Select("COUNT(*)").From(Patients).Where(dbx.And(dbx.NewExp("active = TRUE AND deleted_at = ''"), OnCareTeam("id", userID))))
}

// CountAlertsSince counts alerts by level; careTeamOf narrows to a user's care teams, here and in the next functions, and "" counts all.
func CountAlertsSince(app core.App, careTeamOf string, since time.Time) (map[string]int, error) {
	where := Conditions{dbx.NewExp("created_at >= {:since}", dbx.Params{"since": FormatInstant(since)})}.OnCareTeamOf(careTeamOf)
	return readMap[int]("count alerts", app.DB().Select("level", "COUNT(*) AS count").From(Alerts).Where(AllOf(where)).GroupBy("level"))
}

// CountOpenEscalations counts open and in-progress escalations.
func CountOpenEscalations(app core.App, careTeamOf string) (int, error) {
	return Conditions{}.And("status IN ('open', 'in_progress')").OnCareTeamOf(careTeamOf).Count(app, Escalations)
}

// CountPatientsToReview counts the patients who need a review.
func CountPatientsToReview(app core.App, careTeamOf string) (int, error) {
	return Conditions{}.And("listed = TRUE AND needs_review = TRUE").OnCareTeamOf(careTeamOf).Count(app, TriageScores)
}

// CountPatientsBehind counts active patients with a device and readings on fewer than that many days since a day, YYYY-MM-DD.
func CountPatientsBehind(app core.App, careTeamOf, since string, days int) (int, error) {
	where := Conditions{dbx.NewExp(`p.active = TRUE AND p.deleted_at = '' AND
		EXISTS (SELECT 1 FROM device_assignments a WHERE a.patient = p.id AND a.unassigned_at = '') AND
		(SELECT COUNT(DISTINCT r.day) FROM reading_days r WHERE r.patient = p.id AND r.day >= {:since}) < {:days}`,
		dbx.Params{"since": since, "days": days})}
	if careTeamOf != "" {
		where = append(where, OnCareTeam("p.id", careTeamOf))
	}
	return where.Count(app, "patients p")
}

// BillingByStatus counts billing entries by status.
func BillingByStatus(app core.App) (map[string]int, error) {
	return readMap[int]("count billing entries", app.DB().Select("lifecycle_status", "COUNT(*) AS count").From(BillingEntries).
		Where(dbx.In("lifecycle_status", "pending_review", "reviewed", "denied")).GroupBy("lifecycle_status"))
}

func countOf(query *dbx.SelectQuery) (n int, err error) {
	err = query.Row(&n)
	return n, wrap(err, "count")
}

// LastGatewayReading returns when a gateway's last reading was stored in (from, until]; zero for none. It reads one index backwards.
func LastGatewayReading(app core.App, from, until time.Time) (time.Time, error) {
	at, err := queryValue[string](app, "find the last gateway reading", `SELECT created_at FROM observations
		WHERE source = 'gateway' AND created_at > {:from} AND created_at <= {:until} ORDER BY created_at DESC LIMIT 1`,
		dbx.Params{"from": FormatInstant(from), "until": FormatInstant(until)})
	return ParseInstant(at), IgnoreNotFound(err)
}

// CountGatewayReadings counts the gateways' readings stored in (from, until].
func CountGatewayReadings(app core.App, from, until time.Time) (int, error) {
	return queryValue[int](app, "count gateway readings", `SELECT COUNT(*) FROM observations
		WHERE source = 'gateway' AND created_at > {:from} AND created_at <= {:until}`, dbx.Params{"from": FormatInstant(from), "until": FormatInstant(until)})
}
