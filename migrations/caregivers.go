package migrations

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795962000_caregivers.go", addCaregivers) }

// caregiversCollection holds which account may read or enter the readings of another person, and until when.
const caregiversCollection = `{"id": "pbc_1795962000", "type": "base", "name": "caregivers", "system": false, "fields": [
	{"name": "id", "type": "text", "id": "text3208210256", "autogeneratePattern": "[a-z0-9]{15}", "max": 15, "min": 15, "pattern": "^[a-z0-9]+$", "primaryKey": true, "required": true, "system": true},
	{"name": "patient", "type": "text", "id": "text1795962001", "max": 36, "required": true},
	{"name": "user", "type": "text", "id": "text1795962002", "help": "The caregiver's account.", "max": 15, "required": true},
	{"name": "relationship", "type": "text", "id": "text1795962003", "max": 30, "required": true},
	{"name": "scope", "type": "select", "id": "select1795962004", "maxSelect": 1, "required": true, "values": ["read", "enter"]},
	{"name": "until", "type": "text", "id": "text1795962005", "help": "The last day, YYYY-MM-DD in the patient's zone; empty for no end.", "max": 10},
	{"name": "ends_at", "type": "text", "id": "text1795962006", "help": "The end of that day. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "granted_by", "type": "text", "id": "text1795962007", "help": "E-mail address.", "max": 254},
	{"name": "created_at", "type": "text", "id": "text1795962008", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "ended_at", "type": "text", "id": "text1795962009", "help": "When it was revoked. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "ended_by", "type": "text", "id": "text1795962010", "help": "E-mail address or system.", "max": 254}],
	"indexes": [
	"CREATE UNIQUE INDEX ` + "`idx_caregivers_open` ON `caregivers`" + ` (patient, user) WHERE ended_at = ''",
	"CREATE INDEX ` + "`idx_caregivers_user` ON `caregivers`" + ` (user)"]}`

// addCaregivers adds the collection.
func addCaregivers(app core.App) error {
	added := &core.Collection{}
	if err := json.Unmarshal([]byte(caregiversCollection), added); err != nil {
		return err
	}
	if err := app.Save(added); err != nil {
		return fmt.Errorf("store the collection %s: %w", added.Name, err)
	}
	return nil
}
