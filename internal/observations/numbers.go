package observations

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// rateWindow is what the processing rate is the mean of.
const rateWindow = 15 * time.Minute

// Numbers say how much was stored lately, by the time of storing.
type Numbers struct {
	Today, LastHour int
	// PerMinute is the mean of the last 15 minutes.
	PerMinute float64
	// LastAt is when the newest observation was stored; zero when there is none.
	LastAt time.Time
}

// Count returns the numbers; today is when the day began. It reads the part of one index that is no older than a day,
// however many observations there are. Source: docs/decisions/observations.md, "Ingestion status".
func Count(app core.App, today, now time.Time) (n Numbers, err error) {
	hour, since := now.Add(-time.Hour), today
	if hour.Before(since) {
		since = hour
	}
	var recent int
	var last string
	err = app.DB().NewQuery(`SELECT
			COALESCE(SUM(created_at >= {:today}), 0), COALESCE(SUM(created_at > {:hour}), 0), COALESCE(SUM(created_at > {:recent}), 0),
			COALESCE((SELECT MAX(created_at) FROM observations), '')
		FROM observations WHERE created_at >= {:since}`).Bind(dbx.Params{
		"today": collections.Instant(today), "hour": collections.Instant(hour), "recent": collections.Instant(now.Add(-rateWindow)),
		"since": collections.Instant(since),
	}).Row(&n.Today, &n.LastHour, &recent, &last)
	if err != nil {
		return n, fmt.Errorf("count observations: %w", err)
	}
	n.PerMinute, n.LastAt = float64(recent)/rateWindow.Minutes(), collections.ParseInstant(last)
	return n, nil
}
