package migrations

import (
	"fmt"
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

// Who vouches for a reading, what is doubted about it, and what became of an alert besides being dealt with. An empty word is the one of
// rows that were there before: it stands for what follows from their source.
//
// Saving a collection makes all its indexes anew, which takes long with millions of readings: what later steps need of these two is here.
func init() {
	step("1767225920_bedside.go", func(app core.App) error {
		observations, err := app.FindCollectionByNameOrId("observations")
		if err != nil {
			return fmt.Errorf("find observations: %w", err)
		}
		alerts, err := app.FindCollectionByNameOrId("alerts")
		if err != nil {
			return fmt.Errorf("find alerts: %w", err)
		}
		status := observations.Fields.GetByName("status").(*core.SelectField)
		status.Values = append(slices.Clone(status.Values), "suspect") // which is none of those that hold
		return saveAll(app,
			(&table{Collection: observations}).with(
				choice("origin", "Who vouches for the values.", "device", "machine", "import", "staff", "patient"),
				choice("review_state", "Empty for accepted.", "suspect", "confirmed"),
				text("suspect_reason", 50, "Why it is, or was, doubted."),
				text("confirmed_by", 254, "E-mail address or system."),
				instant("confirmed_at", ""),
			),
			(&table{Collection: alerts}).with(
				choice("origin", "Of the reading behind it.", "device", "machine", "import", "staff", "patient"),
				flag("late", "The reading behind it came long after it was measured."),
				choice("resolution_reason", "Why the service ended it; empty when a person did, or normal readings.", "superseded", "withdrawn"),
				text("quarantine_id", 36, "The device event behind it, while that is no reading."),
				instant("held_until", "The stat escalation waits until then for the reading to be confirmed."),
			).
				phi("reported_values", 2000, "What the device or person reported, as JSON by field.").
				index("quarantine", false, "quarantine_id", "quarantine_id != ''").
				index("held", false, "held_until", "held_until != ''"),
		)
	})
}
