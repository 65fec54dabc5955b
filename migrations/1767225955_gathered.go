package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// What a broken device reports all day is one alert, and each of its events is still decided about by itself. What the alert says of all of
// them stands with the event that it shows: saving alerts would make all indexes of theirs anew.
func init() {
	step("1767225955_gathered.go", func(app core.App) error {
		events, err := app.FindCollectionByNameOrId("gateway_events")
		if err != nil {
			return fmt.Errorf("find gateway events: %w", err)
		}
		return (&table{Collection: events}).with(text("alert", 15, "The alert that gathers it with others like it.")).
			phi("gathered", 10000, "How many events its alert gathers, what the latest said and what was told, as JSON.").
			index("alert", false, "alert", "alert != ''").save(app)
	})
}
