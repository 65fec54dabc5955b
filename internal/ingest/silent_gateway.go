package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

const (
	// patternWeeks is the number of weeks that a practice's pattern comes from.
	patternWeeks = 4
	// longestSilence is how far back a practice's last gateway reading is looked for.
	longestSilence = 60 * 24 * time.Hour
)

// EstimateMissingReadings estimates the gateway readings missing since the last one: the second lowest
// count of the same hours in the four weeks before. One outage changes nothing; a new practice has
// 0 for three weeks. Source: docs/decisions/gateway.md, "A silent gateway".
func EstimateMissingReadings(app core.App, now time.Time, zone *time.Location) (int, error) {
	last, err := collections.LastGatewayReading(app, now.Add(-longestSilence), now)
	if err != nil || last.IsZero() {
		return 0, err
	}
	const week = 7 * 24 * time.Hour
	silentWeeks := int(now.Sub(last)/week) + 1
	var counts []int
	for n := range patternWeeks {
		days := -7 * (silentWeeks + n)
		count, err := collections.CountGatewayReadings(app, last.In(zone).AddDate(0, 0, days), now.In(zone).AddDate(0, 0, days))
		if err != nil {
			return 0, err
		}
		counts = append(counts, count)
	}
	slices.Sort(counts)
	return counts[1], nil
}
