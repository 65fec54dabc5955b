package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Payers put numbers of people into what matches no claim: it is sealed as the file is, in which what stood in the plain column stands too.
func init() {
	step("1767225956_unmatched_sealed.go", func(app core.App) error {
		responses, err := app.FindCollectionByNameOrId("claim_responses")
		if err != nil {
			return fmt.Errorf("find claim responses: %w", err)
		}
		responses.Fields.RemoveByName("unmatched")
		if err := app.Save(responses); err != nil {
			return fmt.Errorf("remove the plain column: %w", err)
		}
		return (&table{Collection: responses}).
			phi("unmatched", 5_000_000, `What a person has to look at, as JSON: {"segment":"CLP","control_number":"","amount_cents":0,"reason":""}. Payers put numbers of people into it.`).
			save(app)
	})
}
