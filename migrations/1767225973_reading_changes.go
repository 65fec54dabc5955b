package migrations

import "github.com/pocketbase/pocketbase/core"

// Whoever follows readings by when they last changed finds the next ones by an index, in their order; and so are found the few that do not hold.
func init() {
	step("1767225973_reading_changes.go", func(app core.App) error {
		return execute(app,
			`CREATE INDEX idx_observations_updated ON observations (updated_at, id)`,
			`CREATE INDEX idx_observations_doubtful ON observations (status, measured_at, id) WHERE status != 'final'`,
		)
	})
}
