package alerts_test

import (
	"fmt"
	"testing"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Triggers keep the totals: after any change of the table, every filter's total is correct.
func TestListTotals(t *testing.T) {
	app := vigiltest.NewApp(t)
	levels, statuses, types := []string{"critical", "warning", ""}, []string{"active", "acknowledged", ""}, []string{"weight", "pulse", ""}
	for i := range 40 {
		_, err := app.DB().Insert(collections.Alerts, dbx.Params{
			"id": collections.NumberID(int64(i + 1)), "level": levels[i%2], "status": statuses[i/2%2], "type": types[i/4%2], "acknowledged": i/8%2 == 0,
		}).Execute()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, change := range []string{
		`UPDATE alerts SET message = 'x'`,
		`UPDATE alerts SET acknowledged = NOT acknowledged WHERE id < '000000000000020'`,
		`UPDATE alerts SET status = 'acknowledged', acknowledged = TRUE WHERE level = 'critical'`,
		`UPDATE OR REPLACE alerts SET type = 'pulse' WHERE level = 'warning'`,
		`DELETE FROM alerts WHERE type = 'pulse' AND acknowledged`,
		`DELETE FROM alerts`,
	} {
		if _, err := app.NonconcurrentDB().NewQuery(change).Execute(); err != nil {
			t.Fatal(err)
		}
		for _, level := range levels {
			for _, status := range statuses {
				for _, kind := range types {
					for _, acknowledged := range []*bool{nil, new(true), new(false)} {
						wantTotal(t, app, change, collections.AlertFilter{Level: level, Status: status, Type: kind, Acknowledged: acknowledged})
					}
				}
			}
		}
	}
}

func wantTotal(t *testing.T, app core.App, after string, f collections.AlertFilter) {
	t.Helper()
	_, total, err := collections.PageOfAlerts(app, f, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	counted := collections.Conditions{}.Equal("level", f.Level).Equal("status", f.Status).Equal("type", f.Type).Is("acknowledged", f.Acknowledged)
	want, err := counted.Count(app, collections.Alerts)
	if err != nil || total != want {
		t.Errorf("after %s: %s %d of %d alerts (%v)", after, fmt.Sprint(f.Level, f.Status, f.Type), total, want, err)
	}
}
