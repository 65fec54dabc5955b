package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Webhook is a receiver of another's that is told what happens. Its address and its secrets are encrypted.
type Webhook struct{ dated }

// Why the service has put a webhook out of use.
const (
	WebhookGone    = "gone"    // its receiver said so
	WebhookFailing = "failing" // it took nothing for too long
)

// WebhookValues are what an administrator says of a webhook.
type WebhookValues struct {
	URL           string
	Events        []string
	IncludeValues bool
	Active        bool
}

func (v WebhookValues) columns(now time.Time) map[string]any {
	return map[string]any{
		"url": v.URL, "events": list(v.Events), "include_values": v.IncludeValues, "active": v.Active, ColumnUpdatedAt: Instant(now),
	}
}

// CreateWebhook stores a webhook, which is told of what changes after a position.
func CreateWebhook(tx core.App, v WebhookValues, secret string, position int64, now time.Time) (*Webhook, error) {
	values := v.columns(now)
	values["secret"], values["position"], values[ColumnCreatedAt] = secret, position, Instant(now)
	webhook, err := fresh[Webhook](tx, Webhooks, nil)
	if err != nil {
		return nil, err
	}
	webhook.Id = NewUUID() // what is sealed is bound to it
	webhook.Load(values)
	return webhook, wrap(tx.Save(webhook), "store webhook")
}

// FindWebhook finds a webhook by id, if all of it can be read.
func FindWebhook(app core.App, id string) (*Webhook, error) {
	return findWhole[Webhook](app, Webhooks, dbx.HashExp{"id": id})
}

// PageOfWebhooks returns a page of the webhooks in the order in which they were made, and how many there are in all.
func PageOfWebhooks(app core.App, offset, limit int) ([]*Webhook, int, error) {
	return pageOf[Webhook](app, Webhooks, Every(nil), []string{ColumnCreatedAt, "id"}, offset, limit)
}

// CountWebhooks counts the webhooks there are.
func CountWebhooks(app core.App) (int, error) { return Conditions{}.Count(app, Webhooks) }

// ChangeWebhook stores what is said of a webhook. Other events hold for what changes after a position. One that is put to use again, or has another
// address, begins as if it had never failed.
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

// ReplaceWebhookSecret gives a webhook another secret; the one before signs, too, until a time.
func ReplaceWebhookSecret(tx core.App, w *Webhook, secret string, until, now time.Time) error {
	w.Set("previous_secret", w.Secret())
	w.Set("previous_until", Instant(until))
	w.Set("secret", secret)
	w.Set(ColumnUpdatedAt, Instant(now))
	return wrap(tx.Save(w), "replace the webhook's secret")
}

// RemoveWebhook removes a webhook; what was for it goes with [RemoveWebhookOrphans].
func RemoveWebhook(tx core.App, w *Webhook) error { return wrap(tx.Delete(w), "remove webhook") }

// Values are what an administrator has said of the webhook.
func (w *Webhook) Values() WebhookValues {
	return WebhookValues{URL: w.GetString("url"), Events: w.GetStringSlice("events"), IncludeValues: w.GetBool("include_values"), Active: w.Active()}
}

func (w *Webhook) Position() int64            { return int64(w.GetInt("position")) }
func (w *Webhook) Active() bool               { return w.GetBool("active") }
func (w *Webhook) OffBecause() string         { return w.GetString("off_because") }
func (w *Webhook) Secret() string             { return w.GetString("secret") }
func (w *Webhook) FailingSince() time.Time    { return instantOf(w, "failing_since") }
func (w *Webhook) LastDeliveredAt() time.Time { return instantOf(w, "last_delivered_at") }

// PreviousSecret is the one that signs, too; "" for none.
func (w *Webhook) PreviousSecret(now time.Time) string {
	if !now.Before(instantOf(w, "previous_until")) {
		return ""
	}
	return w.GetString("previous_secret")
}

// WebhookLane is what sending to a webhook goes by, beside what is sealed.
type WebhookLane struct {
	ID           string `db:"id"`
	Active       bool   `db:"active"`
	Events       string `db:"events"` // a JSON list
	Position     int64  `db:"position"`
	FailingSince string `db:"failing_since"`
	ToldAt       string `db:"told_at"`
	PausedUntil  string `db:"paused_until"`
	AgainSince   string `db:"again_since"`
	AgainAnew    bool   `db:"again_anew"`
}

