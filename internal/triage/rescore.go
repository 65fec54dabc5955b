package triage

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
)

// UpdateAndRescore runs a change and then rescores its patient, in one transaction, which may be app's own. A change that returns ""
// rescores no one. Clinicians' actions on alerts, escalations, snoozes, thresholds and reviews come through here, and so do alerts raised
// by the clock. Readings do not: ingest evaluates and ranks them together.
func UpdateAndRescore(app core.App, now time.Time, change func(tx core.App) (patientID string, err error)) error {
	return app.RunInTransaction(func(tx core.App) error {
		patientID, err := change(tx)
		if err != nil || patientID == "" {
			return err
		}
		_, err = Rescore(tx, patientID, now)
		return err
	})
}

// ActOnAlert applies a clinician's action to an alert and rescores the patient, see [alerts.Act].
func ActOnAlert(app core.App, number int64, action alerts.Action, by audit.Actor, now time.Time) (alert *collections.Alert, err error) {
	err = UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		if alert, err = alerts.Find(tx, number); err != nil {
			return "", err
		}
		if action.Reviewed, err = lastReview(tx, alert.PatientID()); err != nil {
			return "", err
		}
		if err := alerts.Act(tx, alert, action, by, now); err != nil {
			return "", err
		}
		return alert.PatientID(), recordReview(tx, alert.PatientID(), action.Move, by, now)
	})
	return alert, err
}

// GuardAlert is [alerts.Guard] followed by a rescore.
func GuardAlert(tx core.App, alert *collections.Alert, by audit.Actor, now time.Time, save func() error) error {
	return UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		move, err := alerts.Guard(tx, alert, by, now, save)
		if err != nil || move == "" {
			return "", err
		}
		return alert.PatientID(), recordReview(tx, alert.PatientID(), move, by, now)
	})
}

// recordReview stores a review for an acknowledgment or a resolution. Source: docs/decisions/triage.md, "Reviews".
func recordReview(tx core.App, patientID string, move alerts.Move, by audit.Actor, now time.Time) error {
	if move != alerts.Acknowledge && move != alerts.Resolve || by.Type == audit.ByClient { // a program reviews no patient
		return nil
	}
	return collections.SetReviewed(tx, patientID, by.Email, now)
}

// OpenEscalation opens an escalation and rescores the patient, see [escalations.Open].
func OpenEscalation(app core.App, draft escalations.Draft, by audit.Actor, now time.Time) (e *collections.Escalation, err error) {
	err = UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		e, err = escalations.Open(tx, draft, by, now)
		return draft.PatientID, err
	})
	return e, err
}

// EscalateAlert opens an escalation about an alert, see [escalations.OpenForAlert].
func EscalateAlert(app core.App, number int64, draft escalations.Draft, by audit.Actor, now time.Time) (e *collections.Escalation, err error) {
	err = UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		if e, err = escalations.OpenForAlert(tx, number, draft, by, now); err != nil {
			return "", err
		}
		return e.PatientID(), nil
	})
	return e, err
}

// UpdateEscalation changes an escalation, see [escalations.Update]. The billing engine logs the time of a resolved one.
func UpdateEscalation(
	app core.App, bills *billing.Engine, number int64, change escalations.Change, by audit.Actor, now time.Time,
) (e *collections.Escalation, err error) {
	err = UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		var effect escalations.Effect
		if e, effect, err = escalations.Update(tx, number, change, by, now); err != nil {
			return "", err
		}
		return afterEscalationUpdate(tx, bills, e, effect, by, now)
	})
	return e, err
}

// GuardEscalation is [escalations.Guard] followed by billing and a rescore.
func GuardEscalation(tx core.App, bills *billing.Engine, e *collections.Escalation, by audit.Actor, now time.Time, save func() error) error {
	return UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		effect, err := escalations.Guard(tx, e, by, now, save)
		if err != nil {
			return "", err
		}
		return afterEscalationUpdate(tx, bills, e, effect, by, now)
	})
}

// afterEscalationUpdate returns the patient to rescore. A resolved escalation is a review, and its time is logged for the assignee, or for
// the user who resolved it. Source: docs/decisions/billing.md, "Escalation time versus interactive time" and docs/decisions/triage.md,
// "Reviews".
func afterEscalationUpdate(tx core.App, bills *billing.Engine, e *collections.Escalation, effect escalations.Effect, by audit.Actor, now time.Time) (patientID string, err error) {
	if effect == escalations.Unchanged {
		return "", nil
	}
	if effect == escalations.Changed {
		return e.PatientID(), nil
	}
	if err := collections.SetReviewed(tx, e.PatientID(), by.Email, now); err != nil {
		return "", err
	}
	return e.PatientID(), bills.LogEscalationTime(tx, e, by.Email, now)
}

// SetThresholds changes the thresholds of a patient, see [alerts.SetThresholds], and rescores. With patientID "" it changes the practice's
// defaults; [RescoreAll] then updates the patients who inherit them. A patient who does not exist or is deleted is a not-found fault.
func SetThresholds(app core.App, patientID string, change alerts.ThresholdChange, by audit.Actor, now time.Time) (c alerts.Configuration, err error) {
	err = UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		if patientID != "" {
			if _, err := collections.FindPatient(tx, patientID); err != nil {
				return "", fault.OrMissing(err)
			}
		}
		changed := false
		if c, changed, err = alerts.SetThresholds(tx, patientID, change, by, now); err != nil || !changed {
			return "", err
		}
		return patientID, nil
	})
	return c, err
}

// GuardThresholds is [alerts.GuardThresholds] followed by a rescore.
func GuardThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, save func() error) error {
	return UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		return collections.PatientOf(record), alerts.GuardThresholds(tx, record, by, now, save)
	})
}

// DeleteThresholds is [alerts.DeleteThresholds] followed by a rescore.
func DeleteThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, remove func() error) error {
	return UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		return collections.PatientOf(record), alerts.DeleteThresholds(tx, record, by, now, remove)
	})
}

// RescoreMinor rescores a minor after the expected kinds changed, which may lack bounds. It does nothing for an adult.
// Source: docs/decisions/alerts.md, "Minors".
func RescoreMinor(tx core.App, patientID string, now time.Time) error {
	group, err := collections.AgeGroupOf(tx, patientID)
	if err != nil || !collections.IsMinorGroup(group) {
		return err
	}
	_, err = Rescore(tx, patientID, now)
	return err
}

// Rescore reads a patient's snapshot and stores the new row.
func Rescore(tx core.App, patientID string, now time.Time) (ComputedRow, error) {
	snapshot, err := ReadSnapshot(tx, patientID, nil, now)
	if err != nil {
		return ComputedRow{}, err
	}
	place := snapshot.ComputeRow(now)
	if err := SaveRow(tx, patientID, place, now); err != nil {
		return place, err
	}
	return place, collections.BumpListVersion(tx)
}
