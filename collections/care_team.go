package collections

import (
	"fmt"
	"strings"

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

// byIdentifier is three searches with an index each: an event must not cost more in a larger practice.
const byIdentifier = `SELECT id, active, deleted_at FROM (
	SELECT 1 AS preference, id, active, deleted_at FROM patients WHERE gateway_patient_id = {:value} AND gateway_patient_id != ''
	UNION ALL SELECT 2, id, active, deleted_at FROM patients WHERE id = {:id}
	UNION ALL SELECT 3, id, active, deleted_at FROM patients WHERE mrn = {:value} COLLATE NOCASE
) ORDER BY preference LIMIT 1`

// FindNamedPatient looks for the gateway's own identifier first, then for our id and for the MRN.
func FindNamedPatient(app core.App, identifier string) (ReceivingPatient, error) {
	if identifier == "" {
		return ReceivingPatient{}, nil
	}
	return findReceiving(app, byIdentifier, dbx.Params{"value": identifier, "id": strings.ToLower(identifier)})
}

// FindReceivingPatient finds a patient by id.
func FindReceivingPatient(app core.App, id string) (ReceivingPatient, error) {
	return findReceiving(app, `SELECT id, active, deleted_at FROM patients WHERE id = {:id}`, dbx.Params{"id": id})
}

func findReceiving(app core.App, search string, params dbx.Params) (patient ReceivingPatient, err error) {
	err = app.DB().NewQuery(search).Bind(params).One(&patient)
	if err != nil && !Missing(err) {
		return patient, fmt.Errorf("find patient of event: %w", err)
	}
	return patient, nil
}
