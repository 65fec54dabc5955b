package billing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// escalationTime is the time requested for a resolved escalation, and the part that is logged.
type escalationTime struct {
	requested     time.Duration
	beforeOpening time.Duration // the part before the escalation was opened
	parts         []interval    // logged intervals
	overlapping   []string      // time entries that cover the remainder
}

// LogEscalationTime logs the interactive time of an escalation that a user (by e-mail address) just resolved, and bills the month's time, in the
// caller's transaction. The time is the assignee's, or the resolver's: the minutes of contact if given, else the elapsed time up to the
// practice's cap. Time before the escalation was opened, or already logged for the user or the patient, is left out; the escalation's history
// records how much. Elapsed time is never submitted unreviewed: the entry requires attestation. Source: docs/decisions/billing.md, "Escalation
// time versus interactive time" and "Overlapping time".
func (e *Engine) LogEscalationTime(tx core.App, resolved *collections.Escalation, by string, now time.Time) error {
	user, err := collections.FindUserByEmail(tx, cmp.Or(resolved.AssignedTo(), by))
	if collections.IsNotFound(err) {
		return nil // a PocketBase superuser logs no care time
	}
	if err != nil {
		return err
	}
	span := e.requestedInterval(resolved, now)
	if span.length() < time.Second || span.from.IsZero() {
		return nil
	}
	logged, err := e.loggableTime(tx, resolved, user.Id, span)
	if err != nil {
		return err
	}
	left := logged.requested - logged.beforeOpening - unionLength(logged.parts)
	months := []Span{}
	for i, part := range logged.parts {
		if i > 0 {
			left = 0 // recorded with the first part only
		}
		if err := logInterval(tx, resolved, user.Id, part, left, now); err != nil {
			return err
		}
		if month := monthOf(e.Day(part.from)); !slices.Contains(months, month) {
			months = append(months, month)
		}
	}
	if err := logged.recordInHistory(tx, resolved.Id, user.Email(), now); err != nil || len(months) == 0 {
		return err
	}
	tariff, err := e.loadPriceList(tx)
	for _, month := range months {
		if err == nil {
			_, err = e.billTime(tx, tariff, []string{resolved.PatientID()}, month, true, now)
		}
	}
	return err
}

// requestedInterval returns the given minutes before the resolution, or the time since the assignment.
func (e *Engine) requestedInterval(resolved *collections.Escalation, now time.Time) interval {
	if minutes := resolved.InteractionMinutes(); minutes != nil {
		return interval{now.Add(-time.Duration(*minutes) * time.Minute), now}
	}
	started := resolved.AssignedAt()
	return interval{started, started.Add(max(0, min(now.Sub(started), e.EscalationTimeCap)))}
}

// loggableTime removes the time before the escalation and the time that other entries cover.
func (e *Engine) loggableTime(tx core.App, resolved *collections.Escalation, userID string, span interval) (t escalationTime, err error) {
	t.requested = span.length()
	if opened := resolved.CreatedAt(); opened.After(span.from) {
		span.from = opened
		t.beforeOpening = t.requested - span.length()
	}
	others, err := overlappingTimes(tx, userID, resolved.PatientID(), "", span, e.timeRuleOf(monthOf(e.Day(span.from))))
	if err != nil {
		return t, err
	}
	var covered []interval
	for _, o := range others {
		covered = append(covered, interval{o.StartedAt(), o.EndedAt(timerLimit)})
		t.overlapping = append(t.overlapping, strconv.FormatInt(collections.Number(o.ID), 10))
	}
	t.parts = slices.DeleteFunc(subtractIntervals([]interval{span}, covered), func(m interval) bool { return m.length() < time.Second })
	return t, nil
}

func logInterval(tx core.App, resolved *collections.Escalation, userID string, part interval, left time.Duration, now time.Time) error {
	notes := cmp.Or(resolved.ResolutionNotes().Reveal(), "Escalation "+strconv.FormatInt(resolved.Number(), 10)+" resolved.")
	entry, err := collections.NewTimeEntry(tx, now)
	if err != nil {
		return err
	}
	entry.Fill(collections.TimeDraft{
		PatientID: resolved.PatientID(), UserID: userID, Category: collections.Interactive, Activity: "other", Source: collections.TimeEscalation,
		StartedAt: part.from, EndedAt: part.until, Seconds: int(part.length() / time.Second), EscalationID: resolved.Id, Notes: phi.Text(notes),
	})
	entry.SetOverlapSeconds(int(left / time.Second))
	if err := tx.Save(entry); err != nil {
		return fmt.Errorf("store escalation time: %w", err)
	}
	return audit.Append(tx, timeAudit(audit.TimeEntryCreate, entry, audit.System()), now)
}

// recordInHistory writes to the escalation's history what was not logged, and why.
func (t escalationTime) recordInHistory(tx core.App, escalationID, by string, now time.Time) error {
	logged := unionLength(t.parts)
	if t.requested-logged < time.Second {
		return nil
	}
	var why []string
	if t.beforeOpening >= time.Second {
		why = append(why, formatDuration(t.beforeOpening)+" before the escalation was opened")
	}
	if len(t.overlapping) > 0 {
		why = append(why, formatDuration(t.requested-t.beforeOpening-logged)+" already logged as "+strings.Join(t.overlapping, ", "))
	}
	detail := fmt.Sprintf("Logged %s of %s: %s.", formatDuration(logged), formatDuration(t.requested), strings.Join(why, "; "))
	return collections.InsertEscalationEvent(tx, escalationID, "time_logged", by, phi.Text(detail), now)
}

// formatDuration formats a duration in minutes and seconds.
func formatDuration(d time.Duration) string {
	minutes, seconds := int(d/time.Minute), int(d%time.Minute/time.Second)
	switch {
	case seconds == 0:
		return plural(minutes, "minute")
	case minutes == 0:
		return plural(seconds, "second")
	}
	return plural(minutes, "minute") + " " + plural(seconds, "second")
}
