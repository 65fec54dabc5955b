package migrations

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795960000_messages.go", addMessages) }

// messagesCollection are the texts and calls to and from patients.
const messagesCollection = `{"id": "pbc_1795960010", "type": "base", "name": "messages", "system": false, "fields": [
	{"name": "id", "type": "text", "id": "text3208210256", "autogeneratePattern": "[a-z0-9]{15}", "max": 36, "min": 1, "pattern": "^[a-z0-9-]+$", "primaryKey": true, "required": true, "system": true},
	{"name": "patient", "type": "text", "id": "text1795960011", "help": "Empty for a message from a number of no or of several patients.", "max": 36},
	{"name": "direction", "type": "select", "id": "select1795960012", "maxSelect": 1, "required": true, "values": ["out", "in"]},
	{"name": "channel", "type": "select", "id": "select1795960013", "maxSelect": 1, "required": true, "values": ["sms", "voice"]},
	{"name": "state", "type": "select", "id": "select1795960014", "maxSelect": 1, "required": true, "values": ["queued", "sending", "sent", "delivered", "failed", "unknown", "suppressed", "received"]},
	{"name": "template", "type": "text", "id": "text1795960015", "max": 40},
	{"name": "language", "type": "text", "id": "text1795960016", "help": "BCP 47.", "max": 35},
	{"name": "text", "type": "phi", "id": "phi1795960017", "help": "Encrypted at rest.", "hidden": true, "max": 8000, "purpose": "messages.text"},
	{"name": "phone", "type": "phi", "id": "phi1795960018", "help": "The patient's side. Encrypted at rest.", "hidden": true, "max": 40, "purpose": "messages.phone"},
	{"name": "requested_kind", "type": "text", "id": "text1795960019", "help": "The kind of reading that the message requests.", "max": 40},
	{"name": "reason", "type": "text", "id": "text1795960020", "help": "Why it was suppressed or failed.", "max": 60},
	{"name": "automatic", "type": "bool", "id": "bool1795960021", "help": "The service decided to send it; it counts toward the limits."},
	{"name": "cause", "type": "text", "id": "text1795960022", "help": "What it is about, for an automatic message; unique.", "max": 120},
	{"name": "author", "type": "text", "id": "text1795960023", "help": "E-mail address, system or patient.", "max": 254},
	{"name": "provider_id", "type": "text", "id": "text1795960024", "help": "The provider's id; unique.", "max": 100},
	{"name": "due_at", "type": "text", "id": "text1795960025", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "created_at", "type": "text", "id": "text1795960026", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "updated_at", "type": "text", "id": "text1795960027", "help": "UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "sent_at", "type": "text", "id": "text1795960028", "help": "When the attempt began. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "read_at", "type": "text", "id": "text1795960029", "help": "When staff read a message from a patient. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27},
	{"name": "read_by", "type": "text", "id": "text1795960030", "help": "E-mail address.", "max": 254}],
	"indexes": [
	"CREATE INDEX ` + "`idx_messages_patient` ON `messages`" + ` (patient, created_at)",
	"CREATE INDEX ` + "`idx_messages_due` ON `messages`" + ` (due_at) WHERE state = 'queued'",
	"CREATE INDEX ` + "`idx_messages_sending` ON `messages`" + ` (sent_at) WHERE state = 'sending'",
	"CREATE UNIQUE INDEX ` + "`idx_messages_cause` ON `messages`" + ` (cause) WHERE cause != ''",
	"CREATE UNIQUE INDEX ` + "`idx_messages_provider` ON `messages`" + ` (provider_id) WHERE provider_id != ''"]}`

func init() { register("1795960100_measure_again.go", indexMeasureAgain) }

// indexMeasureAgain adds the index by which prompts to measure again are found.
func indexMeasureAgain(app core.App) error {
	return changeCollection(app, "announcements", nil, "CREATE INDEX `idx_announcements_again` ON `announcements` (created_at) WHERE kind = 'measure_again'")
}

// addMessages adds the messages, and how a patient wants to be reached.
func addMessages(app core.App) error {
	added := &core.Collection{}
	if err := json.Unmarshal([]byte(messagesCollection), added); err != nil {
		return err
	}
	if err := app.Save(added); err != nil {
		return fmt.Errorf("store the collection %s: %w", added.Name, err)
	}
	return changeCollection(app, "patients", []string{
		`{"name": "preferred_language", "type": "text", "id": "text1795960041", "help": "BCP 47, such as es.", "max": 35}`,
		`{"name": "messaging", "type": "json", "id": "json1795960042", "help": "Channels that the patient wants: {\"sms\": true, \"voice\": false}.", "maxSize": 1000}`,
		`{"name": "messaging_stopped_at", "type": "text", "id": "text1795960043", "help": "When the patient's phone sent STOP. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27}`,
		`{"name": "reminder_at", "type": "text", "id": "text1795960044", "help": "Time of the reminder of a missed reading, in the patient's place: 18:00.", "max": 5}`,
	})
}
