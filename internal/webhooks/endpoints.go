package webhooks

import (
	"context"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/changefeed"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// maxEndpoints bounds the number of webhooks, because each has its own worker.
const maxEndpoints = 50

// Create creates a webhook. It receives the changes committed from now on.
func (e *Engine) Create(app core.App, draft Draft, by audit.Actor, now time.Time) (made CreatedWebhook, err error) {
	values := draft(collections.WebhookValues{Active: true})
	if by.Type == audit.ByClient {
		values.ClientID = by.ID
	}
	made.Secret = newSecret()
	err = app.RunInTransaction(func(tx core.App) error {
		count, err := collections.CountWebhooks(tx)
		if err != nil {
			return err
		}
		if count >= maxEndpoints {
			return fault.New(fault.Invalid, "invalid_state", "The maximum number of webhooks exists already. Delete one first.")
		}
		last, err := changefeed.LastSeq(tx)
		if err != nil {
			return err
		}
		if made.Webhook, err = collections.CreateWebhook(tx, values, made.Secret, last, now); err != nil {
			return err
		}
		if err := notifyOfReceiver(tx, collections.WebhookValues{}, values, by, now); err != nil {
			return err
		}
		return appendAudit(tx, audit.WebhookCreate, made.Webhook.Id, auditChanges(collections.WebhookValues{}, values), by, now)
	})
	if err == nil {
		e.EndpointChanged(made.Webhook.Id)
	}
	return made, err
}

// Change changes a webhook. New events apply from the next change on; deliveries that are queued already are still sent. A webhook that is enabled
// again resumes at its position and receives all it missed, in order.
func (e *Engine) Change(app core.App, id string, draft Draft, by audit.Actor, now time.Time) (webhook *collections.Webhook, err error) {
	err = e.changeEndpoint(app, id, func(tx core.App, found *collections.Webhook) error {
		webhook = found
		before := webhook.Values()
		after := draft(before)
		differing := auditChanges(before, after)
		if len(differing) == 0 {
			return nil
		}
		position := int64(0)
		if _, other := differing["events"]; other && before.Active {
			position = e.lastReadSeq(id)
		}
		if err := collections.ChangeWebhook(tx, webhook, after, position, now); err != nil {
			return err
		}
		if after.Active && (!before.Active || before.URL != after.URL) {
			if err := announceGap(tx, webhook, now); err != nil {
				return err
			}
			if err := collections.RestartWebhookDeliveries(tx, id, now); err != nil {
				return err
			}
		}
		if err := notifyOfReceiver(tx, before, after, by, now); err != nil {
			return err
		}
		return appendAudit(tx, audit.WebhookUpdate, id, differing, by, now)
	})
	return webhook, err
}

// notifyOfReceiver notifies administrators if a person made a webhook send values, or send elsewhere.
func notifyOfReceiver(tx core.App, before, after collections.WebhookValues, by audit.Actor, now time.Time) error {
	if by.Type != audit.ByUser || !sendsElsewhere(before, after) {
		return nil
	}
	return notifications.NotifyOfProgramAccess(tx, by.Email+" made a webhook send to "+after.URL+".", now)
}

// announceGap notifies administrators if changes that a webhook missed while it was switched off
// have expired.
func announceGap(tx core.App, webhook *collections.Webhook, now time.Time) error {
	first, err := collections.FirstChange(tx)
	if err != nil || first.Seq <= webhook.Position()+1 {
		return err
	}
	return announce(tx, webhook.Id, "A webhook was switched off for so long that some of the events it missed have been removed. Its receiver should read all data again.", now)
}

// lastReadSeq returns the position up to which fan-out has examined changes for a webhook.
func (e *Engine) lastReadSeq(id string) int64 {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.readAhead[id].seq
}

// RotateSecret gives a webhook a new secret. Requests are signed with both secrets for a day, so that the receiver can switch without missing
// events.
func (e *Engine) RotateSecret(app core.App, id string, by audit.Actor, now time.Time) (made CreatedWebhook, err error) {
	made.Secret = newSecret()
	err = e.changeEndpoint(app, id, func(tx core.App, webhook *collections.Webhook) error {
		made.Webhook = webhook
		if err := collections.ReplaceWebhookSecret(tx, webhook, made.Secret, now.Add(secretOverlap), now); err != nil {
			return err
		}
		return appendAudit(tx, audit.WebhookSecretRotate, id, nil, by, now)
	})
	return made, err
}

// Delete removes a webhook. The worker removes its deliveries later, in batches.
func (e *Engine) Delete(app core.App, id string, by audit.Actor, now time.Time) error {
	return e.changeEndpoint(app, id, func(tx core.App, webhook *collections.Webhook) error {
		if err := collections.RemoveWebhook(tx, webhook); err != nil {
			return err
		}
		return appendAudit(tx, audit.WebhookDelete, id, audit.Changes{"url": {Old: webhook.Values().URL}}, by, now)
	})
}

// Retry requeues one delivery in any state, under the same id.
func (e *Engine) Retry(app core.App, id string, by audit.Actor, now time.Time) (d collections.WebhookDelivery, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if d, err = collections.FindWebhookDelivery(tx, id); err != nil {
			return fault.OrMissing(err)
		}
		row, err := collections.FindWebhookState(tx, d.Webhook)
		switch {
		case err != nil:
			return err
		case d.Event == testEvent:
			return fault.New(fault.Invalid, "invalid_state", "A test delivery cannot be resent; send another test.")
		case !row.Active:
			return fault.New(fault.Invalid, "invalid_state", "The webhook is switched off. Queued deliveries are sent when it is switched on.")
		}
		if err := collections.RequeueWebhookDelivery(tx, d, now); err != nil {
			return err
		}
		entry := audit.Entry{
			Event: audit.WebhookRetry, Actor: by, ResourceType: audit.ResourceWebhookDelivery, ResourceID: id, PatientID: d.Patient,
			Changes: audit.Changes{"webhook": {New: d.Webhook}},
		}
		if err := audit.Append(tx, entry, now); err != nil {
			return err
		}
		d, err = collections.FindWebhookDelivery(tx, id)
		return err
	})
	if err == nil {
		e.EndpointChanged(d.Webhook)
	}
	return d, err
}

