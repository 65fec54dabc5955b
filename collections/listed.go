package collections

import "github.com/pocketbase/pocketbase/core"

// ListScore puts the triage row of a patient on the list, or takes it off; a missing row means that there is none yet.
func ListScore(tx core.App, patientID string, listed bool) error {
	row, err := tx.FindFirstRecordByData(TriageScores, "patient", patientID)
	if err != nil {
		return wrap(err, "find triage row")
	}
	if row.GetBool("listed") == listed {
		return nil
	}
	row.Set("listed", listed)
	return wrap(tx.Save(row), "store triage row")
}
