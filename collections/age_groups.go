package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Age groups. The practice's default thresholds are for adults only. The group is stored with the triage row, which every reading loads, and
// reveals no date of birth.
const (
	AgeUnknown = ""
	AgeInfant  = "infant" // under three months: a minor with an own rule for fever
	AgeMinor   = "minor"
	AgeAdult   = "adult"
)

// IsMinorGroup reports whether an age group is one of minors; an unknown age is treated as an adult's.
func IsMinorGroup(group string) bool { return group == AgeMinor || group == AgeInfant }

// AgeOn returns the completed years of age on a date; born on February 29, the birthday in other years is March 1. found is false for an
// invalid birth date.
func AgeOn(born phi.Text, year int, month time.Month, day int) (age int, found bool) {
	birth, err := time.Parse(time.DateOnly, born.Reveal())
	if err != nil {
		return 0, false
	}
	age = year - birth.Year()
	if month < birth.Month() || (month == birth.Month() && day < birth.Day()) {
		age--
	}
	return max(age, 0), true
}

// AgeGroupOf returns a patient's stored age group.
func AgeGroupOf(app core.App, patientID string) (string, error) {
	group, err := queryValue[string](app, "read an age group", "SELECT age_group FROM triage_scores WHERE patient = {:patient}", dbx.Params{"patient": patientID})
	return group, IgnoreNotFound(err)
}

// SetAgeGroup stores a patient's age group.
func SetAgeGroup(tx core.App, patientID, group string) error {
	return exec(tx, "store an age group", "UPDATE triage_scores SET age_group = {:group} WHERE patient = {:patient}",
		dbx.Params{"group": group, "patient": patientID})
}

// Minor is a patient who is a minor or has an unknown age group.
type Minor struct {
	ID, AgeGroup, TimeZone string
	Born                   phi.Text // YYYY-MM-DD
	Unreadable             bool
}

// MinorsAfter returns the next minors in order of patient id.
func MinorsAfter(app core.App, after string, limit int) (page []Minor, err error) {
	query := app.DB().NewQuery(`SELECT p.id, p.date_of_birth, p.time_zone, t.age_group
		FROM triage_scores t INDEXED BY idx_triage_scores_minors CROSS JOIN patients p ON p.id = t.patient
		WHERE t.age_group != 'adult' AND t.patient > {:after} ORDER BY t.patient LIMIT {:limit}`).Bind(dbx.Params{"after": after, "limit": limit})
	err = eachRow("list minors", query, func(rows *dbx.Rows) error {
		var y Minor
		var sealed string
		if err := rows.Scan(&y.ID, &sealed, &y.TimeZone, &y.AgeGroup); err != nil {
			return err
		}
		born, err := OpenValue(sealed, Patients, PatientDateOfBirth, y.ID)
		y.Born, y.Unreadable = phi.Text(born), err != nil
		page = append(page, y)
		return nil
	})
	return page, err
}

// ThresholdsState is the state of a patient's thresholds in a list of patients.
type ThresholdsState struct {
	PatientID string `db:"patient"`
	AgeGroup  string `db:"age_group"`
	// Needed: a minor has readings of a kind without thresholds.
	Needed    bool   `db:"needs_thresholds"`
	Templates string `db:"templates"`          // JSON
	Declined  string `db:"declined_templates"` // JSON
	// Provisional are the bounds of proposed templates in force (JSON), since ProvisionalSince; both are "" for none.
	Provisional      string `db:"provisional"`
	ProvisionalSince string `db:"provisional_since"`
}

// ThresholdsStates returns the states of the given patients, in no order.
func ThresholdsStates(app core.App, patientIDs []string) (list []ThresholdsState, err error) {
	return queryAll[ThresholdsState](app, "read the state of thresholds", `SELECT t.patient, t.age_group, t.needs_thresholds, COALESCE(h.templates, '') AS templates,
			t.declined_templates, t.provisional, t.provisional_since
		FROM json_each({:ids}) i CROSS JOIN triage_scores t ON t.patient = i.value LEFT JOIN thresholds h ON h.patient = t.patient`,
		dbx.Params{"ids": jsonList(patientIDs)})
}

// CountWithoutThresholds counts the active patients who need thresholds of their own; careTeamOf narrows to a user's care teams, "" counts
// all.
func CountWithoutThresholds(app core.App, careTeamOf string) (int, error) {
	// The plus makes SQLite use the partial index of minors.
	where := Conditions{dbx.NewExp("+listed = TRUE AND age_group != 'adult' AND needs_thresholds = TRUE")}.OnCareTeamOf(careTeamOf)
	return where.Count(app, TriageScores)
}
