package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Whether a patient is old enough for the practice's default thresholds, which are for adults. It stands beside the place on the triage
// list, where every reading sees it, and tells no date of birth.
const (
	AgeUnknown = ""
	AgeMinor   = "minor"
	AgeAdult   = "adult"
)

// AgeGroupOf is a patient's, as stored.
func AgeGroupOf(app core.App, patientID string) (string, error) {
	group, err := queryValue[string](app, "read an age group", "SELECT age_group FROM triage_scores WHERE patient = {:patient}", dbx.Params{"patient": patientID})
	return group, unlessMissing(err)
}

// SetAgeGroup stores a patient's.
func SetAgeGroup(tx core.App, patientID, group string) error {
	return exec(tx, "store an age group", "UPDATE triage_scores SET age_group = {:group} WHERE patient = {:patient}",
		dbx.Params{"group": group, "patient": patientID})
}

// Young is a patient whose age is to be looked at: a minor, or nobody has looked yet.
type Young struct {
	ID, AgeGroup, TimeZone string
	Born                   phi.Text // YYYY-MM-DD
	Unreadable             bool
}

// YoungAfter are the next ones in order of their ids.
func YoungAfter(app core.App, after string, limit int) (page []Young, err error) {
	query := app.DB().NewQuery(`SELECT p.id, p.date_of_birth, p.time_zone, t.age_group
		FROM triage_scores t INDEXED BY idx_triage_scores_minors CROSS JOIN patients p ON p.id = t.patient
		WHERE t.age_group != 'adult' AND t.patient > {:after} ORDER BY t.patient LIMIT {:limit}`).Bind(dbx.Params{"after": after, "limit": limit})
	err = eachRow("list the young", query, func(rows *dbx.Rows) error {
		var y Young
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

// ThresholdsState is what a list of patients tells of their thresholds.
type ThresholdsState struct {
	PatientID string `db:"patient"`
	AgeGroup  string `db:"age_group"`
	// Needed: something is measured of a minor for which there are no bounds.
	Needed    bool   `db:"needs_thresholds"`
	Templates string `db:"templates"` // JSON
}

// ThresholdsStates are those of the given patients, in no order.
func ThresholdsStates(app core.App, patientIDs []string) (list []ThresholdsState, err error) {
	return queryAll[ThresholdsState](app, "read the state of thresholds", `SELECT t.patient, t.age_group, t.needs_thresholds, COALESCE(h.templates, '') AS templates
		FROM json_each({:ids}) i CROSS JOIN triage_scores t ON t.patient = i.value LEFT JOIN thresholds h ON h.patient = t.patient`,
		dbx.Params{"ids": jsonList(patientIDs)})
}

// CountWithoutThresholds is how many active patients need thresholds of their own; of a person's care teams unless "".
func CountWithoutThresholds(app core.App, careTeamOf string) (int, error) {
	// The plus leaves SQLite the index of the few who are not of age.
	where := Conditions{dbx.NewExp("+listed = TRUE AND age_group != 'adult' AND needs_thresholds = TRUE")}.OnCareTeamOf(careTeamOf)
	return where.Count(app, TriageScores)
}
