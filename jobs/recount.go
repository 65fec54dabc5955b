package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/notifications"
)

func recountBilling(e Engines, ctx context.Context, app core.App) (counts, error) {
	return recount(e, ctx, app, "billing sums", "months", billing.RecountTotals)
}

func recountReadings(e Engines, ctx context.Context, app core.App) (counts, error) {
	return recount(e, ctx, app, "reading sums", "days", e.ReadingStore.Recount)
}

// recount compares stored totals with their source rows, part by part, and corrects differences. If it corrected any, or failed, it notifies
// administrators once a day, because reported figures may have been wrong.
func recount(
	e Engines, ctx context.Context, app core.App, sums, parts string, count func(context.Context, core.App) (seen, wrong int, err error),
) (counts, error) {
	seen, wrong, err := count(ctx, app)
	done, trouble := counts{parts: seen, "wrong": wrong}, ""
	switch {
	case ctx.Err() != nil: // the service stops
		return done, err
	case err != nil:
		trouble = fmt.Sprintf("The nightly recount of the %s failed. Figures may be wrong; see the log.", sums)
	case wrong > 0:
		err = fmt.Errorf("the %s of %d %s did not match their source rows and were recounted", sums, wrong, parts)
		trouble = fmt.Sprintf("The %s of %d %s were wrong and have been recounted. Figures shown before may have been wrong.", sums, wrong, parts)
	default:
		return done, nil
	}
	now := e.Clock.Now()
	notifyErr := notifications.Announce(app, notifications.Announcement{
		Kind: notifications.ServiceTrouble, Severity: "critical", Body: trouble, Key: sums + "/" + now.UTC().Format(time.DateOnly),
	}, now)
	if notifyErr != nil {
		err = fmt.Errorf("%w; administrators were not notified: %w", err, notifyErr)
	}
	return done, err
}
