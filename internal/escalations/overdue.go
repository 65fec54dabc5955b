package escalations

import (
	"context"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
)

// Intervals is how long an escalation may stay open before somebody takes it up, by priority.
type Intervals map[triage.Priority]time.Duration

// overdueRound bounds what one round tells of; the next minute goes on.
const overdueRound = 500

// RemindOverdue tells again of every escalation that nobody took up in time: once when it is overdue, then once per interval.
// told is how many. Source: docs/decisions/escalations.md, "Escalation state machine".
func RemindOverdue(ctx context.Context, app core.App, intervals Intervals, now time.Time) (told int, err error) {
	for priority, interval := range intervals {
		var ids []string
		cutoff := collections.Instant(now.Add(-interval))
		err := app.DB().NewQuery(`SELECT id FROM escalations
			WHERE status = 'open' AND priority = {:priority} AND created_at <= {:cutoff} AND notified_at <= {:cutoff}
			ORDER BY created_at LIMIT +{:limit}`).
			Bind(dbx.Params{"priority": string(priority), "cutoff": cutoff, "limit": overdueRound}).Column(&ids)
		if err != nil {
			return told, fmt.Errorf("find overdue escalations: %w", err)
		}
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return told, err
			}
			if err := remind(app, id, cutoff, now); err != nil {
				return told, err
			}
			told++
		}
	}
	return told, nil
}

// remind looks again inside the transaction: somebody may have taken it up meanwhile.
func remind(app core.App, id, cutoff string, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		record, err := tx.FindRecordById(collections.Escalations, id)
		if err != nil {
			return fmt.Errorf("find overdue escalation: %w", err)
		}
		if Status(record.GetString("status")) != StatusOpen || record.GetString("notified_at") > cutoff {
			return nil
		}
		key := "escalation " + id + " overdue " + collections.Instant(now)
		if err := announce(tx, record, notifications.EscalationOverdue, "", key, now); err != nil {
			return err
		}
		record.Set("notified_at", collections.Instant(now))
		return collections.Update(tx, record, "notified_at")
	})
}
