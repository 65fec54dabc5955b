// Package ranking carries out what moves a patient's place on the triage list, and ranks the patient anew in the same
// transaction: whoever acts on an alert, opens or changes an escalation, reviews a patient or raises an alert by the clock comes
// through here. It knows what follows for the patient, and nothing of how a score is made, which internal/triage knows. Readings
// do not come this way: they are assessed and ranked in one go.
package ranking

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
)

// Change carries out a change and then ranks the patient it is about anew, in one transaction, which may be app's own. A change
// that comes back with "" moves nobody.
func Change(app core.App, now time.Time, change func(tx core.App) (patientID string, err error)) error {
	return app.RunInTransaction(func(tx core.App) error {
		patientID, err := change(tx)
		if err != nil || patientID == "" {
			return err
		}
		_, err = triage.Rescore(tx, patientID, now)
		return err
	})
}

// Review stores that somebody has reviewed the patient, with notes or "", which are kept in the audit trail, sealed.
// Source: docs/decisions.md, "What a review is".
func Review(app core.App, patientID string, notes phi.Text, by audit.Actor, now time.Time) error {
	return Change(app, now, func(tx core.App) (string, error) {
		if err := collections.SetReviewed(tx, patientID, by.Email, now); err != nil {
			return "", err
		}
		return patientID, audit.Append(tx, audit.Entry{
			Event: audit.TriageReview, Actor: by, ResourceType: "Patient", ResourceID: patientID, PatientID: patientID, Reason: notes,
		}, now)
	})
}
