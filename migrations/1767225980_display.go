package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// How things are shown to somebody: units, and whether single keys act.
func init() {
	step("1767225980_display.go", func(app core.App) error {
		users, err := app.FindCollectionByNameOrId("users")
		if err != nil {
			return fmt.Errorf("find users: %w", err)
		}
		return (&table{Collection: users}).with(
			text("weight_unit", 2, "What weights are shown in: kg or lb; kg when empty."),
			text("temperature_unit", 1, "What temperatures are shown in: C or F; C when empty."),
			text("single_keys", 3, "off when single keys of the keyboard do nothing in the console."),
		).save(app)
	})
}
