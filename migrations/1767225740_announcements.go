package migrations

import "github.com/pocketbase/pocketbase/core"

// Announcements are the outbox of notifications: stored in the transaction that makes something true, told to people after the commit.
func init() {
	step("1767225740_announcements.go", func(app core.App) error {
		return newTable("announcements").with(
			requiredText("kind", 50, ""),
			choice("severity", "", "critical", "warning", "info", "success"),
			text("patient", 36, ""),
			text("alert", 15, ""),
			text("escalation", 15, ""),
			text("billing_entry", 36, ""),
			text("user", 15, "The one person it is for, where there is one."),
			requiredText("key", 200, "One announcement per event."),
			instant("created_at", ""),
			instant("told_at", "When it was put on people's lists."),
		).
			phi("body", 5000, "What the list in the app says.").
			index("key", true, "key", "").
			index("open", false, "created_at", "told_at = ''").
			save(app)
	})
}
