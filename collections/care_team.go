package collections

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// OnCareTeam selects rows about patients with the user as primary provider or care-team member. patientColumn has the patient's id.
func OnCareTeam(patientColumn, userID string) dbx.Expression {
	return dbx.NewExp(fmt.Sprintf(`(%[1]s IN (SELECT patient FROM care_team_members WHERE user = {:careTeamUser})
		OR %[1]s IN (SELECT id FROM patients WHERE primary_provider = {:careTeamUser}))`, patientColumn), dbx.Params{"careTeamUser": userID})
}

// CareTeams returns the record ids of each patient's care team, including the primary provider.
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

// PatientIDsOfTeam returns the patients of a user's care teams; only narrows to one patient. The result is never nil.
func PatientIDsOfTeam(app core.App, userID, only string) ([]string, error) {
	ids := []string{}
	err := app.DB().Select("id").From(Patients).Where(OnCareTeam("id", userID)).AndWhere(AllOf(Conditions{}.Equal("id", only))).Column(&ids)
	return ids, wrap(err, "find own patients")
}

// PatientsOfTeam returns the patients with the user as primary provider or care-team member.
func PatientsOfTeam(app core.App, userID string) (map[string]bool, error) {
	ids, err := queryColumn[string](app, "list patients of a care team",
		`SELECT patient FROM care_team_members WHERE user = {:user} UNION SELECT id FROM patients WHERE primary_provider = {:user}`, dbx.Params{"user": userID})
	return setOf(ids), err
}

// CareTeamMember is a user on the care team of a patient.
type CareTeamMember struct{ core.BaseRecordProxy }

// NewCareTeamMember returns an unsaved member.
func NewCareTeamMember(app core.App, patientID, userID string) (*CareTeamMember, error) {
	return newRecord[CareTeamMember](app, CareTeamMembers, map[string]any{"patient": patientID, "user": userID})
}

// CareTeam returns the members of a patient's care team, in the order in which they joined.
func CareTeam(app core.App, patientID string) ([]*CareTeamMember, error) {
	return listOf[CareTeamMember](app, CareTeamMembers, dbx.HashExp{"patient": patientID}, "created_at", "user")
}

// AsCareTeamMember converts a record of the care-team members.
func AsCareTeamMember(record *core.Record) *CareTeamMember { return as[CareTeamMember](record) }

func (m *CareTeamMember) PatientID() string { return m.GetString("patient") }

func (m *CareTeamMember) SetRole(role string) { m.Set("role", role) }

func (m *CareTeamMember) UserRecordID() string { return m.GetString("user") } // the record id of the member's account
func (m *CareTeamMember) Role() string         { return m.GetString("role") } // the user's function in the team
