package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// rateWindow is what the processing rate is the mean of.
const rateWindow = 15 * time.Minute

// Throughput say how much was stored lately, by the time of storing.
type Throughput struct {
	Today, LastHour int
	// PerMinute is the mean of the last 15 minutes.
	PerMinute float64
	// LastAt is when the newest observation was stored; zero when there is none.
	LastAt time.Time
}

// LoadThroughput returns the numbers; today is when the day began. It reads the part of one index that is no older than a day,
// however many observations there are. Source: docs/decisions/observations.md, "Ingestion status".
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
