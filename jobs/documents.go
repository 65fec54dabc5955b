package jobs

import (
	"context"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/emr"
)

// queueDocuments queues the report of each ended month for the EMR, where documents are the way of delivery, and corrects those that lack readings.
func queueDocuments(e Engines, ctx context.Context, app core.App) (counts, error) {
	if e.EMR == nil || !e.EMR.TakesDocuments() {
		return disabled, nil
	}
	now, queued := e.Clock.Now().UTC(), 0
	if way := e.EMR.Plan().Mode; way == emr.ModeDocument || way == emr.ModeBoth {
		var err error
		if queued, err = e.Transmissions.QueueMonths(ctx, app, now); err != nil {
			return counts{"queued": queued}, err
		}
	}
	corrected, err := e.Transmissions.CorrectDocuments(app, now)
	return counts{"queued": queued, "corrected": corrected}, err
}
