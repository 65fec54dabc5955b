package billing

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// LogEscalation logs the interactive time of an escalation that somebody, by e-mail address, has just resolved, and bills what the month's time
// comes to, in the caller's transaction. The time is the assignee's, or that of whoever resolved it: the minutes of contact, where they were given,
// else what elapsed, up to the practice's cap. Elapsed time is never submitted unseen: the entry waits for somebody to attest it.
// Source: docs/decisions/billing.md, "Escalation time versus interactive time".
func (e *Engine) LogEscalation(tx core.App, resolved *collections.Escalation, by string, now time.Time) error {
	user, err := collections.FindUserByEmail(tx, cmp.Or(resolved.AssignedTo(), by))
	if collections.Missing(err) {
		return nil // an operator at the dashboard has no time of care to log
	}
	if err != nil {
		return err
	}
	started := resolved.AssignedAt()
	worked := max(0, min(now.Sub(started), e.EscalationTimeCap))
	if minutes := resolved.InteractionMinutes(); minutes != nil {
		worked = time.Duration(*minutes) * time.Minute
		started = now.Add(-worked)
	}
	if worked < time.Second || started.IsZero() {
		return nil
	}
	notes := cmp.Or(resolved.ResolutionNotes().Reveal(), "Escalation "+strconv.FormatInt(resolved.Number(), 10)+" resolved.")
	entry, err := collections.NewTimeEntry(tx, now)
	if err != nil {
		return err
	}
	entry.Fill(collections.TimeDraft{
		PatientID: resolved.PatientID(), UserID: user.Id, Category: collections.Interactive, Activity: "other", Source: collections.TimeEscalation,
		StartedAt: started, EndedAt: started.Add(worked), Seconds: int(worked / time.Second), EscalationID: resolved.Id, Notes: phi.Text(notes),
	})
	if err := tx.Save(entry); err != nil {
		return fmt.Errorf("store escalation time: %w", err)
	}
	if err := audit.Append(tx, timeAudit(audit.TimeEntryCreate, entry, audit.System()), now); err != nil {
		return err
	}
	tariff, err := readTariff(tx)
	if err != nil {
		return err
	}
	_, err = e.billTime(tx, tariff, []string{resolved.PatientID()}, monthOf(e.Day(started)), true, now)
	return err
}

func timeAudit(event audit.Event, entry *collections.TimeEntry, by audit.Actor) audit.Entry {
	return audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceTimeEntry, ResourceID: strconv.FormatInt(entry.Number(), 10), PatientID: entry.PatientID(),
		Changes: audit.Changes{
			"category": {New: entry.Category()}, "duration_seconds": {New: entry.Seconds()}, "started_at": {New: collections.Instant(entry.StartedAt())},
		},
	}
}
