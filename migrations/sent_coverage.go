package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1796100040_sent_coverage.go", addSentCoverage) }

// addSentCoverage adds the insurance with which a claim was sent: the claim to the second payer and a corrected one name it after the patient has another.
func addSentCoverage(app core.App) error {
	return changeCollection(app, "billing_entries", []string{
		`{"name": "sent_coverage", "type": "phi", "id": "phi1796100040", "help": "The insurance when the claim was sent, as JSON. Encrypted at rest.", "hidden": true, "max": 8000, "purpose": "billing_entries.sent_coverage"}`,
	})
}
