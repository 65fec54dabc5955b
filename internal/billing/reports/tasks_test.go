package reports_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A billing run creates one entry per patient at one time: the list of pending entries follows its index without sorting.
func TestPendingEntriesUseIndex(t *testing.T) {
	app := vigiltest.NewApp(t)
	var said []string
	db := app.ConcurrentDB().(*dbx.DB)
	db.QueryLogFunc = func(_ context.Context, _ time.Duration, query string, _ *sql.Rows, _ error) {
		if strings.Contains(query, "idx_billing_entries_waiting") {
			said = append(said, query)
		}
	}
	_, err := engine(0).Build(app, reports.TasksSummary, reports.Query{}, "admin", false, vigiltest.Clock)
	db.QueryLogFunc = nil
	if err != nil || len(said) != 3 {
		t.Fatalf("%d lists (%v)", len(said), err)
	}
	for _, query := range said {
		var steps []struct {
			Detail string `db:"detail"`
		}
		if err := db.NewQuery("EXPLAIN QUERY PLAN " + query).All(&steps); err != nil || len(steps) != 1 || !strings.HasPrefix(steps[0].Detail, "SEARCH") {
			t.Errorf("%v (%v)", steps, err)
		}
	}
}
