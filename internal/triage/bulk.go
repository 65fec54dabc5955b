package triage

import (
	"errors"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// ActResult is the outcome for one alert of a bulk request: the alert now, or why it was rejected.
type ActResult struct {
	Alert     *collections.Alert
	Rejection *fault.Error
}

// ActOnAlerts applies an action to several alerts in one transaction. A rejection does not affect
// the others. Each patient is rescored once. Source: docs/decisions/alerts.md, "Several at once".
func ActOnAlerts(app core.App, numbers []int64, action alerts.Action, by audit.Actor, now time.Time) (map[int64]ActResult, error) {
	reviewed := map[string]string{}
	return forEachAlert(app, numbers, now, func(tx core.App, alert *collections.Alert) (err error) {
		before, found := reviewed[alert.PatientID()]
		if !found {
			if before, err = lastReview(tx, alert.PatientID()); err != nil {
				return err
			}
			reviewed[alert.PatientID()] = before
		}
		action.Reviewed = before
		if err := alerts.Act(tx, alert, action, by, now); err != nil {
			return err
		}
		return recordReview(tx, alert.PatientID(), action.Move, by, now)
	})
}

// UndoAlerts reverses the last action of the same user on alerts, see [alerts.Undo]. It also reverses the review, and sends notifications
// that the action had prevented. Source: docs/decisions/alerts.md, "Undo".
func UndoAlerts(app core.App, numbers []int64, by audit.Actor, now time.Time) (map[int64]ActResult, error) {
	return forEachAlert(app, numbers, now, func(tx core.App, alert *collections.Alert) error {
		done, err := alerts.Undo(tx, alert, by, now)
		if err != nil {
			return err
		}
		if err := undoReview(tx, alert.PatientID(), done, by); err != nil {
			return err
		}
		return notifyMissed(tx, alert, done.At, now)
	})
}

// forEachAlert runs do for each alert in one transaction, and rescores the patients of those that succeeded.
func forEachAlert(app core.App, numbers []int64, now time.Time, do func(tx core.App, alert *collections.Alert) error) (map[int64]ActResult, error) {
	acted := make(map[int64]ActResult, len(numbers))
	err := app.RunInTransaction(func(tx core.App) error {
		clear(acted)
		moved := map[string]bool{}
		for _, number := range numbers {
			alert, err := alerts.Find(tx, number)
			if err == nil {
				err = do(tx, alert)
			}
			switch refused, ok := errors.AsType[*fault.Error](err); {
			case ok && !refused.IsUnexpected():
				acted[number] = ActResult{Rejection: refused}
			case err != nil:
				return err
			default:
				acted[number] = ActResult{Alert: alert}
				moved[alert.PatientID()] = true
			}
		}
		for patient := range moved {
			if _, err := Rescore(tx, patient, now); err != nil {
				return err
			}
		}
		return nil
	})
	return acted, err
}

// undoReview reverses the review that an action on an alert was, unless the patient was reviewed again or another alert's action remains.
func undoReview(tx core.App, patientID string, done alerts.Undone, by audit.Actor) error {
	at, who, err := collections.LastReview(tx, patientID)
	if err != nil || !at.Equal(done.At) || who != by.Email {
		return err
	}
	if still, err := collections.AcknowledgedOrResolvedAt(tx, patientID, by.Email, done.At); err != nil || still {
		return err
	}
	return restoreReview(tx, patientID, done.Review)
}

// notifyMissed sends the snooze-end notification that was skipped while the alert was acknowledged.
func notifyMissed(tx core.App, alert *collections.Alert, since, now time.Time) error {
	if !alert.Snoozed() || alerts.Status(alert.Status()) != alerts.StatusActive {
		return nil
	}
	ended, err := collections.SnoozesEndedSince(tx, alert.PatientID(), alert.Type(), since)
	if err != nil {
		return err
	}
	for _, snooze := range ended {
		if _, err := notifyAfterSnooze(tx, snooze, snooze.EndedAt(), now); err != nil {
			return err
		}
	}
	return nil
}
