package escalations

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Active is an escalation that is open or in progress.
type Active struct {
	ID       string
	Priority Priority
	// BySystem: opened by the system; a patient has at most one such escalation.
	BySystem bool
	// NotifiedAt is when users were last notified of it.
	NotifiedAt time.Time
}

// renotifyAfter is how long after a notification an alert that joins an escalation causes another. Source: docs/decisions/alerts.md,
// "STAT-severity alert".
const renotifyAfter = 30 * time.Minute

// NeedsRenotify reports whether users are notified again if a critical alert joins the escalation now.
func (e Active) NeedsRenotify(now time.Time) bool { return now.Sub(e.NotifiedAt) >= renotifyAfter }

// Store stores an escalation opened by the system in the caller's transaction, with a record id that its alerts may already name. It sends
// no notification and writes no audit entry. It runs for readings. Source: docs/decisions/alerts.md, "STAT-severity alert".
func Store(tx core.App, id string, draft Draft, now time.Time) error {
	reason, err := collections.Seal(draft.Reason.Reveal(), "escalations.reason", id)
	if err != nil {
		return fmt.Errorf("seal escalation reason: %w", err)
	}
	at := collections.Instant(now)
	row := dbx.Params{
		"id": id, "patient": draft.PatientID, "priority": string(draft.Priority), "status": string(StatusOpen), "created_by": alerts.System,
		"alert": draft.AlertID, "assigned_to": draft.AssignedTo, "reason": reason, "created_at": at, "updated_at": at, "notified_at": at,
	}
	if draft.AssignedTo != "" {
		row["assigned_at"] = at
	}
	if _, err := tx.DB().Insert(collections.Escalations, row).Execute(); err != nil {
		return fmt.Errorf("store escalation: %w", err)
	}
	return nil
}

// JoinReason is the history text of an alert that joins: a further critical reading, or one worse than the last notification.
func JoinReason(worse phi.Text) phi.Text {
	if worse == "" {
		return "A further critical reading."
	}
	return "A worse critical reading: " + worse
}

// Join records that a critical alert joined an open escalation, which becomes at least stat; its deadlines restart if it was less urgent.
// With renotified the caller notifies users, for the reason why.
func Join(tx core.App, escalationID string, renotified bool, why phi.Text, now time.Time) error {
	raised, err := collections.RaiseToStat(tx, escalationID, now)
	if err != nil {
		return err
	}
	if raised || renotified {
		if err := recordSystemEvent(tx, escalationID, eventJoined, why.Reveal(), now); err != nil {
			return err
		}
	}
	at := collections.Instant(now)
	changes := dbx.Params{"updated_at": at}
	if renotified {
		changes["notified_at"] = at
	}
	if _, err := tx.DB().Update(collections.Escalations, changes, dbx.HashExp{"id": escalationID}).Execute(); err != nil {
		return fmt.Errorf("join escalation: %w", err)
	}
	return nil
}

// OpenOrJoin opens an escalation by the system in the caller's transaction and attaches the alert that raised it. A patient has one such
// escalation at a time: if one is open, the alert joins it and opened is false. The caller sends the notification.
func OpenOrJoin(tx core.App, draft Draft, now time.Time) (id string, opened bool, err error) {
	if id, err = collections.OpenEscalationBy(tx, draft.PatientID, alerts.System); err != nil {
		return "", false, err
	}
	event := audit.EscalationUpdate
	if opened = id == ""; opened {
		event = audit.EscalationCreate
		if id, err = collections.NextID(tx, collections.Escalations); err != nil {
			return "", false, err
		}
		if err := Store(tx, id, draft, now); err != nil {
			return "", false, err
		}
	}
	alert, err := collections.FindAlert(tx, draft.AlertID)
	if err != nil {
		return "", false, err
	}
	alert.SetEscalation(id)
	if err := alert.Store(tx); err != nil {
		return "", false, err
	}
	return id, opened, auditEscalation(tx, event, id, draft.PatientID, audit.System(), nil, now)
}

// CancelOpen cancels all open escalations of a patient, as the system, in the caller's transaction, and returns their record ids.
func CancelOpen(tx core.App, patientID string, now time.Time) ([]string, error) {
	return collections.CancelEscalations(tx, patientID, alerts.System, now)
}
