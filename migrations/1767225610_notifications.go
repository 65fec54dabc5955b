package migrations

import "github.com/pocketbase/pocketbase/core"

func init() {
	step("1767225610_notifications.go", func(app core.App) error {
		if err := saveAll(app, pushTokens(app), notificationPreferences(app), notifications(app)); err != nil {
			return err
		}
		return saveAll(app, pushDeliveries(app), mails(app)) // these relate to the ones before
	})
}

func pushTokens(app core.App) *table {
	t := newTable("push_tokens").with(
		relation(app, "user", "users", true, ""),
		requiredText("type", 50, "web_push, web_push_dev, development, or a kind without transport."),
		requiredText("device_id", 128, ""),
		requiredText("platform", 50, ""),
		text("app_version", 50, ""),
		flag("active", ""),
		flag("deliverable", ""),
		&core.TextField{Name: "token_hash", Max: 64, Required: true, Hidden: true},
		text("token_hint", 6, "Last characters."),
		instant("expires_at", ""),
		instant("last_delivered_at", ""),
		text("inactive_because", 50, ""),
		instant("created_at", ""),
		instant("updated_at", ""),
	).
		phi("token", 4096, "").
		index("user", false, "user, active", "").
		index("device", false, "user, device_id", "").
		index("active_token", true, "token_hash", "active = TRUE")
	t.Fields.GetByName("token").SetHidden(true)
	return t
}

func notificationPreferences(app core.App) *table {
	return newTable("notification_preferences").with(
		relation(app, "user", "users", true, ""),
		structured("channels", ""),
		structured("quiet_hours", ""),
		instant("updated_at", ""),
	).index("user", true, "user", "")
}

func notifications(app core.App) *table {
	return newTable("notifications").with(
		relation(app, "user", "users", true, ""),
		requiredChoice("channel", "", "escalations", "alerts", "reminders", "daily_digest"),
		requiredText("type", 50, ""),
		choice("severity", "", "critical", "warning", "info", "success"),
	).
		phi("title", 200, "").
		phi("body", 5000, "").
		with(
			text("patient", 36, ""),
			text("alert", 15, ""),
			text("escalation", 15, ""),
			text("billing_entry", 36, ""),
			text("dedupe_key", 200, "One notification per event and person."),
			flag("in_app", "False when the person does not want it in the list."),
			instant("due_at", "When it is to be sent."),
			instant("dispatched_at", "When its pushes were planned."),
			instant("read_at", ""),
			instant("created_at", ""),
		).
		index("user", false, "user, created_at", "").
		index("unread", false, "user, created_at", "read_at = ''").
		index("due", false, "due_at", "dispatched_at = ''").
		index("dedupe", true, "user, dedupe_key", "dedupe_key != ''")
}

func pushDeliveries(app core.App) *table {
	return newTable("push_deliveries").with(
		relation(app, "notification", "notifications", true, ""),
		relation(app, "push_token", "push_tokens", false, ""),
		relation(app, "user", "users", true, ""),
		text("type", 50, ""),
		text("title", 100, "Generic."),
		text("body", 500, "Sanitised."),
		requiredChoice("status", "", "pending", "sent", "failed", "expired_token", "skipped_quiet_hours", "skipped_preference", "no_transport"),
	).
		optional("status_code", "HTTP status of the push service.").
		with(
			integer("attempts", ""),
			instant("attempted_at", ""),
			instant("next_attempt_at", ""),
			instant("created_at", ""),
		).
		index("notification", false, "notification", "").
		index("pending", false, "next_attempt_at", "status = 'pending'").
		index("created", false, "created_at", "")
}

func mails(app core.App) *table {
	return newTable("mails").with(
		relation(app, "user", "users", false, "Whom it is for."),
		requiredText("template", 50, ""),
		requiredChoice("status", "", "pending", "sent", "failed"),
		integer("attempts", ""),
		text("error", 200, ""),
		instant("next_attempt_at", ""),
		instant("created_at", ""),
		instant("sent_at", ""),
	).
		phi("recipient", 254, "").
		phi("parameters", 5000, "What the template is filled with; emptied once sent.").
		index("pending", false, "next_attempt_at", "status = 'pending'").
		index("user", false, "user, created_at", "")
}
