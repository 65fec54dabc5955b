package migrations

import "github.com/pocketbase/pocketbase/core"

// Keys under which callers make sure that what they ask for is done once, and what they were answered.
func init() {
	step("1767225972_idempotency_keys.go", func(app core.App) error {
		keys := newTable("idempotency_keys").with(
			requiredText("request", 43, "Keyed hash of what was asked for."),
			instant("created_at", "When it was asked for."),
		).phi("answer", 8<<20, "What was answered; empty when that is not known.").
			index("created", false, "created_at", "")
		id := keys.Fields.GetByName("id").(*core.TextField)
		id.Min, id.Max, id.Pattern, id.AutogeneratePattern = 43, 43, `^[A-Za-z0-9_-]+$`, `[A-Za-z0-9_-]{43}`
		id.Help = "Keyed hash of the caller and the key."
		return keys.save(app)
	})
}
