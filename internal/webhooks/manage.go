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
)

// mostWebhooks bounds how many there are: each has workers of its own.
const mostWebhooks = 50

// Create makes a webhook. It is told of what is committed from now on.
func (e *Engine) Create(app core.App, draft Draft, by audit.Actor, now time.Time) (made Secret, err error) {
	values := draft(collections.WebhookValues{Active: true})
	made.Secret = newSecret()
	err = app.RunInTransaction(func(tx core.App) error {
		count, err := collections.CountWebhooks(tx)
		if err != nil {
			return err
		}
		if count >= mostWebhooks {
			return fault.New(fault.Invalid, "invalid_state", "There are as many webhooks as there may be.")
		}
		last, err := changefeed.Last(tx)
		if err != nil {
			return err
		}
		if made.Webhook, err = collections.CreateWebhook(tx, values, made.Secret, last, now); err != nil {
			return err
		}
		return note(tx, audit.WebhookCreate, made.Webhook.Id, changed(collections.WebhookValues{}, values), by, now)
	})
	if err == nil {
		e.Changed(made.Webhook.Id)
	}
	return made, err
}

// Change changes a webhook. Other events hold from the next change on; what waits already is told all the same. One that is put to use again goes
// on where it stopped: all that it was not told of follows, in order.
func (e *Engine) Change(app core.App, id string, draft Draft, by audit.Actor, now time.Time) (webhook *collections.Webhook, err error) {
	err = e.inTransaction(app, id, func(tx core.App, found *collections.Webhook) error {
		webhook = found
		before := webhook.Values()
		after := draft(before)
		differing := changed(before, after)
		if len(differing) == 0 {
			return nil
		}
		position := int64(0)
		if _, other := differing["events"]; other && before.Active {
			position = e.lookedAt(id)
		}
		if err := collections.ChangeWebhook(tx, webhook, after, position, now); err != nil {
			return err
		}
		if after.Active && (!before.Active || before.URL != after.URL) {
			if err := tellOfGap(tx, webhook, now); err != nil {
				return err
			}
			if err := collections.RestartWebhookDeliveries(tx, id, now); err != nil {
				return err
			}
		}
		return note(tx, audit.WebhookUpdate, id, differing, by, now)
	})
	return webhook, err
}

// tellOfGap has administrators know when a webhook was switched off for so long that what it missed is not kept whole.
func tellOfGap(tx core.App, webhook *collections.Webhook, now time.Time) error {
	first, err := collections.FirstChange(tx)
	if err != nil || first.Seq <= webhook.Position()+1 {
		return err
	}
	return announce(tx, webhook.Id, "A webhook was switched off for so long that some of what it missed is not kept any more: its receiver should look at everything anew.", now)
}

// lookedAt is how far a webhook was looked at.
func (e *Engine) lookedAt(id string) int64 {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.ahead[id].seq
}

// RotateSecret gives a webhook another secret. The old one signs beside it for a day, so that no receiver misses anything while it is told.
func (e *Engine) RotateSecret(app core.App, id string, by audit.Actor, now time.Time) (made Secret, err error) {
	made.Secret = newSecret()
	err = e.inTransaction(app, id, func(tx core.App, webhook *collections.Webhook) error {
		made.Webhook = webhook
		if err := collections.ReplaceWebhookSecret(tx, webhook, made.Secret, now.Add(bothSign), now); err != nil {
			return err
		}
		return note(tx, audit.WebhookSecretRotate, id, nil, by, now)
	})
	return made, err
}

// Delete removes a webhook, and with it, by and by, what it was to be told of.
func (e *Engine) Delete(app core.App, id string, by audit.Actor, now time.Time) error {
	return e.inTransaction(app, id, func(tx core.App, webhook *collections.Webhook) error {
		if err := collections.RemoveWebhook(tx, webhook); err != nil {
			return err
		}
		return note(tx, audit.WebhookDelete, id, audit.Changes{"url": {Old: webhook.Values().URL}}, by, now)
	})
}

// Retry sends one delivery again, whatever came of it, under the id that it has.
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
			return fault.New(fault.Invalid, "invalid_state", "A test is not sent again: send another.")
		case !row.Active:
			return fault.New(fault.Invalid, "invalid_state", "The webhook is switched off: what waits is sent when it is switched on.")
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
		e.Changed(d.Webhook)
	}
	return d, err
}

// Test sends a webhook an event of nothing and waits for its answer, once. It is sent to one that is switched off, too, and says as much of the
// receiver as any other.
func (e *Engine) Test(ctx context.Context, app core.App, id string, by audit.Actor, now time.Time) (d collections.WebhookDelivery, err error) {
	webhook, err := collections.FindWebhook(app, id)
	if err != nil {
		return d, fault.OrMissing(err)
	}
	d = collections.WebhookDelivery{
		ID: collections.NewUUID(), Webhook: id, Event: testEvent, Record: id, Queue: testEvent, Occurred: collections.Instant(now), CreatedAt: collections.Instant(now),
	}
	a := e.send(ctx, app, webhook, d)
	d.Status, d.Attempts, d.Code, d.Error = collections.WebhookDelivered, 1, a.status, a.problem
	d.FirstAt, d.LastAt = collections.Instant(a.startedAt), collections.Instant(a.startedAt)
	outcome := outcomeDelivered
	if a.problem != "" {
		d.Status, outcome = collections.WebhookFailed, outcomeFailed
	} else {
		d.Delivered = collections.Instant(a.endedAt)
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
		if a.problem != "" {
			entry.Outcome = audit.MinorFailure
		}
		if err := trail.Add(entry, now); err != nil {
			return err
		}
		// What an administrator tries says that a receiver is back, or gone; that it does not answer says nothing that the events will not say.
		if a.problem == "" || a.status == gone {
			if err := e.follow(tx, trail, d, a, outcome); err != nil {
				return err
			}
		}
		return trail.Store()
	})
	if err == nil {
		e.tell([]*async.GroupItem[ending, string]{{Out: outcome}})
		e.Changed(id)
	}
	return d, err
}

// inTransaction changes a webhook, and has the worker go by it.
func (e *Engine) inTransaction(app core.App, id string, change func(tx core.App, webhook *collections.Webhook) error) error {
	err := app.RunInTransaction(func(tx core.App) error {
		webhook, err := collections.FindWebhook(tx, id)
		if err != nil {
			return fault.OrMissing(err)
		}
		return change(tx, webhook)
	})
	if err == nil {
		e.Changed(id)
	}
	return err
}

func note(tx core.App, event audit.Event, id string, differing audit.Changes, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{Event: event, Actor: by, ResourceType: audit.ResourceWebhook, ResourceID: id, Changes: differing}, now)
}

// changed is what differs.
func changed(before, after collections.WebhookValues) audit.Changes {
	differing := audit.Changes{}
	differing.Note("url", before.URL, after.URL)
	differing.Note("events", strings.Join(before.Events, " "), strings.Join(after.Events, " "))
	differing.Note("include_values", before.IncludeValues, after.IncludeValues)
	differing.Note("active", before.Active, after.Active)
	return differing
}
