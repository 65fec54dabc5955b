package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950610_secondary_rejections.go", addSecondaryRejections) }

// addSecondaryRejections adds why a claim to the second payer was rejected. Claims marked as paid
// only by payments of the patient or the second payer that were entered by hand wait for the first
// payer again. Source: docs/decisions/billing.md, "Payments and adjustments".
func addSecondaryRejections(app core.App) error {
	err := changeCollection(app, "billing_entries", []string{
		`{"name": "secondary_rejection", "type": "phi", "id": "phi1795950531", "help": "Why the claim to the second payer was rejected, as JSON. Encrypted at rest.", "max": 50000, "purpose": "billing_entries.secondary_rejection"}`,
	})
	if err != nil {
		return err
	}
	return execute(app, `UPDATE billing_entries SET lifecycle_status = 'submitted' WHERE lifecycle_status = 'paid' AND payer != '' AND denial_code = ''
		AND EXISTS (SELECT 1 FROM payments p WHERE p.billing_entry = billing_entries.id AND p.kind = 'payment' AND p.payer IN ('patient', 'secondary'))
		AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.billing_entry = billing_entries.id AND (p.source != 'hand' OR p.payer = 'primary' OR p.kind NOT IN ('payment', 'reversal')))`)
}
