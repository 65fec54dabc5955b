package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Snoozes keep known breaches quiet for a while, alerts remember that they were, and who wants to be reminded of one.
func init() {
	step("1767225750_attention_care.go", func(app core.App) error {
		alerts, err := app.FindCollectionByNameOrId("alerts")
		if err != nil {
			return fmt.Errorf("find alerts: %w", err)
		}
		alerts.Fields.Add(
			flag("snoozed", "Raised while a snooze kept its kind quiet: nobody was told."),
			text("follow_up_by", 254, "E-mail address of whoever wants to be reminded."),
			flag("follow_up_told", "The reminder went out."),
		)
		alerts.AddIndex("idx_alerts_escalation", false, "escalation", "escalation != ''")
		alerts.AddIndex("idx_alerts_follow_up", false, "follow_up_at", "follow_up_required = TRUE AND follow_up_told = FALSE")
		if err := app.Save(alerts); err != nil {
			return fmt.Errorf("collection alerts: %w", err)
		}
		return newTable("snoozes").with(
			relation(app, "patient", "patients", true, ""),
			requiredChoice("type", "The kind of alert it keeps quiet.", "blood_pressure", "pulse", "weight", "pulse_oximetry", "blood_glucose"),
			flag("include_critical", "Keeps critical alerts quiet too; for four hours at most."),
			instant("ends_at", ""),
			requiredText("created_by", 254, "E-mail address."),
			instant("created_at", ""),
			instant("ended_at", "Empty until somebody ends it, or another takes its place."),
			text("ended_by", 254, "E-mail address or system."),
		).
			phi("reason", 500, "").
			index("patient", false, "patient, created_at", "").
			index("current", true, "patient, type", "ended_at = ''").
			save(app)
	})
}
