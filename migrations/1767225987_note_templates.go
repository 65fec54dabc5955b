package migrations

import "github.com/pocketbase/pocketbase/core"

// Texts that a practice writes again and again in its notes.
func init() {
	step("1767225987_note_templates.go", func(app core.App) error {
		return saveAll(app, newTable("note_templates").with(
			&core.TextField{Name: "name", Max: 100, Required: true, Presentable: true},
			requiredText("text", 2000, "Nothing of a patient: it is not encrypted, and the whole staff reads it."),
			requiredChoice("context", "Where it is offered.", "any", "alert", "escalation", "note"),
			text("updated_by", 254, "E-mail address."),
			instant("created_at", ""),
			instant("updated_at", ""),
		))
	})
}
