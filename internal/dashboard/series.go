package dashboard

import (
	"encoding/json/jsontext"
	"math"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/object"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// How far back the series go; the last row is the current bucket. Source: docs/decisions/dashboard.md, "Series shapes".
const (
	transmissionDays  = 30
	volumeDays        = 90
	processingBuckets = 96
)

// Transmissions is how much of what was expected came, by day, the oldest first.
func (b *Board) Transmissions(app core.App, now time.Time) ([]DayRate, error) {
	return remembered(b, "transmissions", now, func() ([]DayRate, error) { return b.dayRates(app, "", b.days(transmissionDays, now)) })
}

// days are the last dates of the practice, the oldest first and today last.
func (b *Board) days(count int, now time.Time) []string {
	days, today := make([]string, count), b.today(now)
	for i := range days {
		days[i] = today.AddDate(0, 0, i+1-count).Format(time.DateOnly)
	}
	return days
}

// DayVolume is how many readings were taken on a day, those withdrawn left out.
type DayVolume struct {
	Date  string
	Total int
	Of    map[vitals.Kind]int
}

// MarshalJSONTo writes the kinds beside the total, those without a reading too.
func (v DayVolume) MarshalJSONTo(enc *jsontext.Encoder) error {
	var shown object.Shown
	shown.Add("date", v.Date)
	shown.Add("total", v.Total)
	for _, kind := range vitals.Kinds {
		shown.Add(string(kind), v.Of[kind])
	}
	return shown.MarshalJSONTo(enc)
}

// Volume is the number of readings by the practice's day of measurement, the oldest first.
func (b *Board) Volume(app core.App, now time.Time) ([]DayVolume, error) {
	return remembered(b, "volume", now, func() ([]DayVolume, error) {
		days := b.days(volumeDays, now)
		rows, err := collections.DailyCounts(app, days[0], days[len(days)-1])
		if err != nil {
			return nil, err
		}
		at, results := map[string]*DayVolume{}, make([]DayVolume, len(days))
		for i, day := range days {
			results[i], at[day] = DayVolume{Date: day, Of: map[vitals.Kind]int{}}, &results[i]
		}
		for _, row := range rows {
			day := at[row.Day]
			day.Total += row.Readings
			day.Of[vitals.Kind(row.Kind)] += row.Readings
		}
		return results, nil
	})
}

// Processing is how long the readings stored in a quarter of an hour took from receipt to storage; nil where there were none.
type Processing struct {
	At    time.Time
	AvgMS *float64
	P95MS *float64
	Count int
}

// Processing is the last day in quarters of an hour, the oldest first.
func (b *Board) Processing(app core.App, now time.Time) ([]Processing, error) {
	return remembered(b, "processing", now, func() ([]Processing, error) {
		last := now.UTC().Truncate(observations.TimingBucket)
		first := last.Add(-(processingBuckets - 1) * observations.TimingBucket)
		rows, err := collections.Timings(app, first, last)
		if err != nil {
			return nil, err
		}
		byBucket := map[string][]collections.Timing{}
		for _, row := range rows {
			byBucket[row.Bucket] = append(byBucket[row.Bucket], row)
		}
		results := make([]Processing, processingBuckets)
		for i := range results {
			at := first.Add(time.Duration(i) * observations.TimingBucket)
			results[i] = summarise(at, byBucket[collections.Instant(at)])
		}
		return results, nil
	})
}

// summarise takes the rows of one bucket, in order of their milliseconds. The 95th percentile is the nearest rank: the least time within which
// 95 % of the readings were stored.
func summarise(at time.Time, rows []collections.Timing) Processing {
	p := Processing{At: at}
	total := int64(0)
	for _, row := range rows {
		p.Count += row.Readings
		total += row.TotalUS
	}
	if p.Count == 0 {
		return p
	}
	mean := vitals.RoundHalfUp(float64(total)/float64(p.Count)/1000, 1)
	p.AvgMS = &mean
	rank, seen := int(math.Ceil(0.95*float64(p.Count))), 0
	for _, row := range rows {
		if seen += row.Readings; seen >= rank {
			value := float64(row.MS)
			p.P95MS = &value
			break
		}
	}
	return p
}
