package migrations

import "github.com/pocketbase/pocketbase/core"

// One row says how many entries the audit trail has and which hash the last one bears, under a seal that only the service's keys make: an end
// cut off, or a trail emptied, shows by it. The service writes it, in the transaction of each entry; here it has no keys. It is
// never removed or replaced. That it only counts up is held by its seal: a trigger on each update would cost a reading by itself one part in
// a hundred.
func init() {
	step("1767225830_audit_state.go", func(app core.App) error {
		return execute(app,
			`CREATE TABLE audit_state (id INTEGER PRIMARY KEY CHECK (id = 1), entries INTEGER NOT NULL, head TEXT NOT NULL,
				unkeyed INTEGER NOT NULL, unkeyed_head TEXT NOT NULL, seal TEXT NOT NULL)`,
			`CREATE TRIGGER audit_state_no_delete BEFORE DELETE ON audit_state BEGIN SELECT RAISE(ABORT,'audit_state is kept'); END`,
			`CREATE TRIGGER audit_state_no_replace BEFORE INSERT ON audit_state WHEN EXISTS (SELECT 1 FROM audit_state)
				BEGIN SELECT RAISE(ABORT,'audit_state is kept'); END`,
		)
	})
}
