package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// What a broken device reports all day is one alert, and each of its events is still decided about by itself.
func init() {
	step("1767225955_gathered.go", func(app core.App) error {
		events, err := app.FindCollectionByNameOrId("gateway_events")
		if err != nil {
			return fmt.Errorf("find gateway events: %w", err)
		}
		alerts, err := app.FindCollectionByNameOrId("alerts")
		if err != nil {
			return fmt.Errorf("find alerts: %w", err)
		}
		return saveAll(app,
			(&table{Collection: events}).with(text("alert", 15, "The alert that gathers it with others like it.")).index("alert", false, "alert", "alert != ''"),
			(&table{Collection: alerts}).phi("gathered", 10000, "How many events it gathers, what the latest said and what was told, as JSON."),
		)
	})
}
