package escalations

import (
	"slices"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
)

// byPeople are the columns of an escalation that a person may change in the dashboard; everything else is what happened.
var byPeople = []string{"status", "priority", "assigned_to", "resolution_notes", "interaction_minutes"}

// Keep opens an escalation that somebody creates as a record, or changes one by the rules, with the same consequences as
// through the API, in the caller's transaction. What is wrong comes back as [validation.Errors] or as a fault.
func Keep(tx core.App, record *core.Record, by audit.Actor, now time.Time, save func() error) error {
	if record.IsNew() {
		if record.GetString("reason") == "" {
			return validation.Errors{"reason": validation.ErrRequired}
		}
		for _, column := range []string{"resolved_by", "resolved_at", "cancelled_by", "cancelled_at", "resolution_notes", "interaction_minutes"} {
			record.Set(column, nil)
		}
		return open(tx, record, by, now, save)
	}
	before := record.Original()
	var change Change
	for _, name := range record.Collection().Fields.FieldNames() {
		value := record.GetString(name)
		if before.GetString(name) == value {
			continue
		}
		if !slices.Contains(byPeople, name) {
			return validation.Errors{name: validation.NewError("fixed", "What happened cannot be changed.")}
		}
		switch name {
		case "status":
			change.Status = new(Status(value))
		case "priority":
			change.Priority = new(triage.Priority(value))
		case "assigned_to":
			change.AssignedTo = new(value)
		case "resolution_notes":
			change.Notes = new(phi.Text(value))
		case "interaction_minutes":
			minutes := collections.Optional(record, name)
			if minutes == nil || *minutes < 0 || *minutes > mostMinutes {
				return validation.Errors{name: validation.NewError("validation_invalid_value", "Must be between 0 and 240.")}
			}
			change.InteractionMinutes = new(int(*minutes))
		}
	}
	if change == (Change{}) {
		return save()
	}
	resolving := change.Status != nil && *change.Status == StatusResolved
	if change.InteractionMinutes != nil && !resolving {
		return validation.Errors{"interaction_minutes": validation.NewError("validation_invalid_value", "Can only be given with the status resolved.")}
	}
	for _, name := range byPeople { // the rules start from what is stored, and set what changes
		record.SetRaw(name, before.GetRaw(name))
	}
	return carryOut(tx, record, change, by, now, save)
}
