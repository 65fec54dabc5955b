package ranking

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
)

// ActOnAlert carries out what a person does with an alert, see [alerts.Act].
func ActOnAlert(app core.App, number int64, action alerts.Action, by audit.Actor, now time.Time) (alert *collections.Alert, err error) {
	err = Change(app, now, func(tx core.App) (string, error) {
		if alert, err = alerts.Find(tx, number); err != nil {
			return "", err
		}
		if err := alerts.Act(tx, alert, action, by, now); err != nil {
			return "", err
		}
		return alert.PatientID(), noteReview(tx, alert.PatientID(), action.Move, by, now)
	})
	return alert, err
}

// GuardAlert is [alerts.Guard], with what follows for the patient.
func GuardAlert(tx core.App, alert *collections.Alert, by audit.Actor, now time.Time, save func() error) error {
	return Change(tx, now, func(tx core.App) (string, error) {
		move, err := alerts.Guard(tx, alert, by, now, save)
		if err != nil || move == "" {
			return "", err
		}
		return alert.PatientID(), noteReview(tx, alert.PatientID(), move, by, now)
	})
}

// noteReview: acknowledging and resolving are reviews of the patient. Source: docs/decisions.md, "What a review is".
func noteReview(tx core.App, patientID string, move alerts.Move, by audit.Actor, now time.Time) error {
	if move != alerts.Acknowledge && move != alerts.Resolve {
		return nil
	}
	return collections.SetReviewed(tx, patientID, by.Email, now)
}
