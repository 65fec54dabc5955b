package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// The list of entries is offered in order of their amounts.
func init() {
	step("1767225803_billing_amounts.go", func(app core.App) error {
		entries, err := app.FindCollectionByNameOrId("billing_entries")
		if err != nil {
			return fmt.Errorf("find billing entries: %w", err)
		}
		entries.AddIndex("idx_billing_entries_amount", false, "amount_cents, id", "")
		if err := app.Save(entries); err != nil {
			return fmt.Errorf("index billing entries by amount: %w", err)
		}
		return nil
	})
}
