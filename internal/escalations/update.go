package escalations

import (
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

// Effect is the result of a requested change.
type Effect int

// The effects. A resolved escalation is also a review and billed time.
const (
	Unchanged Effect = iota
	Changed
	Resolved
)

// Update changes an escalation in the caller's transaction.
func Update(tx core.App, number int64, change Change, by audit.Actor, now time.Time) (*collections.Escalation, Effect, error) {
	e, err := Find(tx, number)
	if err != nil {
		return nil, Unchanged, err
	}
	effect, err := apply(tx, e, change, by, now, func() error { return e.Store(tx) })
	return e, effect, err
}

// apply changes the record by the rules, stores and announces it. If nothing changes, nothing is written.
func apply(tx core.App, e *collections.Escalation, change Change, by audit.Actor, now time.Time, store func() error) (Effect, error) {
	was := stateOf(e)
	changes, assignee, err := plan(tx, e, change, by, now)
	if err != nil || len(changes) == 0 {
		return Unchanged, err
	}
	was.updateDeadlines(e, change, now)
	e.SetUpdatedAt(now)
	if assignee != nil {
		e.SetNotifiedAt(now)
	}
	if err := store(); err != nil {
		return Unchanged, err
	}
	if err := was.recordEvents(tx, e, change, by, now); err != nil {
		return Unchanged, err
	}
	if err := auditEscalation(tx, audit.EscalationUpdate, e.Id, e.PatientID(), by, changes, now); err != nil {
		return Unchanged, err
	}
	if assignee != nil && assignee.Email() != by.Email {
		key := " assigned " + assignee.Id + " " + collections.FormatInstant(now)
		if err := announce(tx, e, notifications.EscalationAssigned, assignee.Id, key, now); err != nil {
			return Unchanged, err
		}
	}
	if Status(e.Status()) != was.status && Status(e.Status()) == StatusResolved {
		return Resolved, nil
	}
	return Changed, nil
}

// plan sets the changed columns on the record and returns the changes; assignee is set if the escalation gets a new one.
func plan(tx core.App, e *collections.Escalation, change Change, by audit.Actor, now time.Time) (changes audit.Changes, assignee *collections.User, err error) {
	changes = audit.Changes{}
	from, to := Status(e.Status()), Status(e.Status())
	if change.Status != nil {
		if _, err := CanChangeStatus(from, *change.Status); err != nil {
			return nil, nil, err
		}
		to = *change.Status
	}
	if from.IsClosed() && change != (Change{}) {
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
	if change.ResolutionNotes != nil {
		set(collections.EscalationResolutionNotes, change.ResolutionNotes.Reveal(), *change.ResolutionNotes)
	}
	if assignee, err = planAssignee(tx, e, change.AssignedTo, to, by, now, changes); err != nil {
		return nil, nil, err
	}
	if from != to {
		set(collections.EscalationStatus, string(to), to)
		switch to {
		case StatusResolved:
			e.SetResolved(alerts.ActorName(by), now)
		case StatusCancelled:
			e.SetCancelled(alerts.ActorName(by), now)
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

// planAssignee assigns the escalation as named. A user who starts work on an unassigned one becomes its assignee.
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
		if err != nil && !collections.IsNotFound(err) {
			return nil, err
		}
		if err == nil && canBeAssigned(user) {
			assignee = user
		}
	}
	if assignee != nil && assignee.Email() == before {
		return nil, nil
	}
	if assignee != nil {
		e.Assign(assignee.Email(), now)
	}
	changes.Record(collections.EscalationAssignedTo, before, e.AssignedTo())
	return assignee, nil
}

// canBeAssigned reports whether a user can be assigned an escalation.
func canBeAssigned(user *collections.User) bool {
	switch authz.Role(user.Role()) {
	case authz.Provider, authz.Nurse, authz.ClinicalManager, authz.Admin:
		return user.Active()
	}
	return false
}

// findAssignee returns the active clinician with the address; without an address the patient's primary provider, if active; otherwise nil.
// Source: docs/decisions/escalations.md, "Assignment".
func findAssignee(tx core.App, email string, patient *collections.Patient) (*collections.User, error) {
	if email == "" {
		id := patient.GetString(collections.PatientPrimaryProvider)
		if id == "" {
			return nil, nil
		}
		user, err := collections.FindUser(tx, id)
		if collections.IsNotFound(err) || (err == nil && !canBeAssigned(user)) {
			return nil, nil
		}
		return user, err
	}
	user, err := collections.FindUserByEmail(tx, strings.ToLower(strings.TrimSpace(email)))
	if collections.IsNotFound(err) || (err == nil && !canBeAssigned(user)) {
		return nil, fault.Field("assigned_to", "Must be the e-mail address of an active clinician.")
	}
	return user, err
}

// editableColumns are the columns of an escalation that a user may change in the dashboard; all others record what happened.
var editableColumns = []string{
	collections.EscalationStatus, collections.EscalationPriority, collections.EscalationAssignedTo, collections.EscalationResolutionNotes,
	collections.EscalationInteractionMinutes,
}

// Guard opens an escalation created as a record, or changes one by the API's rules, in the caller's transaction. Errors are
// [validation.Errors] or faults.
func Guard(tx core.App, e *collections.Escalation, by audit.Actor, now time.Time, save func() error) (Effect, error) {
	if e.IsNew() {
		if e.Reason() == "" {
			return Unchanged, validation.Errors{collections.EscalationReason: validation.ErrRequired}
		}
		return Changed, openRecord(tx, e, by, now, save)
	}
	change, err := changeOf(e)
	if err != nil {
		return Unchanged, err
	}
	if change == (Change{}) {
		return Unchanged, save()
	}
	before := e.Original()
	for _, name := range editableColumns { // apply starts from the stored values
		e.SetRaw(name, before.GetRaw(name))
	}
	return apply(tx, e, change, by, now, save)
}

// changeOf returns the change that a user made to a record.
func changeOf(e *collections.Escalation) (change Change, err error) {
	const column, invalid = collections.EscalationInteractionMinutes, "validation_invalid_value"
	before := e.Original()
	for _, name := range e.Collection().Fields.FieldNames() {
		value := e.GetString(name)
		if before.GetString(name) == value {
			continue
		}
		if !slices.Contains(editableColumns, name) {
			return change, validation.Errors{name: validation.NewError("fixed", "This column records what happened and cannot be changed.")}
		}
		switch name {
		case collections.EscalationStatus:
			change.Status = new(Status(value))
		case collections.EscalationPriority:
			change.Priority = new(Priority(value))
		case collections.EscalationAssignedTo:
			change.AssignedTo = new(value)
		case collections.EscalationResolutionNotes:
			change.ResolutionNotes = new(phi.Text(value))
		case column:
			minutes := e.InteractionMinutes()
			if minutes == nil || *minutes < 0 || *minutes > maxMinutes {
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
