package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Nobody asks what was attempted last but by its state, and each state that is asked for has an index of its own; the one over all states was
// written twice for every reading that is delivered.
func init() {
	step("1767225988_fewer_indexes.go", func(app core.App) error {
		collection, err := app.FindCollectionByNameOrId("transmissions")
		if err != nil {
			return fmt.Errorf("find transmissions: %w", err)
		}
		collection.RemoveIndex("idx_transmissions_attempted")
		return (&table{Collection: collection}).save(app)
	})
}
