package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// WatchedPatient is what deciding about missed readings needs of an active patient.
type WatchedPatient struct {
	ID        string
	Schedule  Schedule // nil for none
	CreatedAt time.Time
}

// PatientZones are the names of the time zones of the active patients; "" stands for the practice's.
func PatientZones(app core.App) (zones []string, err error) {
	err = app.DB().NewQuery(`SELECT DISTINCT time_zone FROM patients WHERE active = TRUE AND deleted_at = '' ORDER BY time_zone`).Column(&zones)
	return zones, wrap(err, "list time zones of patients")
}

// WatchedPatients are the active patients whose time zone has the name, in order of ids.
func WatchedPatients(app core.App, zone string) (patients []WatchedPatient, err error) {
	var rows []struct {
		ID        string `db:"id"`
		Schedule  string `db:"monitoring_schedule"`
		CreatedAt string `db:"created_at"`
	}
	err = app.DB().NewQuery(`SELECT id, COALESCE(monitoring_schedule, '') AS monitoring_schedule, created_at FROM patients
		WHERE active = TRUE AND deleted_at = '' AND time_zone = {:zone} ORDER BY id`).Bind(dbx.Params{"zone": zone}).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("list watched patients: %w", err)
	}
	for _, row := range rows {
		patient := WatchedPatient{ID: row.ID, CreatedAt: ParseInstant(row.CreatedAt)}
		if json.Unmarshal([]byte(row.Schedule), &patient.Schedule) != nil {
			patient.Schedule = nil // nothing stored
		}
		patients = append(patients, patient)
	}
	return patients, nil
}

// ActiveProviderEmail is the e-mail address of a patient's primary provider; "" when there is none who can sign in.
func ActiveProviderEmail(app core.App, patientID string) (email string, err error) {
	err = app.DB().NewQuery(`SELECT COALESCE(u.email, '') FROM patients p JOIN users u ON u.id = p.primary_provider AND u.is_active = TRUE
		WHERE p.id = {:patient}`).Bind(dbx.Params{"patient": patientID}).Row(&email)
	return email, wrap(unlessMissing(err), "find primary provider")
}

// Measured is a patient and a kind of observation with recent readings.
type Measured struct {
	PatientID string `db:"patient"`
	Kind      string `db:"observation_type"`
	TimeZone  string `db:"time_zone"`
}

// RecentlyMeasured lists the active patients and kinds with readings stored since then.
func RecentlyMeasured(app core.App, since time.Time) ([]Measured, error) {
	return queryAll[Measured](app, "list recently measured", `SELECT DISTINCT o.patient, o.observation_type, p.time_zone
		FROM observations o INDEXED BY idx_observations_created
		JOIN patients p ON p.id = o.patient AND p.active = TRUE AND p.deleted_at = ''
		WHERE o.created_at >= {:since} AND o.status = 'final' ORDER BY o.patient, o.observation_type`,
		dbx.Params{"since": Instant(since)})
}
