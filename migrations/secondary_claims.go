package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950520_secondary_claims.go", addSecondaryClaims) }

// addSecondaryClaims adds the claim to the second payer, and the part of a payment's adjustments by which earlier payments lessened the patient's
// share. Decisions of before keep no second payer's claim until something of them changes.
func addSecondaryClaims(app core.App) error {
	for name, fields := range map[string][]string{
		"payments": {
			`{"name": "share_offsets", "type": "json", "id": "json1795950501", "help": "By which payments lessened the patient's share that the payer states.", "maxSize": 100000}`,
		},
		"claim_lines": {
			`{"name": "payer_sequence", "type": "text", "id": "text1795950502", "help": "S for a claim to the second payer, else empty.", "max": 1}`,
		},
		"billing_entries": {
			`{"name": "secondary_status", "type": "text", "id": "text1795950503", "help": "due, submitted, paid or denied; empty without a second claim.", "max": 9}`,
			`{"name": "secondary_payer", "type": "text", "id": "text1795950504", "help": "The payer of the second claim.", "max": 15}`,
		},
	} {
		if err := changeCollection(app, name, fields); err != nil {
			return err
		}
	}
	return execute(app, "CREATE INDEX idx_billing_entries_secondary ON billing_entries (updated_at, id, patient, cpt_code, payer, service_date) WHERE secondary_status = 'due'")
}
