package triage

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
)

// ActOnAlert carries out what a person does with an alert, see [alerts.Act], and ranks the patient anew, in one transaction.
// Acknowledging and resolving are reviews of the patient.
func ActOnAlert(app core.App, number int64, action alerts.Action, by audit.Actor, now time.Time) (alert *core.Record, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if alert, err = alerts.Find(tx, number); err != nil {
			return err
		}
		if err := alerts.Act(tx, alert, action, by, now); err != nil {
			return err
		}
		return AfterAlert(tx, alert.GetString("patient"), action.Move, by.Email, now)
	})
	return alert, err
}

// AfterAlert does for the patient what follows from a move of an alert that is stored.
func AfterAlert(tx core.App, patientID string, move alerts.Move, who string, now time.Time) error {
	if move == alerts.Acknowledge || move == alerts.Resolve {
		if err := NoteReview(tx, patientID, who, now); err != nil {
			return err
		}
	}
	_, err := Rescore(tx, patientID, now)
	return err
}

// NoteReview stores that somebody looked at the patient just now. Source: docs/decisions/triage.md, "What a review is".
func NoteReview(tx core.App, patientID, who string, now time.Time) error {
	_, err := tx.DB().Update(collections.TriageScores,
		dbx.Params{"last_reviewed_at": collections.Instant(now), "last_reviewed_by": who}, dbx.HashExp{"patient": patientID}).Execute()
	if err != nil {
		return fmt.Errorf("note review: %w", err)
	}
	return nil
}

// KeepAlert is [alerts.Keep], with what follows for the patient.
func KeepAlert(tx core.App, record *core.Record, by audit.Actor, now time.Time, save func() error) error {
	move, err := alerts.Keep(tx, record, by, now, save)
	if err != nil || move == "" {
		return err
	}
	return AfterAlert(tx, record.GetString("patient"), move, by.Email, now)
}
