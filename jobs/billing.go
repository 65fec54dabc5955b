package jobs

import (
	"context"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
)

func billDevices(e Engines, ctx context.Context, app core.App) (counts, error) {
	return bill(e, ctx, app, billing.DeviceJob)
}

func billSmartly(e Engines, ctx context.Context, app core.App) (counts, error) {
	return bill(e, ctx, app, billing.SmartJob)
}

func bill(e Engines, ctx context.Context, app core.App, job billing.Job) (counts, error) {
	result, err := e.Billing.Run(ctx, app, job, audit.System(), e.Clock.Now)
	return result.Counts(), err
}

func stopTimers(e Engines, _ context.Context, app core.App) (counts, error) {
	stopped, err := e.Billing.StopTimers(app, e.Clock.Now())
	return counts{"stopped": stopped}, err
}
