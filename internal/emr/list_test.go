package emr_test

import (
	"maps"
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Triggers keep the totals: after any statement on the table, the list shows the right counts.
func TestListTotals(t *testing.T) {
	app := newApp(t)
	for range 7 {
		queueDelivery(t, app, patient, now)
	}
	for _, step := range []struct {
		sql  string
		want map[string]int
	}{
		{`UPDATE transmissions SET status = 'transmitted' WHERE id IN (SELECT id FROM transmissions LIMIT 4)`, map[string]int{"": 7, "transmitted": 4, "pending": 3}},
		{`UPDATE transmissions SET status = status`, map[string]int{"": 7, "transmitted": 4, "pending": 3}},
		{`UPDATE transmissions SET status = 'failed' WHERE status = 'pending'`, map[string]int{"": 7, "transmitted": 4, "failed": 3}},
		{`INSERT OR IGNORE INTO transmissions (id, observation, patient, status) SELECT id || 'x', observation, patient, status FROM transmissions`, map[string]int{"": 7, "transmitted": 4, "failed": 3}},
		{
			`INSERT OR IGNORE INTO transmissions (id, observation, patient, status) SELECT id || 'x', observation || 'x', patient, 'processing' FROM transmissions LIMIT 2`,
			map[string]int{"": 9, "transmitted": 4, "failed": 3, "processing": 2},
		},
		{`DELETE FROM transmissions WHERE status = 'transmitted'`, map[string]int{"": 5, "failed": 3, "processing": 2}},
		{`DELETE FROM transmissions`, map[string]int{}},
	} {
		if _, err := app.NonconcurrentDB().NewQuery(step.sql).Execute(); err != nil {
			t.Fatal(err)
		}
		if got := totals(t, app); !maps.Equal(got, step.want) {
			t.Errorf("%s\n%v, want %v", step.sql, got, step.want)
		}
	}
}

func totals(t *testing.T, app core.App) map[string]int {
	t.Helper()
	counted := map[string]int{}
	for _, status := range []string{"", "pending", "processing", "transmitted", "failed"} {
		_, total, err := collections.PageOfTransmissions(app, collections.TransmissionFilter{Status: status}, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if total != 0 {
			counted[status] = total
		}
	}
	return counted
}
