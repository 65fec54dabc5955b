package migrations

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795955010_emr_context.go", addEMRContext) }

// emrContextCollections are what the service read of a patient's chart in the EMR, and what it proposes to take from there.
var emrContextCollections = []string{
	`{"id": "pbc_1795955010", "type": "base", "name": "emr_contexts", "system": false, "fields": [
	{"name": "id", "type": "text", "id": "text3208210256", "autogeneratePattern": "[a-z0-9]{15}", "max": 15, "min": 15, "pattern": "^[a-z0-9]+$", "primaryKey": true, "required": true, "system": true},
	{"name": "patient", "type": "text", "id": "text1795955011", "max": 36, "required": true},
	{"name": "emr_id", "type": "text", "id": "text1795955012", "help": "The EMR's id of the chart's patient.", "max": 100, "required": true},
	{"name": "fetched_at", "type": "text", "id": "text1795955013", "help": "When the chart was last read. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "tried_at", "type": "text", "id": "text1795955014", "help": "When the service last tried to read it. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "content", "type": "phi", "id": "phi1795955015", "help": "What was read, as JSON. Encrypted at rest.", "hidden": true, "max": 20000000, "purpose": "emr_contexts.content"}],
	"indexes": [
	"CREATE UNIQUE INDEX ` + "`idx_emr_contexts_patient` ON `emr_contexts`" + ` (patient)"]}`,
	`{"id": "pbc_1795955020", "type": "base", "name": "emr_proposals", "system": false, "fields": [
	{"name": "id", "type": "text", "id": "text3208210256", "autogeneratePattern": "[a-z0-9]{15}", "max": 15, "min": 15, "pattern": "^[a-z0-9]+$", "primaryKey": true, "required": true, "system": true},
	{"name": "patient", "type": "text", "id": "text1795955021", "max": 36, "required": true},
	{"name": "emr_id", "type": "text", "id": "text1795955022", "help": "The EMR's id of the chart's patient.", "max": 100, "required": true},
	{"name": "kind", "type": "select", "id": "select1795955023", "maxSelect": 1, "required": true, "values": ["diagnosis", "order", "insurance", "established_visit", "hold", "deceased"]},
	{"name": "status", "type": "select", "id": "select1795955024", "maxSelect": 1, "required": true, "values": ["open", "accepted", "dismissed", "withdrawn"]},
	{"name": "value", "type": "phi", "id": "phi1795955025", "help": "What is proposed, as JSON. Encrypted at rest.", "hidden": true, "max": 20000, "purpose": "emr_proposals.value"},
	{"name": "source", "type": "text", "id": "text1795955026", "help": "The resource in the EMR, as Encounter/123.", "max": 100},
	{"name": "dated", "type": "text", "id": "text1795955027", "help": "YYYY-MM-DD.", "max": 10},
	{"name": "proposed_at", "type": "text", "id": "text1795955028", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "decided_at", "type": "text", "id": "text1795955029", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "decided_by", "type": "text", "id": "text1795955030", "help": "E-mail address or system.", "max": 254}],
	"indexes": [
	"CREATE INDEX ` + "`idx_emr_proposals_patient` ON `emr_proposals`" + ` (patient, status)"]}`,
}

// addEMRContext adds these collections.
func addEMRContext(app core.App) error {
	for _, definition := range emrContextCollections {
		added := &core.Collection{}
		if err := json.Unmarshal([]byte(definition), added); err != nil {
			return err
		}
		if err := app.Save(added); err != nil {
			return fmt.Errorf("store the collection %s: %w", added.Name, err)
		}
	}
	return nil
}
