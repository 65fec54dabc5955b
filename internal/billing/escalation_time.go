package billing

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// EscalationTime is what a resolved escalation says about the time it took. Ids are record ids.
type EscalationTime struct {
	PatientID, UserID, EscalationID string
	AssignedAt, ResolvedAt          time.Time
	// Minutes are those of contact, where the person gave them; nil takes the elapsed time, up to the practice's cap.
	Minutes *int
	// Notes say what was done. They are stored encrypted.
	Notes string
}

// LogEscalation logs the interactive time of a resolved escalation and bills what the month's time comes to, in the caller's transaction. Elapsed
// time is never submitted unseen: the entry waits for somebody to attest it.
// Source: docs/decisions/billing.md, "Escalation time versus interactive time".
func LogEscalation(tx core.App, t EscalationTime, now time.Time) error {
	e := inForce.Load()
	if e == nil {
		return errors.New("billing: no engine in use")
	}
	return e.logEscalation(tx, t, now)
}

func (e *Engine) logEscalation(tx core.App, t EscalationTime, now time.Time) error {
	worked := max(0, min(t.ResolvedAt.Sub(t.AssignedAt), e.EscalationTimeCap))
	started := t.AssignedAt
	if t.Minutes != nil {
		worked = time.Duration(*t.Minutes) * time.Minute
		started = t.ResolvedAt.Add(-worked)
	}
	if worked < time.Second || t.UserID == "" || started.IsZero() {
		return nil
	}
	number := collections.Number(t.EscalationID)
	if t.Notes == "" {
		t.Notes = "Escalation " + strconv.FormatInt(number, 10) + " resolved."
	}
	entry, err := collections.NewTimeEntry(tx, now)
	if err != nil {
		return err
	}
	entry.ProxyRecord().Load(map[string]any{
		"patient": t.PatientID, "user": t.UserID, "category": collections.Interactive, "activity": "other", "source": collections.TimeEscalation,
		"started_at": collections.Instant(started), "ended_at": collections.Instant(started.Add(worked)),
		"duration_seconds": int(worked / time.Second), "escalation": t.EscalationID, "notes": t.Notes,
	})
	if err := tx.Save(entry); err != nil {
		return fmt.Errorf("store escalation time: %w", err)
	}
	err = audit.Append(tx, timeAudit(audit.TimeEntryCreate, entry, audit.System()), now)
	if err != nil {
		return err
	}
	tariff, err := readTariff(tx)
	if err != nil {
		return err
	}
	first, last := monthOf(e.Day(started))
	_, _, err = e.billTime(tx, tariff, []string{t.PatientID}, Span{first, last}, true, now)
	return err
}

func timeAudit(event audit.Event, entry *collections.TimeEntry, by audit.Actor) audit.Entry {
	return audit.Entry{
		Event: event, Actor: by, ResourceType: "TimeEntry", ResourceID: strconv.FormatInt(entry.Number(), 10), PatientID: entry.PatientID(),
		Changes: audit.Changes{
			"category": {New: entry.Category()}, "duration_seconds": {New: entry.Seconds()}, "started_at": {New: entry.GetString("started_at")},
		},
	}
}
