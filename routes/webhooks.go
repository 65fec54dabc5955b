package routes

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/webhooks"
	"github.com/vigilhealth/vigil/routes/web"
)

// webhookRows are the endpoints of webhooks and their deliveries.
func webhookRows() []route {
	manage := authz.ManageWebhooks.Or(authz.ScopeWebhooksManage)
	return []route{
		{http.MethodGet, "/webhooks/", manage, ratelimit.User, (*api).listWebhooks},
		{http.MethodPost, "/webhooks/", manage, ratelimit.User, (*api).createWebhook},
		{http.MethodGet, "/webhooks/{id}/", manage, ratelimit.User, withRecord((*api).webhook, (*api).readWebhook)},
		{http.MethodPatch, "/webhooks/{id}/", manage, ratelimit.User, withRecord((*api).webhook, (*api).changeWebhook)},
		{http.MethodDelete, "/webhooks/{id}/", manage, ratelimit.User, withRecord((*api).webhook, (*api).deleteWebhook)},
		{http.MethodPost, "/webhooks/{id}/test/", manage, ratelimit.User, withRecord((*api).webhook, (*api).testWebhook)},
		{http.MethodPost, "/webhooks/{id}/rotate-secret/", manage, ratelimit.User, withRecord((*api).webhook, (*api).rotateWebhookSecret)},
		{http.MethodGet, "/webhooks/{id}/deliveries/", manage, ratelimit.User, withRecord((*api).webhook, (*api).listWebhookDeliveries)},
		{http.MethodPost, "/webhooks/deliveries/{id}/retry/", authz.ManageWebhooks, ratelimit.User, (*api).retryWebhookDelivery},
	}
}

type webhookView struct {
	ID              string   `json:"id"`
	URL             string   `json:"url"`
	Events          []string `json:"events"`
	Active          bool     `json:"active"`
	IncludeValues   bool     `json:"include_values"`
	ClientID        *string  `json:"client_id"`
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
		ClientID: orNull(v.ClientID), OffBecause: orNull(w.DisabledReason()), FailingSince: instantOrNull(w.FailingSince()), LastDeliveredAt: instantOrNull(w.LastDeliveredAt()),
		CreatedAt: instantOrNull(w.CreatedAt()), UpdatedAt: instantOrNull(w.UpdatedAt()),
	}
}

// webhookSecretView is a webhook with its secret, which is never shown again.
type webhookSecretView struct {
	webhookView
	Secret string `json:"secret"`
}

