package migrations

import "github.com/pocketbase/pocketbase/core"

// Claims that stand and were paid too much are few, and found without looking at all that were paid.
func init() {
	step("1767225985_credits.go", func(app core.App) error {
		return execute(app, `CREATE INDEX idx_billing_entries_credit ON billing_entries (lifecycle_status, updated_at, id)
			WHERE lifecycle_status IN ('paid', 'denied') AND paid_total_cents > 0
				AND charge_cents < paid_total_cents + adjusted_cents + patient_responsibility_cents`)
	})
}
