package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/warehouse"
	"github.com/vigilhealth/vigil/jobs/schedule"
)

// WarehouseExport is the name of the warehouse export job.
const WarehouseExport = "warehouse export"

// exportWarehouse exports finished or changed data since the last run, if configured.
func exportWarehouse(e Engines, ctx context.Context, app core.App) (counts, error) {
	if e.Warehouse == nil {
		return disabled, nil
	}
	done, err := e.Warehouse.Run(ctx, app, false, e.Clock.Now().UTC())
	return done.Counts(), err
}

// ExportNow runs the export on command. The run is recorded like a scheduled one and never overlaps one.
func ExportNow(ctx context.Context, app core.App, e *warehouse.Engine, afresh bool, now func() time.Time) (done warehouse.Done, err error) {
	started := now()
	runID, ok, err := collections.StartJob(app, WarehouseExport, started)
	if err != nil {
		return done, err
	}
	if !ok {
		return done, schedule.ErrRunning
	}
	failure := "panicked"
	defer func() { err = errors.Join(err, collections.FinishJob(app, runID, done.Counts(), failure, now())) }()
	done, err = e.Run(ctx, app, afresh, started)
	if failure = ""; err != nil {
		failure = "failed: see the command's output"
	}
	return done, err
}
