package migrations

import "github.com/pocketbase/pocketbase/core"

func init() {
	step("1767225986_backups.go", func(app core.App) error {
		return saveAll(app,
			newTable("backups").with(
				requiredText("name", 100, "Of the file."),
				instant("taken_at", "Empty when it was not taken by this database's own service."),
				instant("verified_at", "When it was last proven to be good; empty when never."),
			).
				index("name", true, "name", "").
				index("taken", false, "taken_at", "").
				index("verified", false, "verified_at", ""),
		)
	})
}
