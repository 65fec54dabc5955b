package migrations

import "github.com/pocketbase/pocketbase/core"

// Planning looks at every entry of every patient; the index that already goes from patient to patient holds all that it asks of an entry.
func init() {
	step("1767225796_billing_facts.go", func(app core.App) error {
		return execute(app,
			`DROP INDEX idx_billing_entries_walk`,
			`CREATE INDEX idx_billing_entries_walk ON billing_entries (patient, service_date, id, lifecycle_status, cpt_code, source,
				billing_period_start, billing_period_end, units)`)
	})
}
