package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// One push for each notification and token, whatever happens between planning it and sending it.
func init() {
	step("1767225773_push_once.go", func(app core.App) error {
		deliveries, err := app.FindCollectionByNameOrId("push_deliveries")
		if err != nil {
			return fmt.Errorf("find push deliveries: %w", err)
		}
		deliveries.AddIndex("idx_push_deliveries_once", true, "notification, push_token", "push_token != ''")
		if err := app.Save(deliveries); err != nil {
			return fmt.Errorf("collection push deliveries: %w", err)
		}
		return nil
	})
}
