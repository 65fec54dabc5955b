package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/limits"
	"github.com/vigilhealth/vigil/internal/webhooks"
	"github.com/vigilhealth/vigil/routes/web"
)

// webhookRows are the receivers of others that are told what happens, and what each was told.
func webhookRows() []route {
	return []route{
		{http.MethodGet, "/webhooks/", access.ManageWebhooks, limits.User, (*api).listWebhooks},
		{http.MethodPost, "/webhooks/", access.ManageWebhooks, limits.User, (*api).createWebhook},
		{http.MethodGet, "/webhooks/{id}/", access.ManageWebhooks, limits.User, of(byUUID(collections.FindWebhook), (*api).readWebhook)},
		{http.MethodPatch, "/webhooks/{id}/", access.ManageWebhooks, limits.User, of(byUUID(collections.FindWebhook), (*api).changeWebhook)},
		{http.MethodDelete, "/webhooks/{id}/", access.ManageWebhooks, limits.User, of(byUUID(collections.FindWebhook), (*api).deleteWebhook)},
		{http.MethodPost, "/webhooks/{id}/test/", access.ManageWebhooks, limits.User, of(byUUID(collections.FindWebhook), (*api).testWebhook)},
		{http.MethodPost, "/webhooks/{id}/rotate-secret/", access.ManageWebhooks, limits.User, of(byUUID(collections.FindWebhook), (*api).rotateWebhookSecret)},
		{http.MethodGet, "/webhooks/{id}/deliveries/", access.ManageWebhooks, limits.User, of(byUUID(collections.FindWebhook), (*api).listWebhookDeliveries)},
		{http.MethodPost, "/webhooks/deliveries/{id}/retry/", access.ManageWebhooks, limits.User, (*api).retryWebhookDelivery},
	}
}

// Outgoing is what takes data to others: webhooks and bulk exports.
type Outgoing struct {
	Webhooks *webhooks.Engine
	Exports  *exportEngine
}

type webhookView struct {
	ID              string   `json:"id"`
	URL             string   `json:"url"`
	Events          []string `json:"events"`
	Active          bool     `json:"active"`
	IncludeValues   bool     `json:"include_values"`
	OffBecause      *string  `json:"off_because"`
	FailingSince    *string  `json:"failing_since"`
	LastDeliveredAt *string  `json:"last_delivered_at"`
	CreatedAt       *string  `json:"created_at"`
	UpdatedAt       *string  `json:"updated_at"`
}

func viewWebhook(w *collections.Webhook) webhookView {
	v := w.Values()
	return webhookView{
		ID: w.Id, URL: v.URL, Events: append([]string{}, v.Events...), Active: v.Active, IncludeValues: v.IncludeValues,
		OffBecause: orNull(w.OffBecause()), FailingSince: instantOrNull(w.FailingSince()), LastDeliveredAt: instantOrNull(w.LastDeliveredAt()),
		CreatedAt: instantOrNull(w.CreatedAt()), UpdatedAt: instantOrNull(w.UpdatedAt()),
	}
}

// webhookSecretView is a webhook with its secret, which nothing shows again.
type webhookSecretView struct {
	webhookView
	Secret string `json:"secret"`
}

func viewWebhookSecret(made webhooks.Secret) webhookSecretView {
	return webhookSecretView{viewWebhook(made.Webhook), made.Secret}
}

type webhookDeliveryView struct {
	ID            string  `json:"id"`
	WebhookID     string  `json:"webhook_id"`
	Event         string  `json:"event"`
	ObjectID      string  `json:"object_id"`
	PatientID     *string `json:"patient_id"`
	Status        string  `json:"status"`
	Attempts      int     `json:"attempts"`
	StatusCode    *int    `json:"status_code"`
	Error         *string `json:"error"`
	NextRetryAt   *string `json:"next_retry_at"`
	OccurredAt    *string `json:"occurred_at"`
	LastAttemptAt *string `json:"last_attempt_at"`
	DeliveredAt   *string `json:"delivered_at"`
	CreatedAt     string  `json:"created_at"`
}

