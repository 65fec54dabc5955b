package migrations

import (
	"encoding/json"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795942700_warning_push.go", addWarningPush) }

// addWarningPush adds why an alert was pushed, or was not, with the indexes that find pushed alerts and the pushes of an alert. In a folder without
// patients it sets the low diastolic bound of a new practice to 50; a practice at work keeps the bound that its clinicians expect.
func addWarningPush(app core.App) error {
	err := changeCollection(app, "alerts", []string{
		`{"name": "push_rule", "type": "text", "id": "text2716401593", "help": "Why it was pushed, or was not; empty for one from before this was stored.", "max": 20}`,
		`{"name": "push_reason", "type": "phi", "id": "phi2716401594", "help": "The same in words. Encrypted at rest.", "max": 500, "purpose": "alerts.push_reason"}`,
	}, "CREATE INDEX `idx_alerts_pushed` ON `alerts` (patient, type, created_at) WHERE push_rule NOT IN ('trend', 'never', 'snoozed', 'ended') "+
		"AND (push_rule != '' OR snoozed = FALSE AND resolution_reason != 'superseded')")
	if err != nil {
		return err
	}
	if err := changeCollection(app, "notifications", nil, "CREATE INDEX `idx_notifications_alert` ON `notifications` (alert) WHERE alert != ''"); err != nil {
		return err
	}
	return execute(app,
		`UPDATE thresholds SET bounds = json_set(bounds, '$.blood_pressure.diastolic_low', 50)
			WHERE patient = '' AND updated_by = '' AND NOT EXISTS (SELECT 1 FROM patients)`,
		`UPDATE threshold_templates SET bounds = json_set(bounds, '$.blood_pressure.diastolic_low', 50)
			WHERE key = 'adult' AND version = 1 AND updated_by = '' AND NOT EXISTS (SELECT 1 FROM patients)`)
}

// changeCollection adds fields, as PocketBase's JSON, and indexes to a collection and its table.
func changeCollection(app core.App, name string, fields []string, indexes ...string) error {
	collection, err := app.FindCollectionByNameOrId(name)
	if err != nil {
		return err
	}
	for _, field := range fields {
		if err := collection.Fields.AddMarshaledJSON(json.RawMessage(field)); err != nil {
			return err
		}
	}
	collection.Indexes = append(collection.Indexes, indexes...)
	return app.Save(collection)
}
