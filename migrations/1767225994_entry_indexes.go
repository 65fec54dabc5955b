package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Each entry is written to as few indexes as its lists need. One from patient to date, and one to the last supply, are the beginning of the index that
// planning walks. The list by date and the count of patients between two dates share one index. Of what waits, many have come at the same moment: a run
// makes them so. With their ids they lie in the order in which they are shown.
func init() {
	step("1767225994_entry_indexes.go", func(app core.App) error {
		entries, err := app.FindCollectionByNameOrId("billing_entries")
		if err != nil {
			return fmt.Errorf("find billing entries: %w", err)
		}
		entries.RemoveIndex("idx_billing_entries_patient")
		entries.RemoveIndex("idx_billing_entries_service")
		entries.AddIndex("idx_billing_entries_service", false, "service_date, id, patient, lifecycle_status", "")
		if err := (&table{Collection: entries}).save(app); err != nil {
			return err
		}
		return execute(app,
			`DROP INDEX idx_billing_entries_supply`,
			`DROP INDEX idx_billing_entries_billed`,
			`DROP INDEX idx_billing_entries_waiting`,
			`CREATE INDEX idx_billing_entries_waiting ON billing_entries (lifecycle_status, `+waitingSince+`, id)
				WHERE lifecycle_status IN ('pending_review', 'reviewed', 'denied')`,
		)
	})
}
