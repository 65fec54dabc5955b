package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// What is sent to the EMR besides readings, and that its copies follow what changes; what is known of a device besides its model.
func init() {
	step("1767225937_emr.go", func(app core.App) error {
		transmissions, err := app.FindCollectionByNameOrId("transmissions")
		if err != nil {
			return fmt.Errorf("find transmissions: %w", err)
		}
		devices, err := app.FindCollectionByNameOrId("devices")
		if err != nil {
			return fmt.Errorf("find devices: %w", err)
		}
		transmissions.RemoveIndex("idx_transmissions_observation")
		return saveAll(app,
			(&table{Collection: transmissions}).with(
				choice("form", "Empty for the reading itself.", "heart_rate", "mean_blood_pressure"),
				date("period_from", "First day of a mean."),
				date("period_to", "Last day of a mean."),
				integer("corrections", "Changes that the EMR's copy is to follow."),
			).
				index("observation", true, "observation, form", "").
				index("means", false, "patient, period_from", "form = 'mean_blood_pressure'"),
			(&table{Collection: devices}).with(
				text("manufacturer", 100, ""),
				text("serial_number", 100, ""),
				text("udi", 300, "Unique device identifier, as people read it."),
			),
		)
	})
}
