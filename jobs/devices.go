package jobs

import (
	"context"
	"errors"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
)

// Job names that other code uses.
const (
	missedReadings = "missed readings"
	staleReadings  = "stale readings"
)

// checkHubs marks silent hubs as offline, and completes device checks that a crash interrupted.
func checkHubs(e Engines, _ context.Context, app core.App) (counts, error) {
	now := e.Clock.Now().UTC()
	checked, failed := e.Devices.CheckDueDevices(app, now)
	silent, err := devices.CheckHubs(app, e.started, now)
	return counts{"attended": checked, "silent": silent}, errors.Join(failed, err)
}

// checkMissed evaluates the days that ended since the last successful run.
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

// checkStale checks the readings stored since the last successful run.
func checkStale(e Engines, ctx context.Context, app core.App) (counts, error) {
	since, err := collections.LastSuccess(app, staleReadings)
	if err != nil {
		return nil, err
	}
	seen, raised, err := e.Devices.CheckStale(ctx, app, since, e.Clock.Now().UTC())
	return counts{"seen": seen, "raised": raised}, err
}
