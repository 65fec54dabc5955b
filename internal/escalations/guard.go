package escalations

import (
	"slices"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

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
