package jobs

import (
	"context"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/emr"
)

// queueDocuments queues the report of each ended month for the EMR, where it takes documents.
func queueDocuments(e Engines, ctx context.Context, app core.App) (counts, error) {
	if e.EMR == nil || !e.EMR.Configured() {
		return disabled, nil
	}
	if way := e.EMR.Plan().Way; way != emr.WayDocument && way != emr.WayBoth {
		return disabled, nil
	}
	queued, corrected, err := e.Transmissions.QueueMonths(ctx, app, e.Clock.Now().UTC())
	return counts{"queued": queued, "corrected": corrected}, err
}
