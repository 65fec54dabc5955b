package collections

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// sizes are the rows of a busy practice's tables after some years; other tables are small.
var sizes = map[string]int{
	Observations: 10_000_000, AuditLog: 10_000_000, Transmissions: 10_000_000, TransmissionAttempts: 10_000_000, "reading_days": 5_000_000,
	BillingEntries: 1_000_000, TimeEntries: 1_000_000, Alerts: 1_000_000, Notifications: 1_000_000, PushDeliveries: 1_000_000, GatewayEvents: 1_000_000,
	Announcements: 1_000_000, Mails: 100_000, Escalations: 100_000, Patients: 100_000, TriageScores: 100_000, Devices: 100_000,
	"device_assignments": 200_000, "consents": 200_000, "care_team_members": 200_000, "thresholds": 100_000,
	"billing_days": 100_000, "billing_provider_days": 100_000, "billing_patient_months": 1_000_000,
}

const otherSize = 1000

// fewValues are how many values a column has, of one table or wherever it stands. In every other column each row is taken to have its own.
var fewValues = map[string]int{
	"acknowledged": 2, "active": 2, "listed": 2, "needs_review": 2, "level": 4, "risk_level": 4, "priority": 4, "outcome": 3, "status": 6,
	"fhir_status": 4, "lifecycle_status": 6, "type": 10, "observation_type": 5, "category": 4, "source": 4, "cpt_code": 8, "event": 60,
	"resource_type": 20, "patient": 10_000, "user": 100, "actor_id": 1000, "actor_email": 100, "assigned_to": 100, "primary_provider": 100,
	"provider": 100, "rendering_provider": 100, "payer": 20, "amount_cents": 100, "device_id": 10_000, "hub_id": 1000, "day": 1000, "service_date": 1000, "risk_score": 100,
	"gateway_events.status": 50, // nearly all were accepted, which nobody lists
}

// SetPlannerStatistics gives SQLite the shape of a busy practice's tables, in place of what it would find in this one. Without, it takes "unacknowledged"
// for as good a clue as "of this patient", and reads all that waits in the practice for one reading; and what a practice looked like in its
// first night would decide how it is searched for months. With it the plans are the same in every practice and in every test. What it cannot
// say is that little of a table is younger than a day: who asks for that names the index.
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
		// Dropped and made anew: a change of the schema is what has other connections read statistics again.
		for _, statement := range []string{"DROP TABLE IF EXISTS sqlite_stat1", "DROP TABLE IF EXISTS sqlite_stat4", "ANALYZE sqlite_master"} {
			if _, err := db.NewQuery(statement).Execute(); err != nil {
				return fmt.Errorf("make room for statistics: %w", err)
			}
		}
		for key, stat := range want {
			_, err := db.NewQuery("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ({:table}, {:index}, {:stat})").
				Bind(dbx.Params{"table": key[0], "index": key[1], "stat": stat}).Execute()
			if err != nil {
				return fmt.Errorf("write the statistics of %s: %w", key[1], err)
			}
		}
		if _, err := db.NewQuery("ANALYZE sqlite_master").Execute(); err != nil { // reads what was written
			return fmt.Errorf("read statistics: %w", err)
		}
		return nil
	})
}

// storedStatistics are by table and index, as SQLite has them.
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

// statistics are what each index is taken to be like.
func statistics(app core.App) (map[[2]string]string, error) {
	var shapes []indexShape
	err := app.DB().NewQuery(`SELECT t.name AS tbl, i.name AS idx, i."unique" AS uniq, i.partial AS part,
			(SELECT group_concat(COALESCE(c.name, '-'), ' ' ORDER BY c.seqno) FROM pragma_index_info(i.name) c) AS columns
		FROM sqlite_master t, pragma_index_list(t.name) i
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\'`).All(&shapes)
	if err != nil {
		return nil, fmt.Errorf("look at the indexes: %w", err)
	}
	want := map[[2]string]string{}
	for _, shape := range shapes {
		want[[2]string{shape.Table, shape.Index}] = shape.stat()
	}
	return want, nil
}

// stat is the row's text: how many entries there are, and how many share the first column, the first two, and so on. SQLite is not to skip a
// first column that it is not asked for: a list that walks an index in its order would instead sort all that a type has.
// Source: SQLite's documentation of sqlite_stat1.
func (s indexShape) stat() string {
	size, known := sizes[s.Table]
	if !known {
		size = otherSize
	}
	if s.Partial {
		size = max(size/20, 1)
	}
	stat, share := []string{strconv.Itoa(size)}, size
	columns := strings.Fields(s.Columns)
	for i, column := range columns {
		values, few := fewValues[s.Table+"."+column]
		if !few {
			values, few = fewValues[column]
		}
		if !few || s.Unique && i == len(columns)-1 {
			values = size
		}
		share = max(share/values, 1)
		stat = append(stat, strconv.Itoa(share))
	}
	return strings.Join(append(stat, "noskipscan"), " ")
}
