package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Who is on call, how far an escalation that nobody took has come, and what happened with it step by step.
func init() {
	step("1767225935_on_call.go", func(app core.App) error {
		escalations, err := app.FindCollectionByNameOrId("escalations")
		if err != nil {
			return fmt.Errorf("find escalations: %w", err)
		}
		return saveAll(app,
			(&table{Collection: escalations}).with(
				integer("tier", "0 the care team, 1 who is on call, 2 the clinical managers, 3 they and the administrators."),
				instant("waits_since", "Since when somebody has had to take it; empty for since it was opened."),
				instant("tier_at", "When the last tier was told last."),
				text("on_call", 15, "Who was told as the one on call."),
				instant("noted_at", "When the work began or changed hands, or the last note was made."),
				instant("reminded_at", "When people were last reminded of work without a note."),
			),
			escalationEvents(), onCallRota(),
		)
	})
}

// escalationEvents are the steps of escalations. How one was opened and ended stands in its own row.
func escalationEvents() *table {
	return newTable("escalation_events").with(
		requiredText("escalation", 15, ""),
		instant("at", ""),
		requiredText("event", 30, "assigned, in_progress, priority, note, alert_joined, overdue, tier_1, tier_2, tier_3, handed_over, reminded."),
		requiredText("user", 254, "E-mail address or system."),
	).
		phi("detail", 5000, "The note, or what the step was.").
		index("escalation", false, "escalation, id", "")
}

// onCallRota is one row: the practice's.
func onCallRota() *table {
	return newTable("on_call_rota").with(
		requiredText("time_zone", 64, "IANA name; the shifts are in it."),
		structured("shifts", `Every week: {"weekday":0 for Monday,"start":"19:00","end":"07:00","user":"000000000000003"}.`),
		structured("overrides", `Go before the shifts: {"starts_at":"","ends_at":"","user":"000000000000003"}.`),
		instant("updated_at", ""),
		text("updated_by", 254, "E-mail address."),
	)
}
