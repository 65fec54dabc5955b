package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// What a snooze knew when it began and how long it has been quiet in a row, and what has to be told whatever was told just before.
func init() {
	step("1767225934_hold.go", func(app core.App) error {
		tables := map[string]*table{}
		for _, name := range []string{"snoozes", "announcements", "notifications"} {
			collection, err := app.FindCollectionByNameOrId(name)
			if err != nil {
				return fmt.Errorf("find %s: %w", name, err)
			}
			tables[name] = &table{Collection: collection}
		}
		const atOnce = "Told whatever was told just before of another alert like it."
		return saveAll(app,
			tables["snoozes"].
				with(
					structured("known", "The worst values of the alerts that it covered when it began."),
					instant("quiet_since", "When the first of the snoozes in a row began."),
					instant("critical_since", "The same of those that keep critical alerts quiet; empty when it does not."),
				).
				index("due", false, "ends_at", "ended_at = ''"),
			tables["announcements"].with(flag("at_once", atOnce)),
			tables["notifications"].with(flag("at_once", atOnce)),
		)
	})
}
