package dashboard

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// uptimeWindow is how far back the uptime looks. Source: docs/decisions/transmissions.md, "FHIR status".
const uptimeWindow = 30 * 24 * time.Hour

// Uptime is the percentage of the health samples of the last 30 days that were not down, in tenths; 100 without samples.
func Uptime(app core.App, now time.Time) (float64, error) {
	samples, down, err := collections.HealthSamplesSince(app, now.Add(-uptimeWindow))
	if err != nil {
		return 0, err
	}
	if samples == 0 {
		return 100, nil
	}
	return float64((samples-down)*1000/samples) / 10, nil // cut off: 100 % means never down
}
