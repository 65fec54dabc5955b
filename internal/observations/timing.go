package observations

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// TimingBucket is the stretch of time over which processing times are kept.
const TimingBucket = 15 * time.Minute

// timing is how many readings of a bucket took so many milliseconds.
type timing struct {
	Bucket   string `json:"b"`
	MS       int64  `json:"m"`
	Readings int64  `json:"n"`
	TotalUS  int64  `json:"u"`
}

// noteTimes adds what a transaction stored to the processing times: one statement, however many readings there are.
func noteTimes(tx core.App, outcomes ...Outcome) error {
	type key struct {
		bucket string
		ms     int64
	}
	sums := map[key]*timing{}
	for _, outcome := range outcomes {
		o := outcome.Observation
		if outcome.Duplicate || outcome.Conflict || o.ID == "" {
			continue
		}
		k := key{collections.Instant(o.CreatedAt.UTC().Truncate(TimingBucket)), twoDigits(o.ProcessingMS)}
		if sums[k] == nil {
			sums[k] = &timing{Bucket: k.bucket, MS: k.ms}
		}
		sums[k].Readings++
		sums[k].TotalUS += int64(math.Round(o.ProcessingMS * 1000))
	}
	if len(sums) == 0 {
		return nil
	}
	list := make([]timing, 0, len(sums))
	for _, sum := range sums {
		list = append(list, *sum)
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encode processing times: %w", err)
	}
	_, err = tx.NonconcurrentDB().NewQuery(`INSERT INTO processing_times (bucket, ms, readings, total_us)
		SELECT value ->> 'b', value ->> 'm', value ->> 'n', value ->> 'u' FROM json_each({:list}) WHERE TRUE
		ON CONFLICT (bucket, ms) DO UPDATE SET readings = readings + excluded.readings, total_us = total_us + excluded.total_us`).
		Bind(dbx.Params{"list": string(encoded)}).Execute()
	if err != nil {
		return fmt.Errorf("store processing times: %w", err)
	}
	return nil
}

// twoDigits is a whole number of milliseconds, from a hundred on with two significant digits: a bucket has at most a few hundred rows,
// whatever happens, and a percentile read from it is off by 5 % at most.
func twoDigits(ms float64) int64 {
	whole, unit := int64(math.Round(max(0, ms))), int64(1)
	for whole/unit >= 100 {
		unit *= 10
	}
	return (whole + unit/2) / unit * unit
}
