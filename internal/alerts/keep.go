package alerts

import (
	"slices"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// byPeople are the columns of an alert that a person may change in the dashboard; everything else is what happened.
var byPeople = []string{"status", "notes", "clinical_note", "outcome", "follow_up_required", "follow_up_at"}

// Keep checks an alert that somebody changes as a record, and records the move that the change amounts to, in the caller's
// transaction; "" when nothing changed. A change that is no move comes back as [validation.Errors] by column.
func Keep(tx core.App, record *core.Record, by audit.Actor, now time.Time, save func() error) (Move, error) {
	before := record.Original()
	changed := changedColumns(before, record)
	if len(changed) == 0 {
		return "", save()
	}
	for _, column := range changed {
		if !slices.Contains(byPeople, column) {
			return "", refused(column, "What raised an alert cannot be changed.")
		}
	}
	action := Action{Move: Annotate}
	if slices.Contains(changed, "status") {
		switch Status(record.GetString("status")) {
		case StatusAcknowledged:
			action.Move = Acknowledge
		case StatusResolved:
			action.Move = Resolve
		default:
			return "", refused("status", "An alert can be acknowledged or resolved.")
		}
	}
	if record.GetBool("follow_up_required") && (slices.Contains(changed, "follow_up_required") || slices.Contains(changed, "follow_up_at")) {
		action.FollowUpAt = collections.ParseInstant(record.GetString("follow_up_at"))
		if action.FollowUpAt.IsZero() {
			action.FollowUpAt = now.Add(followUpAfter)
		}
	}
	columns, err := plan(before, action, by, now)
	if err != nil {
		return "", refused("status", "The alert is over and can no longer be changed.")
	}
	for column, value := range columns {
		record.Set(column, value)
	}
	if err := save(); err != nil {
		return "", err
	}
	said := audit.Changes{}
	for _, column := range changed {
		said[column] = audit.Change{Old: phi.Text(before.GetString(column)), New: phi.Text(record.GetString(column))}
	}
	return action.Move, noteMove(tx, record, action.Move, said, by, now)
}

func changedColumns(before, after *core.Record) (changed []string) {
	for _, name := range after.Collection().Fields.FieldNames() {
		if before.GetString(name) != after.GetString(name) {
			changed = append(changed, name)
		}
	}
	return changed
}

func refused(column, message string) error {
	return validation.Errors{column: validation.NewError("fixed", message)}
}
