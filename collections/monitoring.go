package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// activePatients are those who are monitored; of a person's care teams unless "".
func activePatients(id, careTeamOf string) Conditions {
	where := Conditions{dbx.NewExp("active = TRUE AND deleted_at = ''")}
	if careTeamOf != "" {
		where = append(where, OnCareTeam(id, careTeamOf))
	}
	return where
}

// ScheduledPatient is what an active patient is expected to measure.
type ScheduledPatient struct {
	ID        string `db:"id"`
	Schedule  string `db:"schedule"` // JSON; "" for none
	CreatedAt string `db:"created_at"`
	Zone      string `db:"time_zone"`
}

// ScheduledPatients are the active patients.
func ScheduledPatients(app core.App, careTeamOf string) (patients []ScheduledPatient, err error) {
	err = app.DB().Select("id", "COALESCE(monitoring_schedule, '') AS schedule", "created_at", "time_zone").From(Patients).
		Where(Every(activePatients("id", careTeamOf))).All(&patients)
	return patients, wrap(err, "list watched patients")
}

// DatedHolding is a patient's time with a device, and the latest order that was to bring it.
type DatedHolding struct {
	Patient   string `db:"patient"`
	Kind      string `db:"kind"`
	From      string `db:"assigned_at"`
	To        string `db:"unassigned_at"`
	Delivery  string `db:"delivery"`
	OrderedAt string `db:"ordered_at"`
	Read      bool   `db:"read"` // since it was assigned
}

// HoldingsSince are the times with devices of a kind that had not ended before a day.
func HoldingsSince(app core.App, day string) ([]DatedHolding, error) {
	return queryAll[DatedHolding](app, "list held devices", `SELECT a.patient, d.kind, a.assigned_at, a.unassigned_at, COALESCE(o.estimated_delivery, '') AS delivery,
			COALESCE(o.created_at, '') AS ordered_at, d.last_reading_at >= a.assigned_at AS read
		FROM device_assignments a JOIN devices d ON d.device_id = a.device_id
		LEFT JOIN device_orders o ON o.id = (SELECT id FROM device_orders WHERE device_id = a.device_id AND patient = a.patient
			AND status != 'cancelled' ORDER BY created_at DESC LIMIT 1)
		WHERE d.kind != '' AND (a.unassigned_at = '' OR a.unassigned_at >= {:first})`, dbx.Params{"first": day})
}

// PatientDay is a day of a patient.
type PatientDay struct{ Patient, Day string }

// ReadingsByDay walks the days of the active patients, not those of all times. Both ends are included.
func ReadingsByDay(app core.App, careTeamOf, first, last string) (map[PatientDay]int, error) {
	query := app.DB().Select("r.patient", "r.day", "SUM(r.readings)").From("patients p").
		Join("CROSS JOIN", "reading_days r", dbx.NewExp( // CROSS fixes the order: a search for each patient
			"r.patient = p.id AND r.day BETWEEN {:first} AND {:last}", dbx.Params{"first": first, "last": last})).
		Where(Every(activePatients("p.id", careTeamOf))).GroupBy("r.patient", "r.day")
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
	return countOf(app.DB().Select("COUNT(*)").From(Patients).Where(Every(where)))
}

// CountCompliant counts the active patients of a time zone, and those with so many days with data of a device since a day.
func CountCompliant(app core.App, careTeamOf, zone, since string, days int) (all, enough int, err error) {
	where := append(activePatients("id", careTeamOf), dbx.HashExp{"time_zone": zone})
	err = app.DB().Select("COUNT(*)", `COALESCE(SUM((SELECT COUNT(DISTINCT r.day) FROM reading_days r
			WHERE r.patient = patients.id AND r.day >= {:since} AND r.device_readings > 0) >= {:days}), 0)`).
		From(Patients).Where(Every(where)).AndBind(dbx.Params{"since": since, "days": days}).Row(&all, &enough)
	return all, enough, wrap(err, "count compliant patients")
}

// CountUnacknowledged counts the alerts of some types that nobody has acknowledged.
func CountUnacknowledged(app core.App, careTeamOf string, types []string) (int, error) {
	unacknowledged := false
	return Conditions{oneOf("type", types)}.Is("acknowledged", &unacknowledged).OnCareTeamOf(careTeamOf).Count(app, Alerts)
}

// AverageProcessing is how long the readings stored since a time took on average, in milliseconds.
func AverageProcessing(app core.App, careTeamOf string, since time.Time) (mean float64, err error) {
	where := Conditions{dbx.NewExp("created_at > {:since}", dbx.Params{"since": Instant(since)})}.OnCareTeamOf(careTeamOf)
	err = app.DB().Select("COALESCE(AVG(processing_ms), 0)").From(Observations).Where(Every(where)).Row(&mean)
	return mean, wrap(err, "average processing time")
}
