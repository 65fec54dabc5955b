package dashboard

import (
	"fmt"
	"math"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
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
	Date          string `json:"date"`
	Total         int    `json:"total"`
	BloodPressure int    `json:"blood_pressure"`
	Weight        int    `json:"weight"`
	PulseOximetry int    `json:"pulse_oximetry"`
	BloodGlucose  int    `json:"blood_glucose"`
}

// Volume is the number of readings by the practice's day of measurement, the oldest first.
func (b *Board) Volume(app core.App, now time.Time) ([]DayVolume, error) {
	return remembered(b, "volume", now, func() ([]DayVolume, error) {
		days := b.days(volumeDays, now)
		var rows []struct {
			Day      string `db:"day"`
			Kind     string `db:"observation_type"`
			Readings int    `db:"readings"`
		}
		err := app.DB().NewQuery(`SELECT day, observation_type, readings FROM daily_counts WHERE day BETWEEN {:first} AND {:last} AND status = 'final'`).
			Bind(dbx.Params{"first": days[0], "last": days[len(days)-1]}).All(&rows)
		if err != nil {
			return nil, fmt.Errorf("read daily counts: %w", err)
		}
		at, results := map[string]*DayVolume{}, make([]DayVolume, len(days))
		for i, day := range days {
			results[i].Date, at[day] = day, &results[i]
		}
		for _, row := range rows {
			day := at[row.Day]
			day.Total += row.Readings
			kinds := map[vitals.Kind]*int{
				vitals.BloodPressure: &day.BloodPressure, vitals.Weight: &day.Weight,
				vitals.PulseOximetry: &day.PulseOximetry, vitals.BloodGlucose: &day.BloodGlucose,
			}
			if count, known := kinds[vitals.Kind(row.Kind)]; known {
				*count += row.Readings
			}
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
		var rows []timing
		err := app.DB().NewQuery(`SELECT bucket, ms, readings, total_us FROM processing_times WHERE bucket BETWEEN {:first} AND {:last} ORDER BY bucket, ms`).
			Bind(dbx.Params{"first": collections.Instant(first), "last": collections.Instant(last)}).All(&rows)
		if err != nil {
			return nil, fmt.Errorf("read processing times: %w", err)
		}
		byBucket := map[string][]timing{}
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

// timing is how many readings of a bucket took so many milliseconds, and what they took together.
type timing struct {
	Bucket   string `db:"bucket"`
	MS       int64  `db:"ms"`
	Readings int    `db:"readings"`
	TotalUS  int64  `db:"total_us"`
}

// summarise takes the rows of one bucket, in order of their milliseconds. The 95th percentile is the nearest rank: the least time within which
// 95 % of the readings were stored.
func summarise(at time.Time, rows []timing) Processing {
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
