package triage

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
)

// Priority is how quickly an escalation wants an answer.
type Priority string

// The escalation priorities of the contract.
const (
	Routine Priority = "routine"
	Urgent  Priority = "urgent"
	Stat    Priority = "stat"
)

// OpenEscalation is one that is open or in progress.
type OpenEscalation struct {
	ID       string
	Priority Priority
	// BySystem marks the one that the system itself opened; a patient has at most one.
	BySystem bool
	// NotifiedAt is when people were last told of it.
	NotifiedAt time.Time
}

// StatEscalation is the one the system opens for a critical reading.
type StatEscalation struct {
	PatientID  string
	Reason     string // the message of the alert that raises it; may be read beside the patient's name
	AssignedTo string // e-mail address of the primary provider, or ""
}

// OpenStat stores a stat escalation by the system inside the caller's transaction, under the record id that its alerts
// name already. alertID is the alert that raised it. Source: docs/decisions/alerts.md, "STAT-severity alert".
func OpenStat(tx core.App, id, alertID string, e StatEscalation, now time.Time) error {
	return store(tx, id, alertID, Stat, e, now)
}

func store(tx core.App, id, alertID string, priority Priority, e StatEscalation, now time.Time) error {
	reason, err := collections.Seal(e.Reason, "escalations.reason", id)
	if err != nil {
		return fmt.Errorf("seal escalation reason: %w", err)
	}
	at := collections.Instant(now)
	row := dbx.Params{
		"id": id, "patient": e.PatientID, "priority": string(priority), "status": "open", "created_by": alerts.System,
		"alert": alertID, "assigned_to": e.AssignedTo, "reason": reason, "created_at": at, "updated_at": at, "notified_at": at,
	}
	if e.AssignedTo != "" {
		row["assigned_at"] = at
	}
	if _, err := tx.DB().Insert(collections.Escalations, row).Execute(); err != nil {
		return fmt.Errorf("store escalation: %w", err)
	}
	return nil
}

// renotifyAfter is the time after which people hear anew of an escalation that further critical alerts join.
// Source: docs/decisions/alerts.md, "STAT-severity alert".
const renotifyAfter = 30 * time.Minute

// Renotify reports whether people are to hear of it anew when a critical alert joins it.
func (e OpenEscalation) Renotify(now time.Time) bool { return now.Sub(e.NotifiedAt) >= renotifyAfter }

// Attach notes that a further critical alert joined an open escalation, which is then at least stat; renotified, that people
// are told of it now.
func Attach(tx core.App, escalationID string, renotified bool, now time.Time) error {
	at := collections.Instant(now)
	changes := dbx.Params{"priority": string(Stat), "updated_at": at}
	if renotified {
		changes["notified_at"] = at
	}
	if _, err := tx.DB().Update(collections.Escalations, changes, dbx.HashExp{"id": escalationID}).Execute(); err != nil {
		return fmt.Errorf("attach alert to escalation: %w", err)
	}
	return nil
}
