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
var byPeople = []string{
	collections.AlertStatus, collections.AlertNotes, collections.AlertClinicalNote, collections.AlertOutcome, collections.AlertFollowUpRequired,
	collections.AlertFollowUpAt,
}

// Guard checks an alert that somebody changes as a record, and records the move that the change amounts to, in the caller's
// transaction; "" when nothing changed. A change that is no move comes back as [validation.Errors] by column.
func Guard(tx core.App, alert *collections.Alert, by audit.Actor, now time.Time, save func() error) (Move, error) {
	before := collections.AsAlert(alert.Original())
	var changed []string
	for _, name := range alert.Collection().Fields.FieldNames() {
		if before.GetString(name) == alert.GetString(name) {
			continue
		}
		if !slices.Contains(byPeople, name) {
			return "", refused(name, "What raised an alert cannot be changed.")
		}
		changed = append(changed, name)
	}
	if len(changed) == 0 {
		return "", save()
	}
	action := Action{Move: Annotate}
	if before.Status() != alert.Status() {
		switch Status(alert.Status()) {
		case StatusAcknowledged:
			action.Move = Acknowledge
		case StatusResolved:
			action.Move = Resolve
		default:
			return "", refused(collections.AlertStatus, "An alert can be acknowledged or resolved.")
		}
	}
	if alert.FollowUpRequired() && (!before.FollowUpRequired() || slices.Contains(changed, collections.AlertFollowUpAt)) {
		if action.FollowUpAt = alert.FollowUpAt(); action.FollowUpAt.IsZero() {
			action.FollowUpAt = now.Add(followUpAfter)
		}
	}
	if err := change(alert, Status(before.Status()), action, by, now); err != nil {
		return "", refused(collections.AlertStatus, "The alert is over and can no longer be changed.")
	}
	if err := save(); err != nil {
		return "", err
	}
	said := audit.Changes{}
	for _, column := range changed {
		said[column] = audit.Change{Old: phi.Text(before.GetString(column)), New: phi.Text(alert.GetString(column))}
	}
	return action.Move, note(tx, moveEvents[action.Move], alert.Id, alert.PatientID(), said, by, now)
}

func refused(column, message string) error {
	return validation.Errors{column: validation.NewError("fixed", message)}
}
