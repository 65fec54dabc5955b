package escalations

import (
	"context"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/patients"
)

// RemindFollowUps reminds of every alert whose follow-up is due whoever asked for that when acknowledging it; told is how many.
// Source: docs/decisions/alerts.md, "Acknowledge variants".
func RemindFollowUps(ctx context.Context, app core.App, now time.Time) (told int, err error) {
	var ids []string
	err = app.DB().NewQuery(`SELECT id FROM alerts
		WHERE follow_up_required = TRUE AND follow_up_told = FALSE AND follow_up_at <= {:now} ORDER BY follow_up_at LIMIT +{:limit}`).
		Bind(dbx.Params{"now": collections.Instant(now), "limit": overdueRound}).Column(&ids)
	if err != nil {
		return 0, fmt.Errorf("find follow-ups: %w", err)
	}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return told, err
		}
		if err := app.RunInTransaction(func(tx core.App) error { return remindFollowUp(tx, id, now) }); err != nil {
			return told, err
		}
		told++
	}
	return told, nil
}

func remindFollowUp(tx core.App, id string, now time.Time) error {
	alert, err := tx.FindRecordById(collections.Alerts, id)
	if err != nil {
		return fmt.Errorf("find alert to follow up: %w", err)
	}
	alert.Set("follow_up_told", true)
	if err := collections.Update(tx, alert, "follow_up_told"); err != nil {
		return err
	}
	owner, err := collections.FindUserByEmail(tx, alert.GetString("follow_up_by"))
	if collections.Missing(err) {
		return nil // an operator at the dashboard has no list of reminders
	}
	if err != nil {
		return err
	}
	patientID := alert.GetString("patient")
	names, err := patients.Names(tx, []string{patientID})
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.FollowUpDue, Severity: "info", PatientID: patientID, AlertID: id, UserID: owner.Id,
		Body: "Follow up: " + names[patientID].FirstLast() + " (" + names[patientID].MRN + "), " + collections.TextOf(alert, "message"),
		Key:  "alert " + id + " follow-up " + alert.GetString("follow_up_at"),
	}, now)
}
