package migrations

import "github.com/pocketbase/pocketbase/core"

// Whom the service tells what happens, and what each was told.
func init() {
	step("1767225971_webhooks.go", func(app core.App) error {
		return saveAll(app, webhooks(), webhookDeliveries())
	})
}

func webhooks() *table {
	return newTable("webhooks").withUUID().
		phi("url", 2048, "Where requests go; it may hold a secret of the receiver's.").
		custom(signingSecret("secret", "What requests are signed with.")).
		custom(signingSecret("previous_secret", "What they are signed with, too, for a while after it was replaced.")).
		with(
			instant("previous_until", "How long the previous secret signs."),
			structured("events", "What it is told of."),
			flag("include_values", "Requests hold the object, not only its id."),
			flag("active", ""),
			choice("off_because", "Why the service has put it out of use; empty when a person has.", "gone", "failing"),
			integer("position", "The last change that it was looked at for."),
			instant("failing_since", "The first failure since the last success."),
			instant("told_at", "When administrators were told of that."),
			instant("paused_until", "The receiver has asked not to be sent anything until then."),
			instant("again_since", "What the receiver has not taken since then is to be sent again."),
			flag("again_anew", "As if it had never been sent; once otherwise."),
			instant("last_delivered_at", ""),
			instant("created_at", ""),
			instant("updated_at", ""),
		).index("created", false, "created_at, id", "")
}

// signingSecret is text that is encrypted and shown to nobody.
func signingSecret(name, help string) map[string]any {
	return map[string]any{"type": "phi", "name": name, "max": 100, "purpose": "webhooks." + name, "help": sentence(help, "Encrypted at rest."), "hidden": true}
}

func webhookDeliveries() *table {
	return newTable("webhook_deliveries").withUUID().with(
		requiredText("webhook", 36, "The webhook, which may be removed before it."),
		integer("seq", "The change that it tells of; 0 for a test."),
		requiredText("event", 40, ""),
		text("record", 64, "What the event is about, as the API names it."),
		text("patient", 36, "Whom it is about."),
		text("queue", 120, "What is told in order: a patient's events, or those of one object."),
		requiredChoice("status", "", "pending", "delivered", "failed"),
		flag("waits", "An earlier one of its queue is to be delivered first."),
		instant("due_at", "When it is sent, if it does not wait."),
		integer("attempts", "Requests that have ended."),
		integer("spent", "Those of them that are not counted against the retries."),
		integer("status_code", "The last answer of the receiver; 0 for none."),
		text("error", 40, "Why the last request failed, in a word."),
		instant("occurred_at", "When the event happened."),
		instant("first_attempt_at", ""),
		instant("last_attempt_at", ""),
		instant("delivered_at", ""),
		instant("created_at", ""),
	).
		index("change", true, "webhook, seq", "seq > 0").
		index("due", false, "webhook, due_at, seq", "status = 'pending' AND waits = FALSE").
		index("queue", false, "webhook, queue, seq, created_at", "status = 'pending'").
		index("failed", false, "webhook, first_attempt_at", "status = 'failed'").
		index("log", false, "webhook, created_at, id", "").
		index("ended", false, "created_at", "status != 'pending'")
}
