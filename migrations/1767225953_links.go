package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Readings of patients whom the EMR does not know wait, apart from those that are due, until somebody says who they are there; and an EMR's copy
// that does not take its correction is a task that stays open until somebody closes it.
func init() {
	step("1767225953_links.go", func(app core.App) error {
		collection, err := app.FindCollectionByNameOrId("transmissions")
		if err != nil {
			return fmt.Errorf("find transmissions: %w", err)
		}
		collection.RemoveIndex("idx_transmissions_waiting")
		transmissions := (&table{Collection: collection}).with(
			choice("waits_for", "Empty when nothing but its time is waited for; link: the EMR does not know the patient; turn: others of the patient go first.", "link", "turn"),
			instant("correction_due_at", "Since when a person is to correct the EMR's copy; empty when nobody is."),
			instant("correction_closed_at", "When a person said that it was seen to."),
			text("correction_closed_by", 254, "E-mail address."),
			integer("correction_closed_at_change", "The count of changes that it was closed at."),
		).
			phi("correction_note", 2000, "What the person did about it.").
			index("waiting", false, "created_at, id", "status = 'pending' AND waits_for = ''").
			index("waits", false, "patient, waits_for", "waits_for != ''").
			index("corrections", false, "correction_due_at", "correction_due_at != ''")
		if err := transmissions.save(app); err != nil {
			return err
		}
		// What failed for want of a link was never at fault.
		const unlinked = `form IN ('', 'heart_rate') AND status = 'failed' AND error_code = 'patient_not_found'
			AND error_message = 'Patient has no EMR id' AND corrections = 0 AND emr_resource_id = ''`
		return execute(app,
			`UPDATE observations SET fhir_status = 'pending' WHERE fhir_status = 'failed'
				AND id IN (SELECT observation FROM transmissions WHERE `+unlinked+` AND form = '')`,
			`UPDATE transmissions SET status = 'pending', attempt_count = 0, next_retry_at = '', error_code = '', error_message = '',
				waits_for = CASE WHEN EXISTS (SELECT 1 FROM patients p WHERE p.id = transmissions.patient AND p.external_id != '') THEN 'turn' ELSE 'link' END
				WHERE `+unlinked,
		)
	})
}