// viewWebhookDelivery shows when a delivery is tried again; one that waits for its webhook to be switched on, or for another, has no such time.
func viewWebhookDelivery(active bool) func(collections.WebhookDelivery) webhookDeliveryView {
	return func(d collections.WebhookDelivery) webhookDeliveryView {
		view := webhookDeliveryView{
			ID: d.ID, WebhookID: d.Webhook, Event: d.Event, ObjectID: d.Record, PatientID: orNull(d.Patient), Status: d.Status, Attempts: d.Attempts,
			Error: orNull(d.Error), OccurredAt: instantOf(d.Occurred), LastAttemptAt: instantOf(d.LastAt), DeliveredAt: instantOf(d.Delivered),
			CreatedAt: input.FormatInstant(collections.ParseInstant(d.CreatedAt)),
		}
		if d.Code != 0 {
			view.StatusCode = &d.Code
		}
		if active && d.Status == collections.WebhookPending && d.Attempts > 0 && !d.Waits {
			view.NextRetryAt = instantOf(d.DueAt)
		}
		return view
	}
}

func (a *api) listWebhooks(c *web.Call) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	page, total, err := collections.PageOfWebhooks(c.App, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableOnly(page)
	return web.List(c, p, total, web.Views(page, viewWebhook), unreadable)
}

func (a *api) createWebhook(c *web.Call) error {
	draft, err := web.Read(c, func(body webhooks.Body, checks *input.Checks) webhooks.Draft { return a.Webhooks.ReadNew(body, checks) })
	if err != nil {
		return err
	}
	return web.Show(c.Created, viewWebhookSecret)(a.Webhooks.Create(c.App, draft, c.Actor(), c.Now))
}

func (a *api) readWebhook(c *web.Call, webhook *collections.Webhook) error {
	return c.OK(viewWebhook(webhook))
}

func (a *api) changeWebhook(c *web.Call, webhook *collections.Webhook) error {
	draft, err := web.Read(c, func(body webhooks.Body, checks *input.Checks) webhooks.Draft {
		return a.Webhooks.ReadChange(body, checks)
	})
	if err != nil {
		return err
	}
	return web.Show(c.OK, viewWebhook)(a.Webhooks.Change(c.App, webhook.Id, draft, c.Actor(), c.Now))
}

func (a *api) deleteWebhook(c *web.Call, webhook *collections.Webhook) error {
	return c.Done(a.Webhooks.Delete(c.App, webhook.Id, c.Actor(), c.Now))
}

func (a *api) testWebhook(c *web.Call, webhook *collections.Webhook) error {
	return web.Show(c.OK, viewWebhookDelivery(true))(a.Webhooks.Test(c.Request.Context(), c.App, webhook.Id, c.Actor(), c.Now))
}

func (a *api) rotateWebhookSecret(c *web.Call, webhook *collections.Webhook) error {
	return web.Show(c.OK, viewWebhookSecret)(a.Webhooks.RotateSecret(c.App, webhook.Id, c.Actor(), c.Now))
}

func (a *api) listWebhookDeliveries(c *web.Call, webhook *collections.Webhook) error {
	q, p := c.Listing()
	status := q.OneOf("status", collections.WebhookPending, collections.WebhookDelivered, collections.WebhookFailed)
	if err := q.Err(); err != nil {
		return err
	}
	return web.Listed(c, p, viewWebhookDelivery(webhook.Active()))(collections.PageOfWebhookDeliveries(c.App, webhook.Id, status, p.Offset(), p.Size))
}

func (a *api) retryWebhookDelivery(c *web.Call) error {
	id, err := c.PathUUID()
	if err != nil {
		return err
	}
	return web.Show(c.OK, viewWebhookDelivery(true))(a.Webhooks.Retry(c.App, id, c.Actor(), c.Now))
}
