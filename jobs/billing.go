package jobs

import (
	"context"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
)

// bill runs one part of billing.
func bill(job billing.Job) func(Engines, context.Context, core.App) (counts, error) {
	return func(e Engines, ctx context.Context, app core.App) (counts, error) {
		result, err := e.Billing.Run(ctx, app, job, audit.System(), e.Clock.Now)
		return result.Counts(), err
	}
}

// recheckEvidence finds claims with changed facts.
func recheckEvidence(e Engines, ctx context.Context, app core.App) (counts, error) {
	seen, marked, err := e.Billing.RecheckAll(ctx, app, e.Clock.Now())
	return counts{"claims": seen, "changed": marked}, err
}

func stopTimers(e Engines, _ context.Context, app core.App) (counts, error) {
	stopped, err := e.Billing.StopOverdueTimers(app, e.Clock.Now())
	return counts{"stopped": stopped}, err
}
