package collections_test

import (
	"slices"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Every index of a large table has statistics, and statistics of an ANALYZE are replaced.
func TestPlannerStatistics(t *testing.T) {
	app := vigiltest.NewApp(t)
	count := func(where string) (n int) {
		t.Helper()
		if err := app.DB().NewQuery("SELECT COUNT(*) FROM sqlite_stat1 WHERE " + where).Row(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	described := count("TRUE")
	if described < 150 || count("idx = 'idx_alerts_patient' AND stat = '1000000 100 1 noskipscan'") != 1 || count("idx = 'idx_alerts_open' AND stat = '50000 5 1 1 noskipscan'") != 1 {
		t.Errorf("%d indexes are described, or not as they should be", described)
	}
	if _, err := app.NonconcurrentDB().NewQuery("ANALYZE").Execute(); err != nil {
		t.Fatal(err)
	}
	if err := collections.SetPlannerStatistics(app); err != nil {
		t.Fatal(err)
	}
	var samples int
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM sqlite_stat4").Row(&samples); err != nil {
		t.Fatal(err)
	}
	if again := count("TRUE"); again != described || samples > 0 {
		t.Errorf("%d indexes are described after an analysis, %d before; %d samples are left", again, described, samples)
	}
}

// Every table and column named in the statistics exists.
func TestPlannerStatisticsNames(t *testing.T) {
	app := vigiltest.NewApp(t)
	for what, query := range map[string]string{
		"tables":  "SELECT name FROM sqlite_master WHERE type = 'table'",
		"columns": "SELECT c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table' UNION SELECT t.name || '.' || c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'",
	} {
		var there []string
		if err := app.DB().NewQuery(query).Column(&there); err != nil {
			t.Fatal(err)
		}
		for _, name := range map[string][]string{"tables": collections.SizedTables(), "columns": collections.ColumnsWithDistinctValues()}[what] {
			if !slices.Contains(there, name) {
				t.Errorf("%s: there is no %s", what, name)
			}
		}
	}
}
