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
	// BySystem marks the one that the system itself opened; a patient has at most one.
	BySystem bool
	// NotifiedAt is when people were last told of it.
	NotifiedAt time.Time
}

// renotifyAfter is the time after which people hear anew of an escalation that further critical alerts join.
// Source: docs/decisions/alerts.md, "STAT-severity alert".
const renotifyAfter = 30 * time.Minute

// Renotify reports whether people are to hear of it anew when a critical alert joins it.
func (e Active) Renotify(now time.Time) bool { return now.Sub(e.NotifiedAt) >= renotifyAfter }

// Store stores an escalation by the system inside the caller's transaction, under the record id that its alerts may name
// already; nobody is told and nothing recorded. It runs on the way of readings. Source: docs/decisions/alerts.md, "STAT-severity alert".
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

// JoinedBy says in an escalation's history what joined it: a further critical reading, or what is worse than what people know.
func JoinedBy(worse phi.Text) phi.Text {
	if worse == "" {
		return "A further critical reading."
	}
	return "A worse critical reading: " + worse
}

// Join notes that a further critical alert joined an open escalation, which is then at least stat; renotified, that people
// are told of it now, and why. One that was less urgent before waits anew, by the deadlines of a stat one.
func Join(tx core.App, escalationID string, renotified bool, why phi.Text, now time.Time) error {
	raised, err := collections.RaiseEscalation(tx, escalationID, now)
	if err != nil {
		return err
	}
	if raised || renotified {
		if err := remember(tx, escalationID, eventJoined, why.Reveal(), now); err != nil {
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

// OpenBySystem opens an escalation by the system, inside the caller's transaction, and names it in the alert that raised it.
// A patient has one such escalation at a time: where one is open already the alert joins it, and opened is false. Telling
// people is the caller's.
func OpenBySystem(tx core.App, draft Draft, now time.Time) (id string, opened bool, err error) {
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
	return id, opened, note(tx, event, id, draft.PatientID, audit.System(), nil, now)
}

// CancelOpen cancels every open escalation of a patient, as the system, inside the caller's transaction, and returns their
// record ids.
func CancelOpen(tx core.App, patientID string, now time.Time) ([]string, error) {
	return collections.CancelEscalations(tx, patientID, alerts.System, now)
}
