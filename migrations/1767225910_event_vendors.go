package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Events of devices say whose they are, so that what was set aside is read in its vendor's own words later.
func init() {
	step("1767225910_event_vendors.go", func(app core.App) error {
		events, err := app.FindCollectionByNameOrId("gateway_events")
		if err != nil {
			return fmt.Errorf("find gateway events: %w", err)
		}
		return (&table{Collection: events}).with(text("vendor", 20, "Empty for the contract's gateway.")).save(app)
	})
}
