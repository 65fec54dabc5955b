package patients

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// OnCareTeam reports whether a user (record id) is primary provider or care-team member of a patient.
// Source: docs/decisions/patients.md, "Care team".
func OnCareTeam(app core.App, patientID, userID string) (bool, error) {
	own, err := own(app, userID, dbx.HashExp{"id": patientID})
	return len(own) > 0, err
}

// OwnPatients are the ids of the patients on whose care team a user is; never nil.
func OwnPatients(app core.App, userID string) ([]string, error) {
	return own(app, userID, nil)
}

func own(app core.App, userID string, only dbx.Expression) ([]string, error) {
	ids := []string{}
	query := app.DB().Select("id").From(collections.Patients).Where(collections.OnCareTeam("id", userID))
	if only != nil {
		query.AndWhere(only)
	}
	if err := query.Column(&ids); err != nil {
		return nil, fmt.Errorf("find own patients: %w", err)
	}
	return ids, nil
}
