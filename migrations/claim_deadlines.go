package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950510_claim_deadlines.go", addClaimDeadlines) }

// addClaimDeadlines adds how long a payer accepts claims and appeals, and an index of entries by
// the payer's claim number.
func addClaimDeadlines(app core.App) error {
	err := changeCollection(app, "payers", []string{
		`{"name": "filing_limit_days", "type": "number", "id": "number3318400107", "help": "Days after the service; 0 for the default of the claim filing code.", "onlyInt": true}`,
		`{"name": "appeal_limit_days", "type": "number", "id": "number3318400108", "help": "Days after the denial; 0 for the default of the claim filing code.", "onlyInt": true}`,
	})
	if err != nil {
		return err
	}
	return execute(app, "CREATE INDEX idx_billing_entries_payer_control ON billing_entries (payer_control_number) WHERE payer_control_number != ''")
}
