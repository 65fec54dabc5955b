package migrations

import (
	"fmt"
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

// What is charged beside what is expected, what came of it, how a claim is known to its payer, and when its facts were looked at last and
// ceased to hold. An entry of before was charged at what was expected.
func init() {
	step("1767225940_claims.go", func(app core.App) error {
		entries, err := app.FindCollectionByNameOrId("billing_entries")
		if err != nil {
			return fmt.Errorf("find billing entries: %w", err)
		}
		status := entries.Fields.GetByName("lifecycle_status").(*core.SelectField)
		status.Values = append(slices.Clone(status.Values), "void_requested", "refund_due", "refunded")
		err = saveAll(app, (&table{Collection: entries}).with(
			integer("charge_cents", "US cents: what the payer is asked for."),
			integer("paid_total_cents", "US cents: all payments less what was taken back."),
			integer("patient_responsibility_cents", "US cents: adjustments of group PR."),
			integer("refunded_cents", "US cents."),
			structured("adjustments", `As the payer gave them: {"group":"CO","carc":"45","rarc":["N130"],"amount_cents":1000}.`),
			text("claim_control_number", 20, "CLM01 of the claim it was sent in."),
			text("payer_control_number", 50, "The payer's own number of the claim."),
			text("claim_batch", 36, "The batch it was sent in last."),
			instant("facts_checked_at", "When days, minutes and papers were recounted last."),
			instant("evidence_changed_at", "When what was billed ceased to hold; empty while it holds."),
			date("repay_by", "Sixty days after that."),
			date("refund_date", ""),
			text("refund_reference", 100, ""),
		).phi("overpayment_reason", 500, ""))
		if err != nil {
			return err
		}
		return execute(app,
			`UPDATE billing_entries SET charge_cents = amount_cents, paid_total_cents = COALESCE(payment_cents, 0)`,
			`CREATE INDEX idx_billing_entries_control ON billing_entries (claim_control_number) WHERE claim_control_number != ''`,
			`CREATE INDEX idx_billing_entries_changed ON billing_entries (evidence_changed_at) WHERE evidence_changed_at != ''`,
		)
	})
}
