package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// What no device should report is kept with by which way it came, so that it can be told, confirmed or discarded; and devices say whether
// their clock is wrong.
func init() {
	step("1767225931_implausible.go", func(app core.App) error {
		events, err := app.FindCollectionByNameOrId("gateway_events")
		if err != nil {
			return fmt.Errorf("find gateway events: %w", err)
		}
		devices, err := app.FindCollectionByNameOrId("devices")
		if err != nil {
			return fmt.Errorf("find devices: %w", err)
		}
		return saveAll(app,
			(&table{Collection: events}).with(
				text("source", 20, "By which way it came; empty for a vendor's webhook."),
				flag("implausible", "A measurement in which nothing is wrong but values out of range."),
			),
			(&table{Collection: devices}).with(
				date("made_on", "When it was made, where that is known."),
				instant("clock_wrong_at", "When the first reading came whose time cannot be; empty once a sane time came."),
				instant("clock_told_at", "When its people were told."),
				text("clock_patient", 36, "Whose reading that was."),
				text("clock_observation", 36, "That reading."),
			),
		)
	})
}
