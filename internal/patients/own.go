package patients

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// OnCareTeam reports whether a user (record id) is primary provider or care-team member of a patient.
// Source: docs/decisions/patients.md, "Care team".
func OnCareTeam(app core.App, patientID, userID string) (bool, error) {
	own, err := collections.PatientIDsOfTeam(app, userID, patientID)
	return len(own) > 0, err
}

// OwnPatients are the ids of the patients on whose care team a user is; never nil.
func OwnPatients(app core.App, userID string) ([]string, error) {
	return collections.PatientIDsOfTeam(app, userID, "")
}