const webhookLane = `id, active, events, position, failing_since, told_at, paused_until, again_since, again_anew`

// ActiveWebhooks are those in use.
func ActiveWebhooks(app core.App) ([]WebhookLane, error) {
	return queryAll[WebhookLane](app, "list webhooks", `SELECT `+webhookLane+` FROM webhooks WHERE active ORDER BY id`, nil)
}

// FindWebhookLane finds what sending to a webhook goes by.
func FindWebhookLane(app core.App, id string) (lane WebhookLane, err error) {
	err = app.DB().NewQuery(`SELECT ` + webhookLane + ` FROM webhooks WHERE id = {:id}`).Bind(dbx.Params{"id": id}).One(&lane)
	return lane, wrap(err, "find webhook")
}

// MoveWebhook notes how far a webhook has come that is as it was: in use, asking for these events and at that position.
func MoveWebhook(tx core.App, id, events string, from, to int64) (moved bool, err error) {
	n, err := updateCounted(tx, "move webhook", Webhooks, dbx.Params{"position": to}, dbx.HashExp{"id": id, "position": from, "events": events, "active": true})
	return n > 0, err
}

// NoteWebhookTook notes that a webhook's receiver took something. What failed while it took nothing is sent again when that was for long.
func NoteWebhookTook(tx core.App, id string, longAgo, now time.Time) error {
	return exec(tx, "note delivery", `UPDATE webhooks SET last_delivered_at = {:now}, paused_until = '',
			again_since = CASE WHEN failing_since != '' AND failing_since <= {:long} AND (again_since = '' OR failing_since < again_since) THEN failing_since ELSE again_since END,
			failing_since = '' WHERE id = {:id} AND (failing_since != '' OR paused_until != '' OR last_delivered_at < {:stale})`,
		dbx.Params{"id": id, "now": Instant(now), "long": Instant(longAgo), "stale": Instant(now.Add(-time.Minute))})
}

// NoteWebhookFailed notes that a webhook's receiver took something not, and until when it asks for nothing more; a zero time is no such wish.
func NoteWebhookFailed(tx core.App, id string, began, pausedUntil time.Time) error {
	return exec(tx, "note failure", `UPDATE webhooks SET
			failing_since = CASE WHEN failing_since = '' OR failing_since > {:began} THEN {:began} ELSE failing_since END,
			paused_until = CASE WHEN {:paused} > paused_until THEN {:paused} ELSE paused_until END WHERE id = {:id}`,
		dbx.Params{"id": id, "began": Instant(began), "paused": Instant(pausedUntil)})
}

// SwitchWebhookOff puts a webhook out of use; false when it was already, or is no more.
func SwitchWebhookOff(tx core.App, id, because string, now time.Time) (switched bool, err error) {
	n, err := updateCounted(tx, "switch webhook off", Webhooks, dbx.Params{"active": false, "off_because": because, ColumnUpdatedAt: Instant(now)},
		dbx.HashExp{"id": id, "active": true})
	return n > 0, err
}

// NoteWebhookTold notes that administrators were told that a webhook fails.
func NoteWebhookTold(tx core.App, id string, now time.Time) error {
	return update(tx, "note what was told", Webhooks, dbx.Params{"told_at": Instant(now)}, dbx.HashExp{"id": id})
}

// EndWebhookAgain notes that all that failed since a time waits to be sent again.
func EndWebhookAgain(tx core.App, id, since string) error {
	return update(tx, "end repetition", Webhooks, dbx.Params{"again_since": "", "again_anew": false}, dbx.HashExp{"id": id, "again_since": since})
}

// WebhooksOff counts the webhooks that the service has put out of use, and those in use whose receivers take nothing.
func WebhooksOff(app core.App) (off, failing int, err error) {
	err = app.ConcurrentDB().NewQuery(`SELECT COALESCE(SUM(active = FALSE AND off_because != ''), 0), COALESCE(SUM(active AND failing_since != ''), 0) FROM webhooks`).Row(&off, &failing)
	return off, failing, wrap(err, "count webhooks")
}
