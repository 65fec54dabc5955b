package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// States of a webhook delivery.
const (
	WebhookPending   = "pending"
	WebhookDelivered = "delivered"
	WebhookFailed    = "failed"
)

// WebhookDelivery is one event for one webhook. Its id is the same in every request.
type WebhookDelivery struct {
	ID        string `db:"id"`
	Webhook   string `db:"webhook"`
	Seq       int64  `db:"seq"`
	Event     string `db:"event"`
	Record    string `db:"record"` // id in the API
	Patient   string `db:"patient"`
	Queue     string `db:"queue"`
	Status    string `db:"status"`
	Blocked   bool   `db:"waits"`
	DueAt     string `db:"due_at"`
	Attempts  int    `db:"attempts"`
	Spent     int    `db:"spent"` // attempts that do not count against the retries
	Code      int    `db:"status_code"`
	Error     string `db:"error"`
	Occurred  string `db:"occurred_at"`
	FirstAt   string `db:"first_attempt_at"`
	LastAt    string `db:"last_attempt_at"`
	Delivered string `db:"delivered_at"`
	CreatedAt string `db:"created_at"`
}

const webhookDelivery = `id, webhook, seq, event, record, patient, queue, status, waits, due_at, attempts, spent, status_code, error, occurred_at,
	first_attempt_at, last_attempt_at, delivered_at, created_at`

// QueueWebhookDelivery queues a change for a webhook, unless it is queued already.
func QueueWebhookDelivery(tx core.App, d WebhookDelivery, now time.Time) error {
	return exec(tx, "queue for webhook", `INSERT INTO webhook_deliveries (id, webhook, seq, event, record, patient, queue, status, waits, due_at, occurred_at, created_at)
		VALUES ({:id}, {:webhook}, {:seq}, {:event}, {:record}, {:patient}, {:queue}, 'pending',
			EXISTS (SELECT 1 FROM webhook_deliveries WHERE webhook = {:webhook} AND queue = {:queue} AND status = 'pending'), {:now}, {:occurred}, {:now})
		ON CONFLICT DO NOTHING`, dbx.Params{
		"id": NewUUID(), "webhook": d.Webhook, "seq": d.Seq, "event": d.Event, "record": d.Record, "patient": d.Patient, "queue": d.Queue,
		"occurred": d.Occurred, "now": FormatInstant(now),
	})
}

// StoreWebhookTest stores a finished test delivery.
func StoreWebhookTest(tx core.App, d WebhookDelivery) error {
	return insert(tx, "store test of webhook", WebhookDeliveries, dbx.Params{
		"id": d.ID, "webhook": d.Webhook, "event": d.Event, "record": d.Record, "queue": d.Queue, "status": d.Status, "attempts": d.Attempts,
		"status_code": d.Code, "error": d.Error, "occurred_at": d.Occurred, "first_attempt_at": d.FirstAt, "last_attempt_at": d.LastAt,
		"delivered_at": d.Delivered, "created_at": d.CreatedAt,
	})
}

// WebhookDeliveriesDue returns up to limit deliveries that can be sent to a webhook now, the first of each queue, longest due first.
func WebhookDeliveriesDue(app core.App, webhook string, now time.Time, limit int) ([]WebhookDelivery, error) {
	return queryAll[WebhookDelivery](app, "find due deliveries", `SELECT `+webhookDelivery+` FROM webhook_deliveries
		WHERE webhook = {:webhook} AND status = 'pending' AND waits = FALSE AND due_at <= {:now} ORDER BY due_at, seq LIMIT +{:limit}`,
		dbx.Params{"webhook": webhook, "now": FormatInstant(now), "limit": limit})
}

// NextWebhookDelivery returns when a webhook's next delivery after a time is due, or zero.
func NextWebhookDelivery(app core.App, webhook string, now time.Time) (time.Time, error) {
	at, err := queryValue[string](app, "find the next delivery", `SELECT COALESCE(MIN(due_at), '') FROM webhook_deliveries
		WHERE webhook = {:webhook} AND status = 'pending' AND waits = FALSE AND due_at > {:now}`, dbx.Params{"webhook": webhook, "now": FormatInstant(now)})
	return ParseInstant(at), err
}

// WebhookAttemptResult is the result of an attempt.
type WebhookAttemptResult struct {
	Status, Error    string
	Code             int
	DueAt            time.Time // next attempt of a pending delivery
	StartedAt, Ended time.Time
}

// StoreWebhookResult stores the result of an attempt. If the delivery is no longer pending, the next one of its queue can be sent.
func StoreWebhookResult(tx core.App, d WebhookDelivery, e WebhookAttemptResult) error {
	delivered := ""
	if e.Status == WebhookDelivered {
		delivered = FormatInstant(e.Ended)
	}
	err := exec(tx, "store delivery result", `UPDATE webhook_deliveries SET status = {:status}, error = {:error}, status_code = {:code}, due_at = {:due},
			attempts = attempts + 1, last_attempt_at = {:started}, delivered_at = {:delivered},
			first_attempt_at = CASE WHEN first_attempt_at = '' THEN {:started} ELSE first_attempt_at END WHERE id = {:id} AND status = 'pending'`,
		dbx.Params{
			"id": d.ID, "status": e.Status, "error": e.Error, "code": e.Code, "due": FormatInstant(e.DueAt), "started": FormatInstant(e.StartedAt), "delivered": delivered,
		})
	if err != nil || e.Status == WebhookPending {
		return err
	}
	return exec(tx, "unblock the next delivery", `UPDATE webhook_deliveries SET waits = FALSE WHERE waits AND id =
			(SELECT id FROM webhook_deliveries WHERE webhook = {:webhook} AND queue = {:queue} AND status = 'pending' ORDER BY seq LIMIT 1)`,
		dbx.Params{"webhook": d.Webhook, "queue": d.Queue})
}

