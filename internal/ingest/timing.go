package ingest

import (
	"math"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// LatencyBucket is the stretch of time over which processing times are kept.
const LatencyBucket = 15 * time.Minute

// recordLatencies adds what a transaction stored to the processing times: one statement, however many readings there are.
func recordLatencies(tx core.App, outcomes ...Outcome) error {
	type key struct {
		bucket string
		ms     int64
	}
	sums := map[key]*collections.Timing{}
	for _, outcome := range outcomes {
		o := outcome.Observation
		if outcome.Duplicate || outcome.Conflict || o.ID == "" {
			continue
		}
		k := key{collections.Instant(o.CreatedAt.UTC().Truncate(LatencyBucket)), roundLatency(o.ProcessingMS)}
		if sums[k] == nil {
			sums[k] = &collections.Timing{Bucket: k.bucket, MS: k.ms}
		}
		sums[k].Readings++
		sums[k].TotalUS += int64(math.Round(o.ProcessingMS * 1000))
	}
	if len(sums) == 0 {
		return nil
	}
	list := make([]collections.Timing, 0, len(sums))
	for _, sum := range sums {
		list = append(list, *sum)
	}
	return collections.AddTimings(tx, list)
}

// roundLatency is a whole number of milliseconds, from a hundred on with two significant digits: a bucket has at most a few hundred rows,
// whatever happens, and a percentile read from it is off by 5 % at most.
func roundLatency(ms float64) int64 {
	whole, unit := int64(math.Round(max(0, ms))), int64(1)
	for whole/unit >= 100 {
		unit *= 10
	}
	return (whole + unit/2) / unit * unit
}
