package escalations

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Effect is what became of a change that was asked for.
type Effect int

// The effects. One that was resolved was answered, from which more follows.
const (
	Nothing Effect = iota
	Changed
	Resolved
)

// Update changes an escalation, in the caller's transaction.
func Update(tx core.App, number int64, change Change, by audit.Actor, now time.Time) (*collections.Escalation, Effect, error) {
	e, err := Find(tx, number)
	if err != nil {
		return nil, Nothing, err
	}
	effect, err := apply(tx, e, change, by, now, func() error { return e.Store(tx) })
	return e, effect, err
}

// apply changes the record by the rules, has it stored, and tells of it. A change of nothing leaves no trace.
func apply(tx core.App, e *collections.Escalation, change Change, by audit.Actor, now time.Time, store func() error) (Effect, error) {
	was := situation(e)
	changes, assignee, err := plan(tx, e, change, by, now)
	if err != nil || len(changes) == 0 {
		return Nothing, err
	}
	was.follow(e, change, now)
	e.SetUpdatedAt(now)
	if assignee != nil {
		e.SetNotifiedAt(now)
	}
	if err := store(); err != nil {
		return Nothing, err
	}
	if err := was.remember(tx, e, change, by, now); err != nil {
		return Nothing, err
	}
	if err := note(tx, audit.EscalationUpdate, e.Id, e.PatientID(), by, changes, now); err != nil {
		return Nothing, err
	}
	if assignee != nil && assignee.Email() != by.Email {
		key := " assigned " + assignee.Id + " " + collections.Instant(now)
		if err := announce(tx, e, notifications.EscalationAssigned, assignee.Id, key, now); err != nil {
			return Nothing, err
		}
	}
	if Status(e.Status()) != was.status && Status(e.Status()) == StatusResolved {
		return Resolved, nil
	}
	return Changed, nil
}

// plan sets what changes on the record and says what that was; assignee is somebody who has it from now on.
func plan(tx core.App, e *collections.Escalation, change Change, by audit.Actor, now time.Time) (changes audit.Changes, assignee *collections.User, err error) {
	changes = audit.Changes{}
	from, to := Status(e.Status()), Status(e.Status())
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
		if old := e.GetString(column); old != fmt.Sprint(value) {
			changes[column] = audit.Change{Old: phi.Text(old), New: shown}
			e.Set(column, value)
		}
	}
	if change.Priority != nil {
		set(collections.EscalationPriority, string(*change.Priority), *change.Priority)
	}
	if change.Notes != nil {
		set(collections.EscalationResolutionNotes, change.Notes.Reveal(), *change.Notes)
	}
	if assignee, err = planAssignee(tx, e, change.AssignedTo, to, by, now, changes); err != nil {
		return nil, nil, err
	}
	if from != to {
		set(collections.EscalationStatus, string(to), to)
		switch to {
		case StatusResolved:
			e.SetResolved(author(by), now)
		case StatusCancelled:
			e.SetCancelled(author(by), now)
		}
	}
	if change.Note != "" {
		changes["notes"] = audit.Change{New: change.Note}
	}
	if change.InteractionMinutes != nil {
		changes[collections.EscalationInteractionMinutes] = audit.Change{New: *change.InteractionMinutes}
		e.SetInteractionMinutes(*change.InteractionMinutes)
	}
	return changes, assignee, nil
}

// planAssignee gives the escalation to whom the change names. Who takes up one that nobody has, has it.
func planAssignee(
	tx core.App, e *collections.Escalation, named *string, to Status, by audit.Actor, now time.Time, changes audit.Changes,
) (assignee *collections.User, err error) {
	before := e.AssignedTo()
	switch {
	case named != nil && *named == "":
		e.Assign("", now)
	case named != nil:
		if assignee, err = findAssignee(tx, *named, nil); err != nil {
			return nil, err
		}
	case before == "" && to == StatusInProgress && Status(e.Status()) == StatusOpen:
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
		e.Assign(assignee.Email(), now)
	}
	changes.Note(collections.EscalationAssignedTo, before, e.AssignedTo())
	return assignee, nil
}

