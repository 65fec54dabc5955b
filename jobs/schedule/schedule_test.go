package schedule_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/jobs/schedule"
)

// Times are local to the zone, including changes of daylight saving time.
func TestNextAndLast(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	const layout = "2006-01-02 15:04 MST"
	for _, test := range []struct {
		plan       schedule.Plan
		now        time.Time
		next, last string
	}{
		{schedule.Daily(1, 30), time.Date(2026, 1, 15, 1, 29, 59, 0, newYork), "2026-01-15 01:30 EST", "2026-01-14 01:30 EST"},
		{schedule.Daily(1, 30), time.Date(2026, 1, 15, 1, 30, 0, 0, newYork), "2026-01-16 01:30 EST", "2026-01-15 01:30 EST"},
		{schedule.Daily(2, 0), time.Date(2026, 3, 7, 12, 0, 0, 0, newYork), "2026-03-08 03:00 EDT", "2026-03-07 02:00 EST"}, // skipped
		{schedule.Daily(1, 30), time.Date(2026, 10, 31, 12, 0, 0, 0, newYork), "2026-11-01 01:30 EDT", "2026-10-31 01:30 EDT"},
		{schedule.Daily(4, 0), time.Date(2026, 12, 31, 23, 0, 0, 0, newYork), "2027-01-01 04:00 EST", "2026-12-31 04:00 EST"},
		{schedule.Weekly(time.Sunday, 3, 0), time.Date(2026, 1, 14, 12, 0, 0, 0, newYork), "2026-01-18 03:00 EST", "2026-01-11 03:00 EST"},
		{schedule.Weekly(time.Sunday, 3, 0), time.Date(2026, 1, 18, 3, 0, 0, 0, newYork), "2026-01-25 03:00 EST", "2026-01-18 03:00 EST"},
		{schedule.Cron("7-59/15 * * * *"), time.Date(2026, 1, 14, 12, 7, 0, 0, newYork), "2026-01-14 12:22 EST", ""},
	} {
		if got := test.plan.Next(test.now).Format(layout); got != test.next {
			t.Errorf("%s after %s: %s, want %s", test.plan, test.now, got, test.next)
		}
		last, ok := test.plan.Last(test.now)
		if got := last.Format(layout); ok != (test.last != "") || ok && got != test.last {
			t.Errorf("%s until %s: %s, want %s", test.plan, test.now, got, test.last)
		}
	}
}

func TestPlanString(t *testing.T) {
	for plan, want := range map[schedule.Plan]string{
		schedule.Daily(1, 30): "30 1 * * *", schedule.Weekly(time.Sunday, 3, 0): "0 3 * * 0", schedule.Cron("*/5 * * * *"): "*/5 * * * *",
	} {
		if plan.String() != want {
			t.Errorf("%s, want %s", plan, want)
		}
	}
	if got := schedule.PublicName("EMR connection check"); got != "emr-connection-check" {
		t.Error(got)
	}
	if at := schedule.Cron("nonsense").Next(time.Now()); !at.IsZero() {
		t.Error(at)
	}
}
