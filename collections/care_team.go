package collections

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// OnCareTeam is true for rows whose patient column names a patient of whom the user is primary provider or care-team member.
func OnCareTeam(patientColumn, userID string) dbx.Expression {
	return dbx.NewExp(fmt.Sprintf(`(%[1]s IN (SELECT patient FROM care_team_members WHERE user = {:careTeamUser})
		OR %[1]s IN (SELECT id FROM patients WHERE primary_provider = {:careTeamUser}))`, patientColumn), dbx.Params{"careTeamUser": userID})
}

// CareTeams returns, by patient, the record ids of the users on the care team, the primary provider among them.
func CareTeams(app core.App, patientIDs []string) (map[string][]string, error) {
	var rows []struct {
		Patient string `db:"patient"`
		User    string `db:"user"`
	}
	err := app.DB().NewQuery(`SELECT m.patient, m.user FROM json_each({:patients}) p CROSS JOIN care_team_members m WHERE m.patient = p.value
		UNION SELECT t.id, t.primary_provider FROM json_each({:patients}) p CROSS JOIN patients t
			WHERE t.id = p.value AND t.primary_provider != ''`).Bind(dbx.Params{"patients": jsonList(patientIDs)}).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("find care teams: %w", err)
	}
	teams := map[string][]string{}
	for _, row := range rows {
		teams[row.Patient] = append(teams[row.Patient], row.User)
	}
	return teams, nil
}

// PatientIDsOfTeam are the patients on whose care team a user is, or the one of them that is named; never nil.
func PatientIDsOfTeam(app core.App, userID, only string) ([]string, error) {
	ids := []string{}
	err := app.DB().Select("id").From(Patients).Where(OnCareTeam("id", userID)).AndWhere(Every(Conditions{}.Equal("id", only))).Column(&ids)
	return ids, wrap(err, "find own patients")
}

// PatientsOfTeam are the patients of whom the user is primary provider or care-team member.
func PatientsOfTeam(app core.App, userID string) (map[string]bool, error) {
	var ids []string
	err := app.DB().NewQuery(`SELECT patient FROM care_team_members WHERE user = {:user} UNION SELECT id FROM patients WHERE primary_provider = {:user}`).
		Bind(dbx.Params{"user": userID}).Column(&ids)
	if err != nil {
		return nil, fmt.Errorf("list patients of a care team: %w", err)
	}
	return setOf(ids), nil
}
