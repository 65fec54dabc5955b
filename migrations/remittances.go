package migrations

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795950420_remittances.go", addRemittances) }

// remittanceFields are what entries and payments keep of a payer's file beyond amounts.
var remittanceFields = map[string][]string{
	"payments": {
		`{"name": "remarks", "type": "json", "id": "json1795950101", "help": "Remittance advice remark codes of the whole decision.", "maxSize": 2000}`,
		`{"name": "remittance", "type": "text", "id": "text1795950102", "help": "The remittance that it came with.", "max": 36}`,
	},
	"billing_entries": {
		`{"name": "denial_remarks", "type": "json", "id": "json1795950103", "help": "Remittance advice remark codes of the denial.", "maxSize": 2000}`,
		`{"name": "rejection_details", "type": "phi", "id": "phi1795950104", "help": "What a 999 or 277CA states about the line, as JSON. Encrypted at rest.", "max": 50000, "purpose": "billing_entries.rejection_details"}`,
	},
}

// remittanceCollection stores a payer's payment with its 835 and the items that a person has to
// resolve.
const remittanceCollection = `{"id": "pbc_1795950100", "type": "base", "name": "remittances", "system": false, "fields": [
	{"name": "id", "type": "text", "id": "text3208210256", "autogeneratePattern": "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", "max": 36, "min": 36, "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", "primaryKey": true, "required": true, "system": true},
	{"name": "response", "type": "text", "id": "text1795950111", "help": "The file that it first came in.", "max": 36, "required": true},
	{"name": "digest", "type": "text", "id": "text1795950112", "help": "SHA-256 of its payments, so that it is stored once for any number of envelopes.", "max": 64, "required": true},
	{"name": "payer", "type": "text", "id": "text1795950113", "max": 60},
	{"name": "trace_number", "type": "text", "id": "text1795950114", "help": "Check or EFT: TRN02.", "max": 50},
	{"name": "payment_cents", "type": "number", "id": "number1795950115", "help": "US cents: BPR02.", "onlyInt": true},
	{"name": "payment_date", "type": "text", "id": "text1795950116", "help": "YYYY-MM-DD.", "max": 10},
	{"name": "method", "type": "text", "id": "text1795950117", "help": "ACH, CHK, FWT, BOP or NON: BPR04.", "max": 3},
	{"name": "status", "type": "select", "id": "select1795950118", "maxSelect": 1, "required": true, "values": ["balanced", "open", "closed"]},
	{"name": "items", "type": "phi", "id": "phi1795950119", "help": "What a person has to resolve, as JSON. Payers put numbers of people into it. Encrypted at rest.", "max": 5000000, "purpose": "remittances.items"},
	{"name": "notes", "type": "phi", "id": "phi1795950120", "help": "Why it was closed. Encrypted at rest.", "max": 4000, "purpose": "remittances.notes"},
	{"name": "closed_by", "type": "text", "id": "text1795950121", "help": "E-mail address.", "max": 254},
	{"name": "closed_at", "type": "text", "id": "text1795950122", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "created_at", "type": "text", "id": "text1795950123", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "updated_at", "type": "text", "id": "text1795950124", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27}],
	"indexes": [
	"CREATE INDEX ` + "`idx_remittances_id_nocase` ON `remittances`" + ` (id COLLATE NOCASE)",
	"CREATE UNIQUE INDEX ` + "`idx_remittances_digest` ON `remittances`" + ` (digest)",
	"CREATE INDEX ` + "`idx_remittances_status` ON `remittances`" + ` (status)"]}`

// addRemittances adds the collections of remittances and the index of claims with an open amount.
// Payments of files imported before belong to no remittance; importing such a file in another
// envelope creates one.
func addRemittances(app core.App) error {
	for _, name := range []string{"payments", "billing_entries"} {
		if err := changeCollection(app, name, remittanceFields[name]); err != nil {
			return err
		}
	}
	remittances := &core.Collection{}
	if err := json.Unmarshal([]byte(remittanceCollection), remittances); err != nil {
		return err
	}
	if err := app.Save(remittances); err != nil {
		return fmt.Errorf("store the collection of remittances: %w", err)
	}
	return execute(app,
		"CREATE INDEX idx_payments_remittance ON payments (remittance) WHERE remittance != ''",
		`CREATE INDEX idx_billing_entries_balance ON billing_entries (lifecycle_status, submitted_at, payer, service_date, cpt_code, rendering_provider,
			charge_cents, paid_total_cents, adjusted_cents, patient_responsibility_cents, updated_at, id)
			WHERE lifecycle_status IN ('submitted', 'paid', 'denied', 'appealed', 'void_requested', 'refund_due')
				AND charge_cents != paid_total_cents + adjusted_cents + patient_responsibility_cents`)
}
