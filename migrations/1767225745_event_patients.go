package migrations

import "github.com/pocketbase/pocketbase/core"

// Kept events no longer say in the clear whose they are: the patient stands in the sealed payload only. And one small
// index tells how many deliveries failed today.
func init() {
	step("1767225745_event_patients.go", func(app core.App) error {
		events, err := app.FindCollectionByNameOrId("gateway_events")
		if err != nil {
			return err
		}
		events.Fields.RemoveByName("gateway_patient_id")
		if err := app.Save(events); err != nil {
			return err
		}
		sent, err := app.FindCollectionByNameOrId("transmissions")
		if err != nil {
			return err
		}
		return (&table{Collection: sent}).index("failed", false, "last_attempted_at", "status = 'failed'").save(app)
	})
}
