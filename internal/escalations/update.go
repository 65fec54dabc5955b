package escalations

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
)

// Find returns an escalation by its public number, or a not-found fault.
func Find(app core.App, number int64) (*core.Record, error) {
	record, err := app.FindRecordById(collections.Escalations, collections.NumberID(number))
	if collections.Missing(err) {
		return nil, fault.Missing()
	}
	if err != nil {
		return nil, fmt.Errorf("find escalation: %w", err)
	}
	return record, collections.Readable(record)
}

// Update changes an escalation, in one transaction with all that follows.
func Update(app core.App, number int64, change Change, by audit.Actor, now time.Time) (record *core.Record, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if record, err = Find(tx, number); err != nil {
			return err
		}
		return apply(tx, record, change, by, now)
	})
	return record, err
}

// written are the columns that a change may touch.
var written = []string{
	"status", "priority", "assigned_to", "assigned_at", "resolution_notes", "interaction_minutes", "resolved_by", "resolved_at",
	"cancelled_by", "cancelled_at", "notified_at", "updated_at",
}

func apply(tx core.App, record *core.Record, change Change, by audit.Actor, now time.Time) error {
	return carryOut(tx, record, change, by, now, func() error { return collections.Update(tx, record, written...) })
}

// carryOut changes the record by the rules, has it stored, and does what follows. A change of nothing leaves no trace.
func carryOut(tx core.App, record *core.Record, change Change, by audit.Actor, now time.Time, store func() error) error {
	changes, assignee, err := plan(tx, record, change, by, now)
	if err != nil || len(changes) == 0 {
		return err
	}
	record.Set("updated_at", collections.Instant(now))
	if assignee != nil {
		record.Set("notified_at", collections.Instant(now))
	}
	if err := store(); err != nil {
		return err
	}
	if err := note(tx, audit.EscalationUpdate, record, by, changes, now); err != nil {
		return err
	}
	if assignee != nil && assignee.Email() != by.Email {
		if err := announceAssigned(tx, record, assignee, now); err != nil {
			return err
		}
	}
	if _, moved := changes["status"]; moved && Status(record.GetString("status")) == StatusResolved {
		if err := resolved(tx, record, by, now); err != nil {
			return err
		}
	}
	_, err = triage.Rescore(tx, record.GetString("patient"), now)
	return err
}

// plan sets what changes on the record and says what that was; assignee is somebody who has it from now on.
func plan(tx core.App, record *core.Record, change Change, by audit.Actor, now time.Time) (changes audit.Changes, assignee *collections.User, err error) {
	changes = audit.Changes{}
	from, to := Status(record.GetString("status")), Status(record.GetString("status"))
	if change.Status != nil {
		if _, err := Move(from, *change.Status); err != nil {
			return nil, nil, err
		}
		to = *change.Status
	}
	if from.Closed() && change != (Change{}) {
		return nil, nil, fault.State("invalid_state", "The escalation is "+string(from)+" and can no longer be changed.")
	}
	set := func(column string, value any, shown any) {
		if old := record.GetString(column); old != fmt.Sprint(value) {
			changes[column] = audit.Change{Old: phi.Text(old), New: shown}
			record.Set(column, value)
		}
	}
	if change.Priority != nil {
		set("priority", string(*change.Priority), *change.Priority)
	}
	if change.Notes != nil {
		set("resolution_notes", change.Notes.Reveal(), *change.Notes)
	}
	if assignee, err = planAssignee(tx, record, change.AssignedTo, to, by, now, changes); err != nil {
		return nil, nil, err
	}
	if from != to {
		set("status", string(to), to)
		planEnd(record, to, author(by), now)
	}
	if change.InteractionMinutes != nil {
		changes["interaction_minutes"] = audit.Change{New: *change.InteractionMinutes}
		record.Set("interaction_minutes", *change.InteractionMinutes)
	}
	return changes, assignee, nil
}

// planEnd notes who ended it.
func planEnd(record *core.Record, to Status, who string, now time.Time) {
	switch to {
	case StatusResolved:
		record.Set("resolved_by", who)
		record.Set("resolved_at", collections.Instant(now))
	case StatusCancelled:
		record.Set("cancelled_by", who)
		record.Set("cancelled_at", collections.Instant(now))
	}
}

// planAssignee gives the escalation to whom the change names. Who takes up one that nobody has, has it.
func planAssignee(
	tx core.App, record *core.Record, named *string, to Status, by audit.Actor, now time.Time, changes audit.Changes,
) (assignee *collections.User, err error) {
	before := record.GetString("assigned_to")
	switch {
	case named != nil && *named == "":
		assign(record, nil, now)
	case named != nil:
		if assignee, err = findAssignee(tx, *named, nil); err != nil {
			return nil, err
		}
	case before == "" && to == StatusInProgress && Status(record.GetString("status")) == StatusOpen:
		user, err := collections.FindUserByEmail(tx, by.Email)
		if err != nil && !collections.Missing(err) {
			return nil, err
		}
		if err == nil && answers(user) {
			assignee = user
		}
	}
	if assignee != nil && assignee.Email() == before {
		return nil, nil
	}
	if assignee != nil {
		assign(record, assignee, now)
	}
	if after := record.GetString("assigned_to"); after != before {
		changes["assigned_to"] = audit.Change{Old: before, New: after}
	}
	return assignee, nil
}

// resolved does what follows from the end of an escalation that was answered: the patient was looked at, and the time is
// logged. It is the assignee's, or that of whoever resolved it. Source: docs/decisions/billing.md, "Escalation time versus interactive
// time" and docs/decisions/triage.md, "What a review is".
func resolved(tx core.App, record *core.Record, by audit.Actor, now time.Time) error {
	patientID := record.GetString("patient")
	if err := triage.NoteReview(tx, patientID, by.Email, now); err != nil {
		return err
	}
	worker := record.GetString("assigned_to")
	if worker == "" {
		worker = by.Email
	}
	user, err := collections.FindUserByEmail(tx, worker)
	if collections.Missing(err) {
		return nil // an operator at the dashboard has no time of care to log
	}
	if err != nil {
		return err
	}
	spent := billing.EscalationTime{
		PatientID: patientID, UserID: user.Id, EscalationID: record.Id, ResolvedAt: now,
		AssignedAt: collections.ParseInstant(record.GetString("assigned_at")), Notes: record.GetString("resolution_notes"),
	}
	if minutes := collections.Optional(record, "interaction_minutes"); minutes != nil {
		spent.Minutes = new(int(*minutes))
	}
	if spent.AssignedAt.IsZero() && spent.Minutes == nil {
		return nil
	}
	return billing.LogEscalation(tx, spent, now)
}

// note appends the audit entry of an escalation.
func note(tx core.App, event audit.Event, record *core.Record, by audit.Actor, changes audit.Changes, now time.Time) error {
	return audit.Append(tx, audit.Entry{
		Event: event, Actor: by, ResourceType: "Escalation", ResourceID: strconv.FormatInt(collections.Number(record.Id), 10),
		PatientID: record.GetString("patient"), Changes: changes,
	}, now)
}
