package migrations

import (
	"encoding/json"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795954000_emr_capabilities.go", addEMRCapabilities) }

// addEMRCapabilities adds what is known of each EMR: what its CapabilityStatement states, and whether it has taken an Observation.
func addEMRCapabilities(app core.App) error {
	collection := &core.Collection{}
	err := json.Unmarshal([]byte(`{"id": "pbc_2716401700", "type": "base", "name": "emr_capabilities", "system": false,
		"fields": [
			{"name": "id", "type": "text", "id": "text3208210256", "autogeneratePattern": "[a-z0-9]{15}", "max": 15, "min": 15, "pattern": "^[a-z0-9]+$", "primaryKey": true, "required": true, "system": true},
			{"name": "audience", "type": "text", "id": "text2716401701", "help": "Hash of EMR and client.", "max": 64, "required": true},
			{"name": "offer", "type": "text", "id": "text2716401702", "help": "What its CapabilityStatement states about Observations, as JSON; empty before the first readable one.", "max": 65536},
			{"name": "read_at", "type": "text", "id": "text2716401703", "help": "When it was read. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27, "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$"},
			{"name": "has_accepted", "type": "bool", "id": "bool2716401704", "help": "It has taken an Observation."}],
		"indexes": ["CREATE UNIQUE INDEX `+"`idx_emr_capabilities_audience` ON `emr_capabilities`"+` (audience)"]}`), collection)
	if err != nil {
		return err
	}
	return app.Save(collection)
}
