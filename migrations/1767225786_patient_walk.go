package migrations

import "github.com/pocketbase/pocketbase/core"

// The summary of patients goes from one patient with entries to the next without reading an entry: the index knows which are voided.
func init() {
	step("1767225786_patient_walk.go", func(app core.App) error {
		return execute(app, `CREATE INDEX idx_billing_entries_walk ON billing_entries (patient, service_date, lifecycle_status)`)
	})
}
