package retention_test

import (
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/changefeed"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/jobs/retention"
)

func change(t *testing.T, app core.App, times int) {
	t.Helper()
	for range times {
		if _, err := app.DB().NewQuery(`INSERT INTO changes (type, record, change, event, patient, at) VALUES ('alert', '1', 'updated', '', '', '2001-01-01T00:00:00.000000Z')`).Execute(); err != nil {
			t.Fatal(err)
		}
	}
}

// A reader that reads within the period keeps its cursor, a reader that was away longer gets an error, and no change in between is lost.
func TestPurgeChangesKeepsCursors(t *testing.T) {
	app := vigiltest.NewApp(t)
	reader := changefeed.Reader{Types: changefeed.Types(), Limit: 10_000}
	purge := func(at time.Time, want int) {
		t.Helper()
		counts, err := retention.Purge(t.Context(), app, retention.Periods{Changes: 30 * day}, at)
		if err != nil || counts["changes"] != want {
			t.Fatalf("%d changes went (%v), want %d", counts["changes"], err, want)
		}
	}
	place := func() changefeed.Cursor {
		t.Helper()
		at, err := changefeed.Latest(app)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	change(t, app, 2500)
	early := place()
	change(t, app, 3000)
	seen := place() // of a reader in the first night
	purge(now, 0)
	purge(now.Add(29*day), 0)
	purge(now.Add(31*day), 5500) // all but the newest, including the row without a time
	if page, err := reader.Read(app, seen); err != nil || len(page.Changes) != 0 || page.More {
		t.Errorf("a reader that has read everything gets %v", err)
	}
	if _, err := reader.Read(app, early); vigiltest.Code(err) != changefeed.InvalidCursor {
		t.Errorf("a reader that missed changes: %v", err)
	}
	change(t, app, 4)
	if page, err := reader.Read(app, seen); err != nil || len(page.Changes) != 4 {
		t.Errorf("%d changes, %v", len(page.Changes), err)
	}
	purge(now.Add(32*day), 0)
	purge(now.Add(61*day), 0) // the mark of day 31 is older than these changes
	purge(now.Add(63*day), 4) // the newest change stays until a newer one exists
	if page, err := reader.Read(app, changefeed.Oldest()); err != nil || len(page.Changes) != 1 || page.More {
		t.Errorf("%d changes are kept, %v", len(page.Changes), err)
	}
}