// orderQueue unblocks only the first delivery of a queue.
func orderQueue(tx core.App, webhook, queue string) error {
	return exec(tx, "order deliveries", `UPDATE webhook_deliveries SET waits = seq > (SELECT MIN(seq) FROM webhook_deliveries
			WHERE webhook = {:webhook} AND queue = {:queue} AND status = 'pending') WHERE webhook = {:webhook} AND queue = {:queue} AND status = 'pending'`,
		dbx.Params{"webhook": webhook, "queue": queue})
}

// RequeueWebhookDelivery makes a delivery due now, with a full retry budget.
func RequeueWebhookDelivery(tx core.App, d WebhookDelivery, now time.Time) error {
	err := exec(tx, "requeue delivery", `UPDATE webhook_deliveries SET status = 'pending', due_at = {:now}, spent = attempts, delivered_at = '' WHERE id = {:id}`,
		dbx.Params{"id": d.ID, "now": FormatInstant(now)})
	if err != nil {
		return err
	}
	return orderQueue(tx, d.Webhook, d.Queue)
}

// RequeueFailedWebhookDeliveries makes up to limit of a webhook's deliveries due that failed since a time, and returns their number. Each gets
// one attempt; with asNew it gets the full number of retries and counts as never sent.
func RequeueFailedWebhookDeliveries(tx core.App, webhook, since string, asNew bool, retries int, now time.Time, limit int) (int, error) {
	queues, err := queryColumn[string](tx, "requeue deliveries", `UPDATE webhook_deliveries SET status = 'pending', due_at = {:now},
			spent = CASE WHEN {:asNew} THEN attempts ELSE attempts - {:retries} END, first_attempt_at = CASE WHEN {:asNew} THEN '' ELSE first_attempt_at END
		WHERE id IN (SELECT id FROM webhook_deliveries WHERE webhook = {:webhook} AND status = 'failed' AND seq > 0 AND first_attempt_at >= {:since} LIMIT +{:limit})
		RETURNING queue`, dbx.Params{
		"webhook": webhook, "since": since, "asNew": asNew, "retries": retries, "now": FormatInstant(now), "limit": limit,
	})
	if err != nil {
		return 0, err
	}
	for queue := range setOf(queues) {
		if err := orderQueue(tx, webhook, queue); err != nil {
			return 0, err
		}
	}
	return len(queues), nil
}

// ExpediteWebhookDeliveries makes a webhook's scheduled retries due now if their first attempt was since a time.
func ExpediteWebhookDeliveries(tx core.App, webhook, since string, now time.Time) error {
	return exec(tx, "expedite deliveries", `UPDATE webhook_deliveries SET due_at = {:now}
		WHERE webhook = {:webhook} AND status = 'pending' AND waits = FALSE AND due_at > {:now} AND first_attempt_at >= {:since}`,
		dbx.Params{"webhook": webhook, "since": since, "now": FormatInstant(now)})
}

// RestartWebhookDeliveries makes a webhook's pending retries due now, as if they had never been sent.
func RestartWebhookDeliveries(tx core.App, webhook string, now time.Time) error {
	return exec(tx, "restart deliveries", `UPDATE webhook_deliveries SET due_at = {:now}, spent = attempts, first_attempt_at = ''
		WHERE webhook = {:webhook} AND status = 'pending' AND waits = FALSE AND attempts > 0`, dbx.Params{"webhook": webhook, "now": FormatInstant(now)})
}

// RemoveWebhookOrphans deletes up to limit deliveries of deleted webhooks and returns their number.
func RemoveWebhookOrphans(tx core.App, limit int) (int64, error) {
	return execCounted(tx, "remove deliveries", `DELETE FROM webhook_deliveries WHERE id IN
		(SELECT id FROM webhook_deliveries WHERE webhook NOT IN (SELECT id FROM webhooks) LIMIT +{:limit})`, dbx.Params{"limit": limit})
}

// FindWebhookDelivery finds a delivery of an existing webhook.
func FindWebhookDelivery(app core.App, id string) (d WebhookDelivery, err error) {
	err = app.DB().NewQuery(`SELECT ` + webhookDelivery + ` FROM webhook_deliveries WHERE id = {:id} AND webhook IN (SELECT id FROM webhooks)`).
		Bind(dbx.Params{"id": id}).One(&d)
	return d, wrap(err, "find delivery")
}

// PageOfWebhookDeliveries returns a page of a webhook's deliveries, newest first, and the total; status "" selects all.
func PageOfWebhookDeliveries(app core.App, webhook, status string, offset, limit int) (page []WebhookDelivery, total int, err error) {
	where := Conditions{dbx.HashExp{"webhook": webhook}}.Equal("status", status)
	return pageOfRows[WebhookDelivery](app, WebhookDeliveries, []string{"*"}, where, []string{"created_at DESC", "id DESC"}, offset, limit)
}

// CountFailedWebhookDeliveries counts the failed deliveries, without tests.
func CountFailedWebhookDeliveries(app core.App) (count int, err error) {
	err = app.ConcurrentDB().NewQuery(`SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'failed' AND seq > 0`).Row(&count)
	return count, wrap(err, "count failed deliveries")
}
