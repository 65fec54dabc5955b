package triage

import (
	"errors"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Acted is what became of one alert of several: as it is now, or why nothing was done with it.
type Acted struct {
	Alert   *collections.Alert
	Refused *fault.Error
}

// ActOnAlerts does the same with several alerts, in one transaction: what is refused of one leaves the others as they are, and each patient is ranked
// once. The answer is by number. Source: docs/decisions/alerts.md, "Several at once".
func ActOnAlerts(app core.App, numbers []int64, action alerts.Action, by audit.Actor, now time.Time) (map[int64]Acted, error) {
	reviewed := map[string]string{}
	return eachAlert(app, numbers, now, func(tx core.App, alert *collections.Alert) (err error) {
		before, known := reviewed[alert.PatientID()]
		if !known {
			if before, err = review(tx, alert.PatientID()); err != nil {
				return err
			}
			reviewed[alert.PatientID()] = before
		}
		action.Reviewed = before
		if err := alerts.Act(tx, alert, action, by, now); err != nil {
			return err
		}
		return noteReview(tx, alert.PatientID(), action.Move, by, now)
	})
}

// UndoAlerts takes back what the same person has just done with alerts, see [alerts.Undo]: the patient is as little reviewed as before, and what
// would have been told meanwhile is told now. Source: docs/decisions/alerts.md, "Undo".
func UndoAlerts(app core.App, numbers []int64, by audit.Actor, now time.Time) (map[int64]Acted, error) {
	return eachAlert(app, numbers, now, func(tx core.App, alert *collections.Alert) error {
		done, err := alerts.Undo(tx, alert, by, now)
		if err != nil {
			return err
		}
		if err := unreview(tx, alert.PatientID(), done, by); err != nil {
			return err
		}
		return tellMissed(tx, alert, done.At, now)
	})
}

// eachAlert does something with each of several alerts in one transaction, and ranks the patients of those with which it was done.
func eachAlert(app core.App, numbers []int64, now time.Time, do func(tx core.App, alert *collections.Alert) error) (map[int64]Acted, error) {
	acted := make(map[int64]Acted, len(numbers))
	err := app.RunInTransaction(func(tx core.App) error {
		clear(acted)
		moved := map[string]bool{}
		for _, number := range numbers {
			alert, err := alerts.Find(tx, number)
			if err == nil {
				err = do(tx, alert)
			}
			switch refused, ok := errors.AsType[*fault.Error](err); {
			case ok && !refused.Unexpected():
				acted[number] = Acted{Refused: refused}
			case err != nil:
				return err
			default:
				acted[number] = Acted{Alert: alert}
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

// review is when a patient was reviewed last, and by whom, as [alerts.ChangedReview] has it.
func review(tx core.App, patientID string) (string, error) {
	at, by, err := collections.Reviewed(tx, patientID)
	if err != nil || at.IsZero() {
		return "", err
	}
	return collections.Instant(at) + " " + by, nil
}

// unreview takes back the review that acting on an alert was, unless the patient was reviewed again or another alert still stands for it.
func unreview(tx core.App, patientID string, done alerts.Undone, by audit.Actor) error {
	at, who, err := collections.Reviewed(tx, patientID)
	if err != nil || !at.Equal(done.At) || who != by.Email {
		return err
	}
	if still, err := collections.AnsweredAt(tx, patientID, by.Email, done.At); err != nil || still {
		return err
	}
	before, reviewer, _ := strings.Cut(done.Review, " ")
	return collections.SetReviewed(tx, patientID, reviewer, collections.ParseInstant(before))
}

// tellMissed tells what the end of a snooze told nobody of, since the alert was answered at the time.
func tellMissed(tx core.App, alert *collections.Alert, since, now time.Time) error {
	if !alert.Snoozed() || alerts.Status(alert.Status()) != alerts.StatusActive {
		return nil
	}
	ended, err := collections.SnoozesEnded(tx, alert.PatientID(), alert.Type(), since)
	if err != nil {
		return err
	}
	for _, snooze := range ended {
		if _, err := tellAfterSnooze(tx, snooze, snooze.EndedAt(), now); err != nil {
			return err
		}
	}
	return nil
}
