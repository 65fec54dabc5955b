package migrations

import (
	"fmt"
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

// Time says how people were in contact, messages too, who confirmed it, and what of it was left out because other time covers it. Time of before
// that was logged as a call says so as its way of contact. What is left of an escalation's time beside a call may be two stretches.
func init() {
	step("1767225942_time.go", func(app core.App) error {
		entries, err := app.FindCollectionByNameOrId("time_entries")
		if err != nil {
			return fmt.Errorf("find time entries: %w", err)
		}
		contact := entries.Fields.GetByName("contact_method").(*core.SelectField)
		contact.Values = append(slices.Clone(contact.Values), "message")
		entries.RemoveIndex("idx_time_entries_escalation")
		err = saveAll(app, (&table{Collection: entries}).with(
			text("attested_by", 254, "Who confirmed that it was contact with the patient."),
			instant("attested_at", ""),
			integer("overlap_seconds", "Left out of it, because other time of the person or the patient covers it."),
		).index("escalation", true, "escalation, started_at", "escalation != ''"))
		if err != nil {
			return err
		}
		return execute(app,
			`UPDATE time_entries SET contact_method = iif(activity = 'phone_call', 'phone', 'video')
				WHERE category = 'interactive' AND contact_method = '' AND activity IN ('phone_call', 'video_call')`,
			`DROP INDEX idx_time_entries_month`,
			`CREATE INDEX idx_time_entries_month ON time_entries (category, started_at, patient, duration_seconds, ended_at, contact_method, source)`,
		)
	})
}
