package alerts

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// followUpRound bounds what one round reminds of; the next minute goes on.
const followUpRound = 500

// RemindFollowUps reminds of every alert whose follow-up is due whoever asked for that when acknowledging it; told is how many.
// Source: docs/decisions/alerts.md, "Acknowledge variants".
func RemindFollowUps(ctx context.Context, app core.App, now time.Time) (told int, err error) {
	ids, err := collections.AlertsToFollowUp(app, now, followUpRound)
	if err != nil {
		return 0, err
	}
	return notifications.RemindOfEach(ctx, app, ids, func(tx core.App, id string) error { return remindFollowUp(tx, id, now) })
}

func remindFollowUp(tx core.App, id string, now time.Time) error {
	alert, err := collections.FindAlert(tx, id)
	if err != nil {
		return err
	}
	alert.SetFollowUpTold()
	if err := alert.Store(tx); err != nil {
		return err
	}
	owner, err := collections.FindUserByEmail(tx, alert.FollowUpBy())
	if collections.Missing(err) {
		return nil // an operator at the dashboard has no list of reminders
	}
	if err != nil {
		return err
	}
	whom, err := collections.PatientLabel(tx, alert.PatientID())
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.FollowUpDue, Severity: "info", PatientID: alert.PatientID(), AlertID: id, UserID: owner.Id,
		Body: "Follow up: " + whom + ", " + alert.MessageShown(),
		Key:  "alert " + id + " follow-up " + collections.Instant(alert.FollowUpAt()),
	}, now)
}
