package escalations

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// ActiveEscalation is an escalation that is open or in progress.
type ActiveEscalation struct {
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
func (a ActiveEscalation) NeedsRenotify(now time.Time) bool {
	return now.Sub(a.NotifiedAt) >= renotifyAfter
}

// Trigger is an alert that the system escalates.
type Trigger struct {
	// Draft is the escalation to open; Priority is Urgent or Stat. It is assigned to the patient's active primary provider by default.
	Draft
	// ActiveEscalation are the patient's active escalations.
	Active []ActiveEscalation
	// IsWorse: a critical reading is worse than the last notification. Renotify notifies users of an escalation that it joins even right after
	// another notification.
	IsWorse, Renotify bool
}

// JoinOrOpen escalates an alert in the caller's transaction and notifies users. A patient has one escalation by the system at a time: the
// alert joins it, or opens one. A critical alert makes a joined one at least stat, and users are notified of it again if the reading is
// worse or a renotification is due. The caller rescores the patient. Source: docs/decisions/alerts.md, "STAT-severity alert".
func JoinOrOpen(tx core.App, t Trigger, now time.Time) (id string, opened bool, err error) {
	d := Decision{Open: t.Draft, Renotify: t.IsWorse || t.Renotify}
	if d.Join, err = collections.OpenEscalationBy(tx, t.PatientID, alerts.System); err != nil {
		return "", false, err
	}
	if t.IsWorse {
		d.WorseMessage = t.Reason
	}
	if d.Join == "" && d.Open.AssignedTo == "" {
		if d.Open.AssignedTo, err = collections.ActiveProviderEmail(tx, t.PatientID); err != nil {
			return "", false, err
		}
	}
	for _, active := range t.Active {
		d.Renotify = d.Renotify || active.ID == d.Join && active.NeedsRenotify(now)
	}
	if id, err = attach(tx, d, now); err != nil || d.Join != "" && t.Priority != Stat {
		return id, false, err
	}
	label, err := collections.PatientLabel(tx, t.PatientID)
	if err != nil {
		return "", false, err
	}
	return id, d.Join == "", d.Write(tx, id, label, now)
}

// Decision is the effect of an alert that the system escalates: it joins an active escalation or opens one.
type Decision struct {
	Join         string   // record id of the active escalation, which becomes at least stat; "" opens Open
	Open         Draft    // PatientID, Reason and AlertID are those of the alert in both cases
	Renotify     bool     // users are notified of the joined escalation
	WorseMessage phi.Text // message of a reading that is worse than the last notification; "" for none
}

// Write stores the escalation with its record id, or joins it, and notifies users. It writes no audit entry and does not attach the alert.
func (d Decision) Write(tx core.App, id, patientLabel string, now time.Time) error {
	key, priority, text := "escalation "+id, d.Open.Priority, d.Open.Reason
	if d.Join == "" {
		if err := insert(tx, id, d.Open, now); err != nil {
			return err
		}
	} else {
		key, priority, text = key+" joined "+collections.FormatInstant(now), Stat, "A further critical reading."
		if d.WorseMessage != "" {
			text = "A worse critical reading: " + d.WorseMessage
		}
		if err := join(tx, id, d.Renotify, text, now); err != nil || !d.Renotify {
			return err
		}
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EscalationOpened, Severity: severities[priority], PatientID: d.Open.PatientID, EscalationID: id, AlertID: d.Open.AlertID,
		Body: patientLabel + ", " + string(priority) + ": " + text.Reveal(), Key: key,
	}, now)
}

// attach attaches the alert of a decision to its escalation, audits that, and returns the escalation's record id.
func attach(tx core.App, d Decision, now time.Time) (id string, err error) {
	event := audit.EscalationUpdate
	if id = d.Join; id == "" {
		event = audit.EscalationCreate
		if id, err = collections.NextID(tx, collections.Escalations); err != nil {
			return "", err
		}
	}
	alert, err := collections.FindAlert(tx, d.Open.AlertID)
	if err != nil {
		return "", err
	}
	alert.SetEscalation(id)
	if err := alert.Store(tx); err != nil {
		return "", err
	}
	return id, auditEscalation(tx, event, id, d.Open.PatientID, audit.System(), nil, now)
}

// insert stores an escalation opened by the system, with a record id that its alerts may already name.
func insert(tx core.App, id string, draft Draft, now time.Time) error {
	reason, err := collections.Seal(draft.Reason.Reveal(), "escalations.reason", id)
	if err != nil {
		return fmt.Errorf("seal escalation reason: %w", err)
	}
	at := collections.FormatInstant(now)
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

// join records that a critical alert joined an open escalation, which becomes at least stat; its deadlines restart if it was less urgent.
func join(tx core.App, escalationID string, renotified bool, why phi.Text, now time.Time) error {
	raised, err := collections.RaiseToStat(tx, escalationID, now)
	if err != nil {
		return err
	}
	if raised || renotified {
		if err := recordSystemEvent(tx, escalationID, eventJoined, why.Reveal(), now); err != nil {
			return err
		}
	}
	at := collections.FormatInstant(now)
	changes := dbx.Params{"updated_at": at}
	if renotified {
		changes["notified_at"] = at
	}
	if _, err := tx.DB().Update(collections.Escalations, changes, dbx.HashExp{"id": escalationID}).Execute(); err != nil {
		return fmt.Errorf("join escalation: %w", err)
	}
	return nil
}

// Cancel cancels open escalations, given by their numbers, for a reason in the caller's transaction.
func Cancel(tx core.App, numbers []int64, why phi.Text, by audit.Actor, now time.Time) error {
	for _, number := range numbers {
		if _, _, err := Update(tx, number, Change{Status: new(StatusCancelled), ResolutionNotes: new(why)}, by, now); err != nil {
			return err
		}
	}
	return nil
}

// CancelOpen cancels all open escalations of a patient, as the system, in the caller's transaction, and returns their record ids.
func CancelOpen(tx core.App, patientID string, now time.Time) ([]string, error) {
	return collections.CancelEscalations(tx, patientID, alerts.System, now)
}