// Test sends a test event to a webhook once and returns the result. It also works for a disabled webhook, and updates the health of the endpoint if
// the receiver accepted the event or is gone.
func (e *Engine) Test(ctx context.Context, app core.App, id string, by audit.Actor, now time.Time) (d collections.WebhookDelivery, err error) {
	webhook, err := collections.FindWebhook(app, id)
	if err != nil {
		return d, fault.OrMissing(err)
	}
	d = collections.WebhookDelivery{
		ID: collections.NewUUID(), Webhook: id, Event: testEvent, Record: id, Queue: testEvent, Occurred: collections.FormatInstant(now), CreatedAt: collections.FormatInstant(now),
	}
	a := e.send(ctx, app, webhook, d)
	d.Status, d.Attempts, d.Code, d.Error = collections.WebhookDelivered, 1, a.status, a.errorCode
	d.FirstAt, d.LastAt = collections.FormatInstant(a.startedAt), collections.FormatInstant(a.startedAt)
	outcome := outcomeDelivered
	if a.errorCode != "" {
		d.Status, outcome = collections.WebhookFailed, outcomeFailed
	} else {
		d.Delivered = collections.FormatInstant(a.endedAt)
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if err := collections.StoreWebhookTest(tx, d); err != nil {
			return err
		}
		trail, err := audit.NewChain(tx)
		if err != nil {
			return err
		}
		entry := audit.Entry{Event: audit.WebhookTest, Actor: by, ResourceType: audit.ResourceWebhook, ResourceID: id}
		if a.errorCode != "" {
			entry.Outcome = audit.MinorFailure
		}
		if err := trail.Add(entry, now); err != nil {
			return err
		}
		// A failed test does not count against the receiver; its events will show the failure.
		if a.errorCode == "" || a.status == statusGone {
			if err := e.updateEndpointHealth(tx, trail, d, a, outcome); err != nil {
				return err
			}
		}
		return trail.Store()
	})
	if err == nil {
		e.countOutcomes([]*async.GroupItem[finishedAttempt, string]{{Out: outcome}})
		e.EndpointChanged(id)
	}
	return d, err
}

// changeEndpoint changes a webhook in a transaction and wakes its worker.
func (e *Engine) changeEndpoint(app core.App, id string, change func(tx core.App, webhook *collections.Webhook) error) error {
	err := app.RunInTransaction(func(tx core.App) error {
		webhook, err := collections.FindWebhook(tx, id)
		if err != nil {
			return fault.OrMissing(err)
		}
		return change(tx, webhook)
	})
	if err == nil {
		e.EndpointChanged(id)
	}
	return err
}

func appendAudit(tx core.App, event audit.Event, id string, differing audit.Changes, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{Event: event, Actor: by, ResourceType: audit.ResourceWebhook, ResourceID: id, Changes: differing}, now)
}

// auditChanges returns the differences for the audit trail.
func auditChanges(before, after collections.WebhookValues) audit.Changes {
	differing := audit.Changes{}
	differing.Record("url", before.URL, after.URL)
	differing.Record("events", strings.Join(before.Events, " "), strings.Join(after.Events, " "))
	differing.Record("include_values", before.IncludeValues, after.IncludeValues)
	differing.Record("active", before.Active, after.Active)
	return differing
}
