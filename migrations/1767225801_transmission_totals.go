package migrations

import "github.com/pocketbase/pocketbase/core"

// Every reading is a transmission, so the list of them says how many there are from a row for each status that triggers keep in step.
func init() {
	step("1767225801_transmission_totals.go", func(app core.App) error {
		const (
			more = `INSERT INTO transmission_totals (status, transmissions) VALUES (NEW.status, 1)
				ON CONFLICT (status) DO UPDATE SET transmissions = transmissions + 1;`
			fewer = `UPDATE transmission_totals SET transmissions = transmissions - 1 WHERE status = OLD.status;`
		)
		return execute(app,
			`CREATE TABLE transmission_totals (status TEXT PRIMARY KEY NOT NULL, transmissions INTEGER NOT NULL) WITHOUT ROWID`,
			`INSERT INTO transmission_totals (status, transmissions) SELECT status, COUNT(*) FROM transmissions GROUP BY status`,
			`CREATE TRIGGER transmissions_join AFTER INSERT ON transmissions BEGIN `+more+` END`,
			`CREATE TRIGGER transmissions_leave AFTER DELETE ON transmissions BEGIN `+fewer+` END`,
			`CREATE TRIGGER transmissions_move AFTER UPDATE OF status ON transmissions WHEN OLD.status != NEW.status BEGIN `+fewer+more+` END`,
		)
	})
}
