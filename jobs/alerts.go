package jobs

import (
	"context"
	"errors"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/triage"
)

// expireSnoozesAndHolds ends due snoozes, escalation holds, and the wait of a patient's typed values for a correction.
func expireSnoozesAndHolds(e Engines, ctx context.Context, app core.App) (counts, error) {
	now := e.Clock.Now().UTC()
	decided, failed := e.ReadingStore.ResolveHolds(ctx, app, now)
	ended, notified, err := triage.EndDueSnoozes(ctx, app, now)
	uncorrected, failedTyped := e.Ingestion.AlertUncorrected(ctx, app, now)
	return counts{"settled": decided, "ended": ended, "told": notified, "uncorrected": uncorrected}, errors.Join(failed, err, failedTyped)
}
