package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Webhook is an external endpoint that is notified of events. Its URL and secrets are encrypted.
type Webhook struct{ datedRecord }

// Why the service disabled a webhook.
const (
	WebhookGone    = "gone"    // its receiver answered 410 Gone
	WebhookFailing = "failing" // its receiver accepted nothing for too long
	WebhookClient  = "client"  // its client was deactivated or deleted, or lost a scope
)

// WebhookValues are the values that an administrator sets.
type WebhookValues struct {
	URL           string
	Events        []string
	IncludeValues bool
	Active        bool
	ClientID      string // the client that made it; "" for an administrator
}

func (v WebhookValues) columns(now time.Time) map[string]any {
	return map[string]any{
		"url": v.URL, "events": nonNilCopy(v.Events), "include_values": v.IncludeValues, "active": v.Active, ColumnUpdatedAt: FormatInstant(now),
	}
}

// CreateWebhook stores a webhook, which is notified of changes after a position.
func CreateWebhook(tx core.App, v WebhookValues, secret string, position int64, now time.Time) (*Webhook, error) {
	values := v.columns(now)
	values["secret"], values["position"], values[ColumnCreatedAt], values["client"] = secret, position, FormatInstant(now), v.ClientID
	webhook, err := newRecord[Webhook](tx, Webhooks, nil)
	if err != nil {
		return nil, err
	}
	webhook.Id = NewUUID() // sealed values are bound to the id
	webhook.Load(values)
	return webhook, wrap(tx.Save(webhook), "store webhook")
}

// FindWebhook finds a webhook by id, if all its sealed values open.
func FindWebhook(app core.App, id string) (*Webhook, error) {
	return findReadable[Webhook](app, Webhooks, dbx.HashExp{"id": id})
}

// PageOfWebhooks returns a page of webhooks in order of creation, and the total; of those that a client made unless "".
func PageOfWebhooks(app core.App, clientID string, offset, limit int) ([]*Webhook, int, error) {
	which := AllOf(nil)
	if clientID != "" {
		which = dbx.HashExp{"client": clientID}
	}
	return pageOf[Webhook](app, Webhooks, which, []string{ColumnCreatedAt, "id"}, offset, limit)
}

// DisableWebhooksOfClient disables the webhooks that a client made.
func DisableWebhooksOfClient(tx core.App, clientID string, now time.Time) error {
	return update(tx, "disable webhooks of a client", Webhooks, dbx.Params{"active": false, "off_because": WebhookClient, ColumnUpdatedAt: FormatInstant(now)},
		dbx.HashExp{"client": clientID, "active": true})
}

// CountWebhooks counts the webhooks.
func CountWebhooks(app core.App) (int, error) { return Conditions{}.Count(app, Webhooks) }

// ChangeWebhook stores new values of a webhook. A new choice of events applies to changes after a position. A webhook that is enabled again,
// or has a new URL, starts without failures.
func ChangeWebhook(tx core.App, w *Webhook, v WebhookValues, position int64, now time.Time) error {
	before := w.Values()
	again := v.Active && (!before.Active || v.URL != before.URL)
	w.Load(v.columns(now))
	w.Set("position", max(position, w.Position()))
	if v.Active {
		w.Set("off_because", "")
	}
	if again {
		since := w.GetString("failing_since")
		if earlier := w.GetString("again_since"); since == "" || earlier != "" && earlier < since {
			since = earlier
		}
		w.Load(map[string]any{"paused_until": "", "again_since": since, "again_anew": true, "failing_since": "", "told_at": ""})
	}
	return wrap(tx.Save(w), "change webhook")
}

// ReplaceWebhookSecret replaces the secret of a webhook. The previous one also signs until a time.
func ReplaceWebhookSecret(tx core.App, w *Webhook, secret string, until, now time.Time) error {
	w.Set("previous_secret", w.Secret())
	w.Set("previous_until", FormatInstant(until))
	w.Set("secret", secret)
	w.Set(ColumnUpdatedAt, FormatInstant(now))
	return wrap(tx.Save(w), "replace the webhook's secret")
}

// RemoveWebhook deletes a webhook; [RemoveWebhookOrphans] deletes its deliveries.
func RemoveWebhook(tx core.App, w *Webhook) error { return wrap(tx.Delete(w), "remove webhook") }

// Values returns the values that an administrator set.
func (w *Webhook) Values() WebhookValues {
	return WebhookValues{URL: w.GetString("url"), Events: w.GetStringSlice("events"), IncludeValues: w.GetBool("include_values"), Active: w.Active(), ClientID: w.GetString("client")}
}

func (w *Webhook) Position() int64            { return int64(w.GetInt("position")) }
func (w *Webhook) Active() bool               { return w.GetBool("active") }
func (w *Webhook) DisabledReason() string     { return w.GetString("off_because") }
func (w *Webhook) Secret() string             { return w.GetString("secret") }
func (w *Webhook) FailingSince() time.Time    { return instantOf(w, "failing_since") }
func (w *Webhook) LastDeliveredAt() time.Time { return instantOf(w, "last_delivered_at") }

