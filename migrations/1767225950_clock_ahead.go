package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// A measurement that is kept and waits for a person says whose it is, also where no alert is about it alone.
func init() {
	step("1767225950_clock_ahead.go", func(app core.App) error {
		events, err := app.FindCollectionByNameOrId("gateway_events")
		if err != nil {
			return fmt.Errorf("find gateway events: %w", err)
		}
		return (&table{Collection: events}).with(text("patient", 36, "Whose people know of it, where its device's clock was ahead.")).save(app)
	})
}
