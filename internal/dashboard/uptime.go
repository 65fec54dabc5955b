package dashboard

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// uptimeWindow is how far back the uptime looks. Source: docs/decisions/transmissions.md, "FHIR status".
const uptimeWindow = 30 * 24 * time.Hour

// Uptime is the percentage of the health samples of the last 30 days that were not down, in tenths; 100 without samples.
func Uptime(app core.App, now time.Time) (float64, error) {
	var samples, down int
	err := app.DB().NewQuery(`SELECT COUNT(*), COALESCE(SUM(status = 'down'), 0) FROM health_samples WHERE sampled_at >= {:from}`).
		Bind(dbx.Params{"from": collections.Instant(now.Add(-uptimeWindow))}).Row(&samples, &down)
	if err != nil {
		return 0, fmt.Errorf("count health samples: %w", err)
	}
	if samples == 0 {
		return 100, nil
	}
	return float64((samples-down)*1000/samples) / 10, nil // cut off: 100 % means never down
}
