package collections

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// tableSizes are the row counts of a busy practice after some years. Other tables are small.
var tableSizes = map[string]int{
	Observations: 10_000_000, AuditLog: 10_000_000, Transmissions: 10_000_000, TransmissionAttempts: 10_000_000, "reading_days": 5_000_000,
	BillingEntries: 1_000_000, TimeEntries: 1_000_000, Alerts: 1_000_000, Notifications: 1_000_000, PushDeliveries: 1_000_000, GatewayEvents: 1_000_000,
	Announcements: 1_000_000, Mails: 100_000, Escalations: 100_000, Patients: 100_000, TriageScores: 100_000, Devices: 100_000,
	"device_assignments": 200_000, "consents": 200_000, "care_team_members": 200_000, "thresholds": 100_000,
	"billing_days": 100_000, "billing_provider_days": 100_000, "billing_patient_months": 1_000_000,
}

const defaultTableSize = 1000

// distinctValues are the numbers of distinct values of a column, in one table or in all. Any other column is assumed to be unique per row.
var distinctValues = map[string]int{
	"acknowledged": 2, "active": 2, "listed": 2, "needs_review": 2, "level": 4, "risk_level": 4, "priority": 4, "outcome": 3, "status": 6,
	"fhir_status": 4, "lifecycle_status": 6, "type": 10, "observation_type": 5, "category": 4, "source": 4, "cpt_code": 8, "event": 60,
	"resource_type": 20, "patient": 10_000, "user": 100, "actor_id": 1000, "actor_email": 100, "assigned_to": 100, "primary_provider": 100,
	"provider": 100, "rendering_provider": 100, "payer": 20, "amount_cents": 100, "device_id": 10_000, "hub_id": 1000, "day": 1000, "service_date": 1000, "risk_score": 100,
	"gateway_events.status": 50, // nearly all rows have a status that no list queries
}

// SetPlannerStatistics gives SQLite the table statistics of a busy practice instead of those of this database. Without them SQLite considers
// "unacknowledged" as selective as "of this patient" and scans all open alerts for one reading, and a plan made in a practice's first night
// would stay for months. With them the plans are the same in every practice and test. They cannot express that few rows are younger than a
// day: such queries name their index.
func SetPlannerStatistics(app core.App) error {
	want, err := statistics(app)
	if err != nil {
		return err
	}
	if have, err := storedStatistics(app); err != nil || maps.Equal(have, want) {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		db := tx.NonconcurrentDB()
		// Drop and recreate: only a schema change makes other connections reload the statistics.
		for _, statement := range []string{"DROP TABLE IF EXISTS sqlite_stat1", "DROP TABLE IF EXISTS sqlite_stat4", "ANALYZE sqlite_master"} {
			if _, err := db.NewQuery(statement).Execute(); err != nil {
				return fmt.Errorf("drop old statistics: %w", err)
			}
		}
		for key, stat := range want {
			_, err := db.NewQuery("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ({:table}, {:index}, {:stat})").
				Bind(dbx.Params{"table": key[0], "index": key[1], "stat": stat}).Execute()
			if err != nil {
				return fmt.Errorf("write the statistics of %s: %w", key[1], err)
			}
		}
		if _, err := db.NewQuery("ANALYZE sqlite_master").Execute(); err != nil { // loads the new rows
			return fmt.Errorf("read statistics: %w", err)
		}
		return nil
	})
}

// storedStatistics returns SQLite's statistics by table and index.
func storedStatistics(app core.App) (map[[2]string]string, error) {
	var rows []struct {
		Table string `db:"tbl"`
		Index string `db:"idx"`
		Stat  string `db:"stat"`
	}
	if !app.HasTable("sqlite_stat1") {
		return nil, nil
	}
	if err := app.DB().NewQuery("SELECT tbl, COALESCE(idx, '') AS idx, stat FROM sqlite_stat1").All(&rows); err != nil {
		return nil, fmt.Errorf("read statistics: %w", err)
	}
	stored := map[[2]string]string{}
	for _, row := range rows {
		stored[[2]string{row.Table, row.Index}] = row.Stat
	}
	return stored, nil
}

// indexShape is an index with its columns, separated by spaces.
type indexShape struct {
	Table   string `db:"tbl"`
	Index   string `db:"idx"`
	Unique  bool   `db:"uniq"`
	Partial bool   `db:"part"`
	Columns string `db:"columns"`
}

// statistics returns the statistics to store for each index.
func statistics(app core.App) (map[[2]string]string, error) {
	var shapes []indexShape
	err := app.DB().NewQuery(`SELECT t.name AS tbl, i.name AS idx, i."unique" AS uniq, i.partial AS part,
			(SELECT group_concat(COALESCE(c.name, '-'), ' ' ORDER BY c.seqno) FROM pragma_index_info(i.name) c) AS columns
		FROM sqlite_master t, pragma_index_list(t.name) i
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\'`).All(&shapes)
	if err != nil {
		return nil, fmt.Errorf("list indexes: %w", err)
	}
	want := map[[2]string]string{}
	for _, shape := range shapes {
		want[[2]string{shape.Table, shape.Index}] = shape.stat()
	}
	return want, nil
}

// stat returns the index's sqlite_stat1 text: the number of entries, and how many share the first column, the first two, and so on.
// "noskipscan" keeps SQLite from skipping an unconstrained first column: a list that walks an index in order would sort all rows of a type
// instead. Source: SQLite's documentation of sqlite_stat1.
func (s indexShape) stat() string {
	size, ok := tableSizes[s.Table]
	if !ok {
		size = defaultTableSize
	}
	if s.Partial {
		size = max(size/20, 1)
	}
	stat, share := []string{strconv.Itoa(size)}, size
	columns := strings.Fields(s.Columns)
	for i, column := range columns {
		values, few := distinctValues[s.Table+"."+column]
		if !few {
			values, few = distinctValues[column]
		}
		if !few || s.Unique && i == len(columns)-1 {
			values = size
		}
		share = max(share/values, 1)
		stat = append(stat, strconv.Itoa(share))
	}
	return strings.Join(append(stat, "noskipscan"), " ")
}
