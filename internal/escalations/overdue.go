package escalations

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// Intervals is how long an escalation may stay open before somebody takes it up, by priority.
type Intervals map[Priority]time.Duration

// overdueRound bounds what one round tells of; the next minute goes on.
const overdueRound = 500

// RemindOverdue tells again of every escalation that nobody took up in time: once when it is overdue, then once per interval.
// told is how many. Source: docs/decisions/escalations.md, "Escalation state machine".
func RemindOverdue(ctx context.Context, app core.App, intervals Intervals, now time.Time) (told int, err error) {
	for priority, interval := range intervals {
		cutoff := now.Add(-interval)
		ids, err := collections.OverdueEscalations(app, string(priority), cutoff, overdueRound)
		if err != nil {
			return told, err
		}
		n, err := notifications.RemindOfEach(ctx, app, ids, func(tx core.App, id string) error { return remind(tx, id, cutoff, now) })
		if told += n; err != nil {
			return told, err
		}
	}
	return told, nil
}

// remind looks again inside the transaction: somebody may have taken it up meanwhile.
func remind(tx core.App, id string, cutoff, now time.Time) error {
	e, err := collections.FindEscalation(tx, id)
	if err != nil {
		return err
	}
	if Status(e.Status()) != StatusOpen || collections.Instant(e.NotifiedAt()) > collections.Instant(cutoff) {
		return nil
	}
	if err := announce(tx, e, notifications.EscalationOverdue, "", " overdue "+collections.Instant(now), now); err != nil {
		return err
	}
	e.SetNotifiedAt(now)
	return e.Store(tx)
}
