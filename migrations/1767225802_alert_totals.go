package migrations

import "github.com/pocketbase/pocketbase/core"

// How many alerts there are of a kind stands in a few rows that triggers keep in step, so that a list's total is no walk over all of them.
func init() {
	step("1767225802_alert_totals.go", func(app core.App) error {
		const (
			kinds = "level, status, type, acknowledged"
			more  = `INSERT INTO alert_totals (` + kinds + `, alerts) VALUES (NEW.level, NEW.status, NEW.type, NEW.acknowledged, 1)
				ON CONFLICT (` + kinds + `) DO UPDATE SET alerts = alerts + 1;`
			fewer = `UPDATE alert_totals SET alerts = alerts - 1
				WHERE level = OLD.level AND status = OLD.status AND type = OLD.type AND acknowledged = OLD.acknowledged;`
		)
		return execute(app,
			`CREATE TABLE alert_totals (level TEXT NOT NULL, status TEXT NOT NULL, type TEXT NOT NULL, acknowledged INTEGER NOT NULL,
				alerts INTEGER NOT NULL, PRIMARY KEY (`+kinds+`)) WITHOUT ROWID`,
			`INSERT INTO alert_totals (`+kinds+`, alerts) SELECT `+kinds+`, COUNT(*) FROM alerts GROUP BY `+kinds,
			`CREATE TRIGGER alerts_join AFTER INSERT ON alerts BEGIN `+more+` END`,
			`CREATE TRIGGER alerts_leave AFTER DELETE ON alerts BEGIN `+fewer+` END`,
			`CREATE TRIGGER alerts_move AFTER UPDATE OF `+kinds+` ON alerts
				WHEN (OLD.level, OLD.status, OLD.type, OLD.acknowledged) IS NOT (NEW.level, NEW.status, NEW.type, NEW.acknowledged)
				BEGIN `+fewer+more+` END`,
		)
	})
}
