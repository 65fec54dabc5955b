package billing

import (
	"context"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/notifications"
)

// RecountAndTell recounts the kept sums, as [Recount]. When there was anything to put right, or the recount broke off, the administrators are
// told, once a day: either way figures may have been wrong. The error is for the record of the job.
func RecountAndTell(ctx context.Context, app core.App, now time.Time) (months, wrong int, err error) {
	months, wrong, err = Recount(ctx, app)
	trouble := ""
	switch {
	case ctx.Err() != nil: // the service stops
		return months, wrong, err
	case err != nil:
		trouble = "The nightly recount of the billing sums broke off. Reports may show wrong figures; see the log."
	case wrong > 0:
		err = fmt.Errorf("the sums of %d months did not match their entries and were counted anew", wrong)
		trouble = fmt.Sprintf("The billing sums of %d months did not match their entries and were counted anew. Reports may have shown wrong figures.", wrong)
	default:
		return months, wrong, nil
	}
	told := notifications.Announce(app, notifications.Announcement{
		Kind: notifications.ServiceTrouble, Severity: "critical", Body: trouble, Key: "billing sums/" + now.UTC().Format(time.DateOnly),
	}, now)
	if told != nil {
		err = fmt.Errorf("%w; administrators not told: %w", err, told)
	}
	return months, wrong, err
}
