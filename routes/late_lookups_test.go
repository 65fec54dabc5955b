package routes_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
)

// The facts for each late reading are found by an index, however long the record is.
func TestLateReadingsAreLookedUpByIndexes(t *testing.T) {
	c := newScoringClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	c.now = c.now.AddDate(0, 2, 0)
	var asked []string
	db := c.app.NonconcurrentDB().(*dbx.DB)
	db.QueryLogFunc = func(_ context.Context, _ time.Duration, query string, _ *sql.Rows, _ error) {
		if strings.Contains(query, "source = 'gateway'") && strings.Contains(query, "created_at") {
			asked = append(asked, query)
		}
	}
	c.sendVendor(t, "tenovi", pressure("T-0", "GW-1", c.now, 122)).want(200)
	for _, systolic := range []int{122, 96, 206} {
		c.now = c.now.AddDate(0, 0, 3)
		c.sendVendor(t, "tenovi", pressure("T-0", "GW-1", c.now.AddDate(0, 0, -2), systolic)).want(200)
	}
	db.QueryLogFunc = nil
	if len(asked) == 0 {
		t.Fatal("nothing was asked")
	}
	for _, query := range asked {
		var steps []struct {
			Detail string `db:"detail"`
		}
		if err := c.app.DB().NewQuery("EXPLAIN QUERY PLAN " + query).All(&steps); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(steps, func(s struct {
			Detail string `db:"detail"`
		},
		) bool {
			return strings.Contains(s.Detail, "idx_observations_received (patient=? AND created_at")
		}) {
			t.Errorf("%v for %s", steps, query)
		}
	}
}
