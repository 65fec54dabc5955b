package migrations

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1796130000_epochs.go", addEpochs) }

// epochsCollection are the periods in which one process held the lease of this database. The id is the epoch, padded.
const epochsCollection = `{"id": "pbc_1796130010", "type": "base", "name": "epochs", "system": false, "fields": [
	{"name": "id", "type": "text", "id": "text3208210256", "max": 20, "min": 20, "pattern": "^[0-9]+$", "primaryKey": true, "required": true, "system": true},
	{"name": "node", "type": "text", "id": "text1796130011", "help": "The process that held the lease.", "max": 200, "required": true},
	{"name": "first_audit_id", "type": "text", "id": "text1796130012", "help": "Audit entries from this id on, until the next epoch, were written in this one.", "max": 20},
	{"name": "started_at", "type": "text", "id": "text1796130013", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27}]}`

// addEpochs adds the table that proves which process wrote what.
func addEpochs(app core.App) error {
	added := &core.Collection{}
	if err := json.Unmarshal([]byte(epochsCollection), added); err != nil {
		return err
	}
	if err := app.Save(added); err != nil {
		return fmt.Errorf("store the collection %s: %w", added.Name, err)
	}
	return nil
}
