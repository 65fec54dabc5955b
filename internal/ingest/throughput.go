package ingest

import (
	"math"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// rateWindow is the window of the mean processing rate.
const rateWindow = 15 * time.Minute

// Throughput counts recently stored observations, by the time of storage.
type Throughput struct {
	Today, LastHour int
	// PerMinute is the mean of the last 15 minutes.
	PerMinute float64
	// LastAt is when the newest observation was stored; zero for none.
	LastAt time.Time
}

// LoadThroughput returns the throughput; today is the start of the day. It reads one index back one day, however many observations there
// are. Source: docs/decisions/observations.md, "Ingestion status".
func LoadThroughput(app core.App, today, now time.Time) (n Throughput, err error) {
	hour, since := now.Add(-time.Hour), today
	if hour.Before(since) {
		since = hour
	}
	var recent int
	n.Today, n.LastHour, recent, n.LastAt, err = collections.CountStored(app, since, today, hour, now.Add(-rateWindow))
	n.PerMinute = float64(recent) / rateWindow.Minutes()
	return n, err
}

// LatencyBucket is the time span of one bucket of processing times.
const LatencyBucket = 15 * time.Minute

// recordLatencies adds the processing times of a transaction, in one statement.
func recordLatencies(tx core.App, outcomes ...Outcome) error {
	type key struct {
		bucket string
		ms     int64
	}
	sums := map[key]*collections.ProcessingTime{}
	for _, outcome := range outcomes {
		o := outcome.Observation
		if outcome.Duplicate || outcome.Conflict || o.ID == "" {
			continue
		}
		k := key{collections.FormatInstant(o.CreatedAt.UTC().Truncate(LatencyBucket)), roundLatency(o.ProcessingMS)}
		if sums[k] == nil {
			sums[k] = &collections.ProcessingTime{Bucket: k.bucket, MS: k.ms}
		}
		sums[k].Readings++
		sums[k].TotalUS += int64(math.Round(o.ProcessingMS * 1000))
	}
	if len(sums) == 0 {
		return nil
	}
	list := make([]collections.ProcessingTime, 0, len(sums))
	for _, sum := range sums {
		list = append(list, *sum)
	}
	return collections.AddProcessingTimes(tx, list)
}

// roundLatency rounds to whole milliseconds, with two significant digits from 100 on: a bucket has at most a few hundred rows, and a
// percentile is off by at most 5 %.
func roundLatency(ms float64) int64 {
	whole, unit := int64(math.Round(max(0, ms))), int64(1)
	for whole/unit >= 100 {
		unit *= 10
	}
	return (whole + unit/2) / unit * unit
}
