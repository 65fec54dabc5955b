package jobs

import (
	"context"
	"errors"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/triage"
)

// endWaits ends what keeps alerts quiet or escalations waiting and has lasted as long as it should.
func endWaits(e Engines, ctx context.Context, app core.App) (counts, error) {
	now := e.Clock.Now().UTC()
	decided, failed := e.Readings.DecideHeld(ctx, app, now)
	ended, told, err := triage.EndDueSnoozes(ctx, app, now)
	return counts{"settled": decided, "ended": ended, "told": told}, errors.Join(failed, err)
}
