package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// The files that claims left in, which line of which claim stood in each, and the files that came back. None is ever changed in what it says or
// deleted: they are what a practice shows when asked what it sent.
func init() {
	step("1767225947_claim_batches.go", func(app core.App) error {
		entries, err := app.FindCollectionByNameOrId("billing_entries")
		if err != nil {
			return fmt.Errorf("find billing entries: %w", err)
		}
		return saveAll(app,
			(&table{Collection: entries}).with(structured("rejection", `What the clearinghouse or payer sent the claim back for: {"source":"999","codes":["5"],"at":""}.`)),
			claimBatches(), claimLines(), claimResponses(),
		)
	})
}

func claimBatches() *table {
	return newTable("claim_batches").withUUID().with(
		requiredText("interchange_control_number", 9, "ISA13, and GS06. Never used again."),
		requiredChoice("usage", "", "T", "P"),
		integer("claims", ""),
		integer("lines", ""),
		integer("total_charge_cents", "US cents."),
		requiredChoice("status", "", "created", "accepted", "partly_accepted", "rejected"),
		text("created_by", 254, "E-mail address or system."),
		instant("created_at", ""),
		instant("updated_at", ""),
	).
		phi("file", 40_000_000, "The 837P as it left.").
		index("number", true, "interchange_control_number", "")
}

func claimLines() *table {
	return newTable("claim_lines").withUUID().with(
		requiredText("batch", 36, ""),
		requiredText("billing_entry", 36, ""),
		requiredText("claim_control_number", 20, "CLM01."),
		requiredText("line_control_number", 30, "REF 6R."),
		text("frequency", 1, "1 original, 7 replacement, 8 void."),
		integer("charge_cents", "US cents."),
		flag("carried", "Stands on a replacement only because it stood on the claim that is replaced."),
	).
		index("line", true, "line_control_number", "").
		index("claim", false, "claim_control_number", "").
		index("batch", false, "batch", "").
		index("entry", false, "billing_entry", "")
}

func claimResponses() *table {
	return newTable("claim_responses").withUUID().with(
		requiredText("digest", 64, "SHA-256 of the file."),
		text("type", 20, "999, 277CA, 835, TA1, or more than one."),
		text("control_number", 9, "ISA13 of the first interchange."),
		integer("applied", "How many lines it changed or confirmed."),
		structured("unmatched", `What a person has to look at: {"segment":"CLP","control_number":"","amount_cents":0,"reason":""}.`),
		text("created_by", 254, "E-mail address or system."),
		instant("created_at", ""),
		instant("finished_at", "Empty while it is being applied, or was when the service stopped."),
	).
		phi("file", 45_000_000, "As it came, in base64.").
		index("digest", true, "digest", "")
}