// answers reports whether somebody can be given an escalation.
func answers(user *collections.User) bool {
	switch authz.Role(user.Role()) {
	case authz.Provider, authz.Nurse, authz.ClinicalManager, authz.Admin:
		return user.Active()
	}
	return false
}

// findAssignee is the active clinician with the address; without one, the patient's primary provider, if that is one; else
// nobody. Source: docs/decisions/escalations.md, "Assignment".
func findAssignee(tx core.App, email string, patient *collections.Patient) (*collections.User, error) {
	if email == "" {
		id := patient.GetString(collections.PatientPrimaryProvider)
		if id == "" {
			return nil, nil
		}
		user, err := collections.FindUser(tx, id)
		if collections.Missing(err) || (err == nil && !answers(user)) {
			return nil, nil
		}
		return user, err
	}
	user, err := collections.FindUserByEmail(tx, strings.ToLower(strings.TrimSpace(email)))
	if collections.Missing(err) || (err == nil && !answers(user)) {
		return nil, fault.Field("assigned_to", "Must be the e-mail address of an active clinician.")
	}
	return user, err
}

func author(by audit.Actor) string { return cmp.Or(by.Email, alerts.System) }

// byPeople are the columns of an escalation that a person may change in the dashboard; everything else is what happened.
var byPeople = []string{
	collections.EscalationStatus, collections.EscalationPriority, collections.EscalationAssignedTo, collections.EscalationResolutionNotes,
	collections.EscalationInteractionMinutes,
}

// Guard opens an escalation that somebody creates as a record, or changes one by the rules, as the API does, in the caller's
// transaction. What is wrong comes back as [validation.Errors] or as a fault.
func Guard(tx core.App, e *collections.Escalation, by audit.Actor, now time.Time, save func() error) (Effect, error) {
	if e.IsNew() {
		if e.Reason() == "" {
			return Nothing, validation.Errors{collections.EscalationReason: validation.ErrRequired}
		}
		return Changed, open(tx, e, by, now, save)
	}
	change, err := changeOf(e)
	if err != nil {
		return Nothing, err
	}
	if change == (Change{}) {
		return Nothing, save()
	}
	before := e.Original()
	for _, name := range byPeople { // the rules start from what is stored, and set what changes
		e.SetRaw(name, before.GetRaw(name))
	}
	return apply(tx, e, change, by, now, save)
}

// changeOf is what somebody changed of a record.
func changeOf(e *collections.Escalation) (change Change, err error) {
	const column, invalid = collections.EscalationInteractionMinutes, "validation_invalid_value"
	before := e.Original()
	for _, name := range e.Collection().Fields.FieldNames() {
		value := e.GetString(name)
		if before.GetString(name) == value {
			continue
		}
		if !slices.Contains(byPeople, name) {
			return change, validation.Errors{name: validation.NewError("fixed", "What happened cannot be changed.")}
		}
		switch name {
		case collections.EscalationStatus:
			change.Status = new(Status(value))
		case collections.EscalationPriority:
			change.Priority = new(Priority(value))
		case collections.EscalationAssignedTo:
			change.AssignedTo = new(value)
		case collections.EscalationResolutionNotes:
			change.Notes = new(phi.Text(value))
		case column:
			minutes := e.InteractionMinutes()
			if minutes == nil || *minutes < 0 || *minutes > mostMinutes {
				return change, validation.Errors{column: validation.NewError(invalid, "Must be between 0 and 240.")}
			}
			change.InteractionMinutes = new(int(*minutes))
		}
	}
	if change.InteractionMinutes != nil && (change.Status == nil || *change.Status != StatusResolved) {
		return change, validation.Errors{column: validation.NewError(invalid, "Can only be given with the status resolved.")}
	}
	return change, nil
}
