package jobs

import (
	"context"
	"errors"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
)

// The jobs that others, or their own next run, know by name.
const (
	missedReadings = "missed readings"
	staleReadings  = "stale readings"
)

// checkHubs turns silent hubs off, and does for devices what a crash may have left undone.
func checkHubs(e Engines, _ context.Context, app core.App) (counts, error) {
	now := e.Clock.Now().UTC()
	checked, failed := e.Devices.CheckDueDevices(app, now)
	silent, err := devices.CheckHubs(app, e.started, now)
	return counts{"attended": checked, "silent": silent}, errors.Join(failed, err)
}

// checkMissed judges the days that ended since the last run that went through, however long ago that is.
func checkMissed(e Engines, ctx context.Context, app core.App) (counts, error) {
	since, err := collections.LastSuccess(app, missedReadings)
	if err != nil {
		return nil, err
	}
	raised, err := e.Devices.CheckMissed(ctx, app, since, e.Clock.Now().UTC())
	return counts{"raised": raised}, err
}

func checkSilence(e Engines, _ context.Context, app core.App) (counts, error) {
	flagged, raised, err := e.Devices.CheckSilence(app, e.Clock.Now().UTC())
	return counts{"flagged": flagged, "raised": raised}, err
}

// checkStale looks at what was stored since the last run that went through.
func checkStale(e Engines, ctx context.Context, app core.App) (counts, error) {
	since, err := collections.LastSuccess(app, staleReadings)
	if err != nil {
		return nil, err
	}
	seen, raised, err := e.Devices.CheckStale(ctx, app, since, e.Clock.Now().UTC())
	return counts{"seen": seen, "raised": raised}, err
}
