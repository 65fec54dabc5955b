package dashboard_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The 95th percentile is the nearest rank, the mean is exact, and empty buckets are null.
func TestProcessing(t *testing.T) {
	app := vigiltest.NewApp(t)
	bucket := func(at time.Time, ms, readings, totalUS int) {
		row := dbx.Params{"bucket": collections.FormatInstant(at), "ms": ms, "readings": readings, "total_us": totalUS}
		if _, err := app.DB().Insert("processing_times", row).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	now := start.Add(14 * time.Minute)
	bucket(start, 2, 19, 19*2100)
	bucket(start, 500, 1, 503_000)
	bucket(start.Add(-15*time.Minute), 3, 18, 18*3000)
	bucket(start.Add(-15*time.Minute), 40, 2, 2*40_000)
	bucket(start.Add(-24*time.Hour), 9, 1, 9000) // a day ago: no longer shown
	rows, err := board("key").Processing(app, now)
	if err != nil || len(rows) != 96 || !rows[95].At.Equal(start) {
		t.Fatalf("%d rows (%v)", len(rows), err)
	}
	if r := rows[95]; r.Count != 20 || *r.AvgMS != 27.1 || *r.P95MS != 2 {
		t.Errorf("now: %d, %v, %v", r.Count, *r.AvgMS, *r.P95MS)
	}
	if r := rows[94]; r.Count != 20 || *r.AvgMS != 6.7 || *r.P95MS != 40 {
		t.Errorf("before: %d, %v, %v", r.Count, *r.AvgMS, *r.P95MS)
	}
	for _, r := range rows[:94] {
		if r.Count != 0 || r.AvgMS != nil || r.P95MS != nil {
			t.Errorf("%s is not empty", r.At)
		}
	}
}
