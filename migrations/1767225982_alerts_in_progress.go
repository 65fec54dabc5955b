package migrations

import "github.com/pocketbase/pocketbase/core"

// What somebody has taken on is found without looking at all alerts there ever were.
func init() {
	step("1767225982_alerts_in_progress.go", func(app core.App) error {
		return execute(app, `CREATE INDEX idx_alerts_acknowledged_by ON alerts (acknowledged_by, created_at, id) WHERE acknowledged_by != ''`)
	})
}
