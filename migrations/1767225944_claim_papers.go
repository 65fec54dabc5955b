package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// What a payer asks for before it pays: whose insurance it is, where its claims go, which kind of provider somebody is, and what was ordered.
func init() {
	step("1767225944_claim_papers.go", func(app core.App) error {
		patients, err := app.FindCollectionByNameOrId("patients")
		if err != nil {
			return fmt.Errorf("find patients: %w", err)
		}
		payers, err := app.FindCollectionByNameOrId("payers")
		if err != nil {
			return fmt.Errorf("find payers: %w", err)
		}
		users, err := app.FindCollectionByNameOrId("users")
		if err != nil {
			return fmt.Errorf("find users: %w", err)
		}
		return saveAll(app,
			(&table{Collection: patients}).phi("insurance_details", 4000, "JSON object: group_number, relationship, subscriber, secondary."),
			(&table{Collection: payers}).with(
				text("edi_payer_id", 80, "By which the clearinghouse knows the payer."),
				text("claim_filing_code", 2, "X12 element SBR09: MB for Medicare Part B, CI for commercial."),
				structured("address", "line1, line2, city, state, postal_code."),
			),
			(&table{Collection: users}).with(text("taxonomy_code", 10, "NUCC Health Care Provider Taxonomy.")),
			orders(app),
		)
	})
}

// orders are what a practitioner ordered, planned and established, each as it was recorded: nothing of it is changed or deleted.
func orders(app core.App) *table {
	return newTable("orders").with(
		relation(app, "patient", "patients", true, ""),
		requiredChoice("kind", "", "rpm_order", "plan_of_care", "established_visit"),
		date("dated", "The day of it."),
		relation(app, "author", "users", true, "Whose it is."),
		text("recorded_by", 254, "E-mail address."),
		instant("recorded_at", ""),
	).
		phi("text", 4000, "").
		index("patient", false, "patient, kind, dated", "")
}
