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

// WarehouseExport is the job that writes what leaves for a warehouse.
const WarehouseExport = "warehouse export"

// exportWarehouse writes what has ended or changed since the last run, where the practice wants that.
func exportWarehouse(e Engines, ctx context.Context, app core.App) (counts, error) {
	if e.Warehouse == nil {
		return off, nil
	}
	done, err := e.Warehouse.Run(ctx, app, false, e.Clock.Now().UTC())
	return done.Counts(), err
}

// ExportNow is the job by command: noted like one by the clock, and not beside one.
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
		failure = "failed: the command has said why"
	}
	return done, err
}