func viewWebhookSecret(created webhooks.CreatedWebhook) webhookSecretView {
	return webhookSecretView{viewWebhook(created.Webhook), created.Secret}
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

// viewWebhookDelivery renders a delivery with its next attempt; a delivery that waits for a disabled webhook or for an
// earlier delivery has none.
func viewWebhookDelivery(active bool) func(collections.WebhookDelivery) webhookDeliveryView {
	return func(d collections.WebhookDelivery) webhookDeliveryView {
		view := webhookDeliveryView{
			ID: d.ID, WebhookID: d.Webhook, Event: d.Event, ObjectID: d.Record, PatientID: orNull(d.Patient), Status: d.Status, Attempts: d.Attempts,
			Error: orNull(d.Error), OccurredAt: instantOf(d.Occurred), LastAttemptAt: instantOf(d.LastAt), DeliveredAt: instantOf(d.Delivered),
			CreatedAt: validate.FormatInstant(collections.ParseInstant(d.CreatedAt)),
		}
		if d.Code != 0 {
			view.StatusCode = &d.Code
		}
		if active && d.Status == collections.WebhookPending && d.Attempts > 0 && !d.Blocked {
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
	owner := ""
	if c.Caller.Client != nil {
		owner = c.Caller.Client.ID
	}
	page, total, err := collections.PageOfWebhooks(c.App, owner, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableOnly(page)
	return web.RespondPage(c, p, total, web.Map(page, viewWebhook), unreadable)
}

// webhook finds the webhook of the path. A client finds only those that it made.
func (a *api) webhook(c *web.Call) (*collections.Webhook, error) {
	found, err := byUUID(collections.FindWebhook)(a, c)
	if client := c.Caller.Client; err == nil && client != nil && found.Values().ClientID != client.ID {
		return nil, fault.Missing()
	}
	return found, err
}

// receivable refuses a client's webhook for events about what the client may not read. The resource itself is that of the REST API, so it needs
// the scope of that.
func receivable(read func(*web.Call) (webhooks.Draft, error), before collections.WebhookValues) func(*web.Call) (webhooks.Draft, error) {
	return func(c *web.Call) (webhooks.Draft, error) {
		draft, err := read(c)
		if err != nil || c.Caller.Client == nil {
			return draft, err
		}
		values := draft(before)
		for _, event := range values.Events {
			noun, _, _ := strings.Cut(event, ".")
			if values.IncludeValues || !canReadChanges(c, noun) {
				if err := c.RequireScopes(changeScopes[noun][0]); err != nil {
					return nil, err
				}
			}
		}
		return draft, nil
	}
}

func (a *api) confirmedDraft(read func(webhooks.Body, *validate.Checks) webhooks.Draft, before collections.WebhookValues) func(*web.Call) (webhooks.Draft, error) {
	password := func(b webhooks.Body) validate.String { return b.CurrentPassword }
	return confirmed(a, read, password, func(d webhooks.Draft) bool { return d.SendsElsewhere(before) })
}

func (a *api) createWebhook(c *web.Call) error {
	return create(c, receivable(a.confirmedDraft(a.Webhooks.ReadNew, collections.WebhookValues{}), collections.WebhookValues{}), a.Webhooks.Create, web.RespondWith(c.Created, viewWebhookSecret))
}

func (a *api) readWebhook(c *web.Call, webhook *collections.Webhook) error {
	return c.OK(viewWebhook(webhook))
}

func (a *api) changeWebhook(c *web.Call, webhook *collections.Webhook) error {
	read := receivable(a.confirmedDraft(a.Webhooks.ReadChange, webhook.Values()), webhook.Values())
	return change(c, webhook.Id, read, a.Webhooks.Change, web.RespondWith(c.OK, viewWebhook))
}

func (a *api) deleteWebhook(c *web.Call, webhook *collections.Webhook) error {
	return c.NoContent(a.Webhooks.Delete(c.App, webhook.Id, c.Actor(), c.Now))
}

func (a *api) testWebhook(c *web.Call, webhook *collections.Webhook) error {
	return web.RespondWith(c.OK, viewWebhookDelivery(true))(a.Webhooks.Test(c.Request.Context(), c.App, webhook.Id, c.Actor(), c.Now))
}

func (a *api) rotateWebhookSecret(c *web.Call, webhook *collections.Webhook) error {
	return web.RespondWith(c.OK, viewWebhookSecret)(a.Webhooks.RotateSecret(c.App, webhook.Id, c.Actor(), c.Now))
}

func (a *api) listWebhookDeliveries(c *web.Call, webhook *collections.Webhook) error {
	q, p := c.Listing()
	status := q.OneOf("status", collections.WebhookPending, collections.WebhookDelivered, collections.WebhookFailed)
	if err := q.Err(); err != nil {
		return err
	}
	return web.RespondPageOf(c, p, viewWebhookDelivery(webhook.Active()))(collections.PageOfWebhookDeliveries(c.App, webhook.Id, status, p.Offset(), p.Size))
}

func (a *api) retryWebhookDelivery(c *web.Call) error {
	id, err := c.PathUUID()
	if err != nil {
		return err
	}
	return web.RespondWith(c.OK, viewWebhookDelivery(true))(a.Webhooks.Retry(c.App, id, c.Actor(), c.Now))
}

// WebhookViews renders webhook payloads as the endpoints render records for clients.
type WebhookViews struct {
	Zone  *time.Location // the practice's
	Clock func() time.Time
}

var _ webhooks.Views = WebhookViews{}

// objectViews renders each kind of object by its API id; nil for a missing object.
var objectViews = map[string]func(v WebhookViews, app core.App, id string) (any, error){
	collections.ChangeObservation: WebhookViews.observation,
	collections.ChangeAlert: viewByNumber(collections.AlertsByID, func(app core.App, page []*collections.Alert) ([]alertView, error) {
		return viewAlerts(authz.Client)(app, page)
	}),
	collections.ChangeEscalation:   viewByNumber(collections.EscalationsByID, viewEscalations),
	collections.ChangePatient:      WebhookViews.patient,
	collections.ChangeDevice:       WebhookViews.device,
	collections.ChangeTransmission: viewByUUID(collections.FindTransmission, withPatientNames(viewTransmission)),
	collections.ChangeClaim:        viewByUUID(collections.FindBillingEntry, viewEntries),
}

// Object implements [webhooks.Views]. An unreadable record is an error, so that the delivery is retried.
func (v WebhookViews) Object(app core.App, kind, id string) (any, error) {
	show, known := objectViews[kind]
	if !known {
		return nil, nil
	}
	view, err := show(v, app, id)
	if collections.IsNotFound(err) {
		return nil, nil
	}
	return view, err
}

// numberID returns the record id of a public number.
func numberID(id string) string {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		return collections.NumberID(n)
	}
	return id
}

// viewByNumber renders a record of a numbered collection.
func viewByNumber[R patientRecord, V any](find func(core.App, []string) ([]R, error), view func(core.App, []R) ([]V, error)) func(WebhookViews, core.App, string) (any, error) {
	return func(_ WebhookViews, app core.App, id string) (any, error) {
		found, err := find(app, []string{numberID(id)})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return viewIfPatientExists(app, found[0], view)
	}
}

// viewByUUID renders a record with a UUID as its id.
func viewByUUID[R patientRecord, V any](find func(core.App, string) (R, error), view func(core.App, []R) ([]V, error)) func(WebhookViews, core.App, string) (any, error) {
	return func(_ WebhookViews, app core.App, id string) (any, error) {
		found, err := find(app, id)
		if err != nil {
			return nil, err
		}
		return viewIfPatientExists(app, found, view)
	}
}

// viewIfPatientExists renders a record unless its patient is deleted.
func viewIfPatientExists[R patientRecord, V any](app core.App, record R, view func(core.App, []R) ([]V, error)) (any, error) {
	if _, err := collections.FindPatient(app, record.PatientID()); err != nil {
		return nil, err
	}
	if err := collections.Readable(record.ProxyRecord()); err != nil {
		return nil, err
	}
	views, err := view(app, []R{record})
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

func (WebhookViews) observation(app core.App, id string) (any, error) {
	record, err := collections.FindObservation(app, id)
	if err != nil {
		return nil, err
	}
	o := ingest.ObservationFromRecord(record)
	if _, err := collections.FindPatient(app, o.PatientID); err != nil {
		return nil, err
	}
	if err := collections.Readable(record); err != nil {
		return nil, err
	}
	raised, err := collections.AlertsOfObservations(app, id)
	return viewObservation(o, summarizeStoredAlerts(raised[id]), authz.Client), err
}

func (v WebhookViews) patient(app core.App, id string) (any, error) {
	p, err := collections.FindPatient(app, id)
	if err != nil {
		return nil, err
	}
	if err := collections.Readable(p.ProxyRecord()); err != nil {
		return nil, err
	}
	a := &api{Engines: Engines{Options: web.Options{Zone: v.Zone}}}
	return a.viewPatient(&web.Call{App: app, Now: v.Clock(), Caller: auth.Caller{Role: authz.Client}}, p)
}

func (WebhookViews) device(app core.App, id string) (any, error) {
	device, err := collections.FindDevice(app, id)
	if err != nil {
		return nil, err
	}
	return viewDevice(device), nil
}
