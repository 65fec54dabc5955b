package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// CareTeamMember is a person on the care team of a patient.
type CareTeamMember struct{ core.BaseRecordProxy }

// NewCareTeamMember returns an unsaved member.
func NewCareTeamMember(app core.App, patientID, userID string) (*CareTeamMember, error) {
	record, err := New(app, CareTeamMembers)
	if err != nil {
		return nil, err
	}
	record.Set("patient", patientID)
	record.Set("user", userID)
	m := &CareTeamMember{}
	m.SetProxyRecord(record)
	return m, nil
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
