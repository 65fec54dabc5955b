package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// EpisodeAlert is an alert of an episode, which raises one of each level.
type EpisodeAlert struct {
	Level   string `db:"level"`
	Snoozed bool   `db:"snoozed"`
}

// EpisodeAlerts returns a patient's alerts about a parameter in a time span, its end excluded, without retracted ones.
func EpisodeAlerts(app core.App, patientID, alertType, parameter string, since, until time.Time) ([]EpisodeAlert, error) {
	return queryAll[EpisodeAlert](app, "find the alerts of an episode", `SELECT level, snoozed FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND parameter = {:parameter} AND measured_at >= {:since} AND measured_at < {:until} AND resolution_reason != 'withdrawn'`,
		dbx.Params{"patient": patientID, "type": alertType, "parameter": parameter, "since": FormatInstant(since), "until": FormatInstant(until)})
}

// PatientWithBounds is a patient with own bounds and applied templates.
type PatientWithBounds struct {
	PatientID string `db:"id"`
	Bounds    string `db:"bounds"`    // JSON
	Templates string `db:"templates"` // JSON
	TimeZone  string `db:"time_zone"`
}

// PatientsWithTemplateOrBounds returns those of the given patients that may have an applied template with a key that begins so, or own bounds of a
// group with one of the fields.
func PatientsWithTemplateOrBounds(app core.App, patientIDs []string, key, group string, fields ...string) ([]PatientWithBounds, error) {
	return queryAll[PatientWithBounds](app, "find the patients of a template", `SELECT p.id, COALESCE(h.bounds, '') AS bounds, COALESCE(h.templates, '') AS templates, p.time_zone
		FROM json_each({:ids}) i CROSS JOIN thresholds h ON h.patient = i.value JOIN patients p ON p.id = h.patient
		WHERE instr(COALESCE(h.templates, ''), {:key}) > 0 OR json_valid(h.bounds) AND EXISTS (
			SELECT 1 FROM json_each(h.bounds, '$.' || {:group}) b WHERE b.value IS NOT NULL AND b.key IN (SELECT value FROM json_each({:fields})))`,
		dbx.Params{"ids": jsonList(patientIDs), "key": key, "group": group, "fields": jsonList(fields)})
}
