package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950200_setup_episodes.go", dropSetupIndex) }

// dropSetupIndex permits a set-up in each episode of care; the index of automatic entries still stores each one once.
func dropSetupIndex(app core.App) error {
	return execute(app, `DROP INDEX idx_billing_entries_setup`)
}
