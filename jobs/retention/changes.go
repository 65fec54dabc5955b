package retention

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// changeBatch bounds the changes that one transaction removes. There are as many changes as readings, and they are indexed by number only.
const changeBatch = 2000

// purgeChanges removes the oldest changes. The audit trail has their events too, so a night's purge is a single audit entry.
func purgeChanges(ctx context.Context, app core.App, keep time.Duration, now time.Time) (gone int, err error) {
	before := now.Add(-max(minPeriod, keep))
	if err := collections.MarkChangePosition(app, now); err != nil {
		return 0, err
	}
	for n := changeBatch; n == changeBatch && ctx.Err() == nil; gone += n {
		if n, err = collections.RemoveChanges(app, before, changeBatch); err != nil {
			return gone, err
		}
	}
	if gone == 0 {
		return 0, ctx.Err()
	}
	err = app.RunInTransaction(func(tx core.App) error {
		return audit.Append(tx, audit.Entry{
			Event: audit.RetentionPurge, Actor: audit.System(), ResourceType: collections.ChangesTable, ResourceID: "changes",
			Changes: audit.Changes{"rows": {Old: gone}, "before": {New: collections.Instant(before)}},
		}, now)
	})
	if err == nil {
		err = ctx.Err()
	}
	return gone, err
}