// PreviousSecret returns the previous secret while it still signs, else "".
func (w *Webhook) PreviousSecret(now time.Time) string {
	if !now.Before(instantOf(w, "previous_until")) {
		return ""
	}
	return w.GetString("previous_secret")
}

// WebhookState is the unsealed part of a webhook that its worker needs.
type WebhookState struct {
	ID           string `db:"id"`
	Active       bool   `db:"active"`
	Events       string `db:"events"` // a JSON list
	Position     int64  `db:"position"`
	FailingSince string `db:"failing_since"`
	NotifiedAt   string `db:"told_at"`
	PausedUntil  string `db:"paused_until"`
	ResendSince  string `db:"again_since"`
	ResendAsNew  bool   `db:"again_anew"`
}

const webhookStateColumns = `id, active, events, position, failing_since, told_at, paused_until, again_since, again_anew`

// ActiveWebhooks returns the enabled webhooks.
func ActiveWebhooks(app core.App) ([]WebhookState, error) {
	return queryAll[WebhookState](app, "list webhooks", `SELECT `+webhookStateColumns+` FROM webhooks WHERE active ORDER BY id`, nil)
}

// FindWebhookState finds the state of a webhook.
func FindWebhookState(app core.App, id string) (lane WebhookState, err error) {
	err = app.DB().NewQuery(`SELECT ` + webhookStateColumns + ` FROM webhooks WHERE id = {:id}`).Bind(dbx.Params{"id": id}).One(&lane)
	return lane, wrap(err, "find webhook")
}

// AdvanceWebhook moves a webhook's position, if it is still enabled with the same events and position.
func AdvanceWebhook(tx core.App, id, events string, from, to int64) (moved bool, err error) {
	n, err := updateCounted(tx, "advance webhook", Webhooks, dbx.Params{"position": to}, dbx.HashExp{"id": id, "position": from, "events": events, "active": true})
	return n > 0, err
}

// RecordWebhookSuccess records an accepted delivery. Deliveries that failed during a long outage are marked to be sent again.
func RecordWebhookSuccess(tx core.App, id string, longAgo, now time.Time) error {
	return exec(tx, "record webhook success", `UPDATE webhooks SET last_delivered_at = {:now}, paused_until = '',
			again_since = CASE WHEN failing_since != '' AND failing_since <= {:long} AND (again_since = '' OR failing_since < again_since) THEN failing_since ELSE again_since END,
			failing_since = '' WHERE id = {:id} AND (failing_since != '' OR paused_until != '' OR last_delivered_at < {:stale})`,
		dbx.Params{"id": id, "now": FormatInstant(now), "long": FormatInstant(longAgo), "stale": FormatInstant(now.Add(-time.Minute))})
}

// RecordWebhookFailure records a failed delivery, and until when the receiver requests a pause; zero for no pause.
func RecordWebhookFailure(tx core.App, id string, began, pausedUntil time.Time) error {
	return exec(tx, "record webhook failure", `UPDATE webhooks SET
			failing_since = CASE WHEN failing_since = '' OR failing_since > {:began} THEN {:began} ELSE failing_since END,
			paused_until = CASE WHEN {:paused} > paused_until THEN {:paused} ELSE paused_until END WHERE id = {:id}`,
		dbx.Params{"id": id, "began": FormatInstant(began), "paused": FormatInstant(pausedUntil)})
}

// DisableWebhook disables a webhook; false if it was already disabled or deleted.
func DisableWebhook(tx core.App, id, because string, now time.Time) (disabled bool, err error) {
	n, err := updateCounted(tx, "disable webhook", Webhooks, dbx.Params{"active": false, "off_because": because, ColumnUpdatedAt: FormatInstant(now)},
		dbx.HashExp{"id": id, "active": true})
	return n > 0, err
}

// MarkWebhookNotified records that administrators were notified of a failing webhook.
func MarkWebhookNotified(tx core.App, id string, now time.Time) error {
	return update(tx, "mark webhook notified", Webhooks, dbx.Params{"told_at": FormatInstant(now)}, dbx.HashExp{"id": id})
}

// EndWebhookResend records that all deliveries that failed since a time are queued again.
func EndWebhookResend(tx core.App, id, since string) error {
	return update(tx, "end webhook resend", Webhooks, dbx.Params{"again_since": "", "again_anew": false}, dbx.HashExp{"id": id, "again_since": since})
}

// CountDisabledWebhooks counts the webhooks that the service disabled, and the enabled ones that fail.
func CountDisabledWebhooks(app core.App) (disabled, failing int, err error) {
	err = app.ConcurrentDB().NewQuery(`SELECT COALESCE(SUM(active = FALSE AND off_because != ''), 0), COALESCE(SUM(active AND failing_since != ''), 0) FROM webhooks`).Row(&disabled, &failing)
	return disabled, failing, wrap(err, "count webhooks")
}
