package migrations

import "github.com/pocketbase/pocketbase/core"

// SQLite keeps a journal for every statement that may write rows and then take them back by itself. Most of what a reading writes had one for the sake
// of what never happens: a function in an index or a trigger could fail, a guard takes back what came before it in its statement, and so does a total
// that is added to where a row of it exists. The transaction is rolled back anyway, so each says the same without that.
func init() {
	step("1767225993_no_journals.go", func(app core.App) error {
		const (
			// more adds to the total of a status, whether or not there is one.
			more = `INSERT INTO transmission_totals (status, transmissions) VALUES (NEW.status, 0) ON CONFLICT (status) DO NOTHING;
				UPDATE transmission_totals SET transmissions = transmissions + 1 WHERE status = NEW.status;`
			fewer = `UPDATE transmission_totals SET transmissions = transmissions - 1 WHERE status = OLD.status;`
		)
		return execute(app,
			`DROP INDEX idx_observations_patient_kind`,
			`CREATE UNIQUE INDEX idx_observations_patient_kind ON observations
				(patient, observation_type, measured_at, CASE WHEN reading_key != '' THEN reading_key END)`,
			`DROP TRIGGER audit_log_no_replace`,
			`CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id)
				BEGIN SELECT RAISE(FAIL,'audit_log is append-only'); END`,
			`DROP TRIGGER transmissions_join`,
			`DROP TRIGGER transmissions_move`,
			`CREATE TRIGGER transmissions_join AFTER INSERT ON transmissions BEGIN `+more+` END`,
			`CREATE TRIGGER transmissions_move AFTER UPDATE OF status ON transmissions WHEN OLD.status != NEW.status BEGIN `+fewer+more+` END`,
		)
	})
}
