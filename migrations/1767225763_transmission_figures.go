package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Small indexes for what people ask of deliveries: the list newest first, what was transmitted since midnight and last,
// and the few observations whose FHIR form is owed.
func init() {
	step("1767225763_transmission_figures.go", func(app core.App) error {
		transmissions, err := app.FindCollectionByNameOrId("transmissions")
		if err != nil {
			return fmt.Errorf("find transmissions: %w", err)
		}
		observations, err := app.FindCollectionByNameOrId("observations")
		if err != nil {
			return fmt.Errorf("find observations: %w", err)
		}
		return saveAll(app,
			(&table{Collection: transmissions}).
				index("created", false, "created_at, id", "").
				index("transmitted", false, "last_attempted_at", "status = 'transmitted'"),
			(&table{Collection: observations}).
				index("untransformed", false, "created_at", "transform_error != ''"))
	})
}
