package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950530_patient_receipts.go", indexReceipts) }

// indexReceipts adds the index by which the last readings of a patient are found in order of receipt, however long the record is.
func indexReceipts(app core.App) error {
	return changeCollection(app, "observations", nil, "CREATE INDEX `idx_observations_received` ON `observations` (patient, created_at)")
}
