package migrations

import (
	"fmt"
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

// What another practice bills for a patient, from a day to a day; and what is being undone is found without a look at every claim.
func init() {
	step("1767225954_claims_left.go", func(app core.App) error {
		orders, err := app.FindCollectionByNameOrId("orders")
		if err != nil {
			return fmt.Errorf("find orders: %w", err)
		}
		kind, ok := orders.Fields.GetByName("kind").(*core.SelectField)
		if !ok {
			return fmt.Errorf("the kind of an order is no choice")
		}
		if !slices.Contains(kind.Values, "competing_service") {
			kind.Values = append(slices.Clone(kind.Values), "competing_service")
		}
		err = (&table{Collection: orders}).with(date("until", "The last day of a competing service; empty while it goes on.")).save(app)
		if err != nil {
			return err
		}
		return execute(app, `CREATE INDEX idx_billing_entries_undoing ON billing_entries (lifecycle_status, updated_at, id)
			WHERE lifecycle_status IN ('void_requested', 'refund_due')`)
	})
}
