package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795963000_former_payment_numbers.go", fillPaymentNumbers) }

// fillPaymentNumbers copies an entry's payer number to the decision it came from, where an earlier
// version did not: the first payer's newest one, if it is about the entry's claim and was neither
// reversed nor reopened since.
func fillPaymentNumbers(app core.App) error {
	return execute(app, `UPDATE payments SET payer_control_number = e.payer_control_number FROM billing_entries e
		WHERE e.id = payments.billing_entry AND e.payer_control_number != '' AND payments.payer_control_number = ''
			AND payments.source = '835' AND payments.payer = 'primary' AND payments.kind IN ('payment', 'denial')
			AND (e.claim_control_number = '' OR instr(payments.source_key, '|' || e.claim_control_number || 'L') > 0)
			AND NOT EXISTS (SELECT 1 FROM payments later WHERE later.billing_entry = payments.billing_entry AND later.id > payments.id
				AND (later.kind = 'reopening' OR later.source = '835' AND later.payer = 'primary' AND later.kind IN ('payment', 'denial', 'reversal')))`)
}
