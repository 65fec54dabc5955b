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
	ids, err := queryColumn[string](app, "list patients of a care team",
		`SELECT patient FROM care_team_members WHERE user = {:user} UNION SELECT id FROM patients WHERE primary_provider = {:user}`, dbx.Params{"user": userID})
	return setOf(ids), err
}

// CareTeamMember is a person on the care team of a patient.
type CareTeamMember struct{ core.BaseRecordProxy }

// NewCareTeamMember returns an unsaved member.
func NewCareTeamMember(app core.App, patientID, userID string) (*CareTeamMember, error) {
	return fresh[CareTeamMember](app, CareTeamMembers, map[string]any{"patient": patientID, "user": userID})
}

// CareTeam returns the members of a patient's care team, in the order in which they joined.
func CareTeam(app core.App, patientID string) ([]*CareTeamMember, error) {
	return listOf[CareTeamMember](app, CareTeamMembers, dbx.HashExp{"patient": patientID}, "created_at", "user")
}

// AsCareTeamMember reads a record of the care-team members as one.
func AsCareTeamMember(record *core.Record) *CareTeamMember { return as[CareTeamMember](record) }

func (m *CareTeamMember) PatientID() string { return m.GetString("patient") }

func (m *CareTeamMember) SetRole(role string) { m.Set("role", role) }

func (m *CareTeamMember) UserRecordID() string { return m.GetString("user") } // the record id of the member's account
func (m *CareTeamMember) Role() string         { return m.GetString("role") } // what the person does for the patient

// ReceivingPatient is a patient as far as placing a reading is concerned. The zero value is nobody.
type ReceivingPatient struct {
	ID        string `db:"id"`
	Active    bool   `db:"active"`
	DeletedAt string `db:"deleted_at"`
}

// FindReceivingPatient finds a patient by id.
func FindReceivingPatient(app core.App, id string) (patient ReceivingPatient, err error) {
	err = app.DB().NewQuery(`SELECT id, active, deleted_at FROM patients WHERE id = {:id}`).Bind(dbx.Params{"id": id}).One(&patient)
	return patient, wrap(unlessMissing(err), "find patient of event")
}
