package triage

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Review stores that somebody has reviewed the patient, with notes or "", and ranks the patient anew, in one transaction. The
// notes are kept in the audit trail, sealed. Source: docs/decisions/triage.md, "What a review is".
func Review(app core.App, patientID string, notes phi.Text, by audit.Actor, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		if err := NoteReview(tx, patientID, by.Email, now); err != nil {
			return err
		}
		if _, err := Rescore(tx, patientID, now); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.TriageReview, Actor: by, ResourceType: "Patient", ResourceID: patientID, PatientID: patientID, Reason: notes,
		}, now)
	})
}
