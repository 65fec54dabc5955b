package webhooks

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// What came of an attempt, as it is counted.
const (
	outcomeDelivered = "delivered"
	outcomeRetried   = "retried"
	outcomeFailed    = "failed"
)

// Outcomes lists them.
var Outcomes = []string{outcomeDelivered, outcomeRetried, outcomeFailed}

// back is how long a receiver took nothing before what it missed is sent at once when it is back; after less, it is due soon anyway.
const back = 5 * time.Minute

// tellEvery is how often administrators hear that one receiver does not take what it is told.
const tellEvery = 24 * time.Hour

// ending is an attempt that has ended.
type ending struct {
	delivery collections.WebhookDelivery
	answer   answer
}

// tell counts a group of attempts.
func (e *Engine) tell(group []*async.GroupItem[ending, string]) {
	for _, item := range group {
		if item.Err == nil && item.Out != "" && e.Ended != nil {
			e.Ended(item.Out)
		}
	}
}

// store stores how attempts ended, in one transaction.
func (e *Engine) store(app core.App, group []*async.GroupItem[ending, string]) error {
	return async.Along(app, func(tx core.App) error {
		trail, err := audit.NewChain(tx)
		if err != nil {
			return err
		}
		tx = collections.WithStatementCache(tx)
		for _, item := range group {
			if item.Out, err = e.storeEnding(tx, trail, item.In.delivery, item.In.answer); err != nil {
				return err
			}
		}
		return trail.Store()
	})
}

// storeEnding stores how an attempt ended, and what follows for its webhook.
func (e *Engine) storeEnding(tx core.App, trail *audit.Chain, d collections.WebhookDelivery, a answer) (outcome string, err error) {
	end := collections.WebhookAttemptResult{Error: a.problem, Code: a.status, StartedAt: a.startedAt, Ended: a.endedAt}
	switch {
	case a.problem == "":
		end.Status, outcome = collections.WebhookDelivered, outcomeDelivered
	case a.status == gone: // nothing is given up that its receiver may want when it is back
		end.Status, end.DueAt, outcome = collections.WebhookPending, a.endedAt, outcomeRetried
	default:
		end.Status, outcome = collections.WebhookPending, outcomeRetried
		next, again := e.Schedule.Next(d.Attempts-d.Spent+1, a.endedAt, e.Spread())
		if end.DueAt = slices.MaxFunc([]time.Time{next, a.endedAt.Add(a.pause)}, time.Time.Compare); !again {
			end.Status, end.DueAt, outcome = collections.WebhookFailed, time.Time{}, outcomeFailed
		}
	}
	if err := collections.StoreWebhookResult(tx, d, end); err != nil {
		return "", err
	}
	if a.shown {
		if err := trail.Add(shownEntry(d, a), a.endedAt); err != nil {
			return "", err
		}
	}
	return outcome, e.follow(tx, trail, d, a, outcome)
}

// gone is a receiver's word that it wants nothing more. Source: RFC 9110, section 15.5.11; Standard Webhooks, "Delivery success and failure".
const gone = 410

// follow notes what an attempt says of the receiver, and puts its webhook out of use when that is how it is.
func (e *Engine) follow(tx core.App, trail *audit.Chain, d collections.WebhookDelivery, a answer, outcome string) error {
	switch {
	case outcome == outcomeDelivered:
		return collections.RecordWebhookSuccess(tx, d.Webhook, a.endedAt.Add(-back), a.endedAt)
	case a.problem == errUnreadable: // which is our own trouble
		return nil
	}
	pausedUntil := time.Time{}
	if a.pause > 0 {
		pausedUntil = a.endedAt.Add(a.pause)
	}
	if err := collections.RecordWebhookFailure(tx, d.Webhook, a.startedAt, pausedUntil); err != nil {
		return err
	}
	row, err := collections.FindWebhookState(tx, d.Webhook)
	if collections.IsNotFound(err) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	failing := a.endedAt.Sub(collections.ParseInstant(row.FailingSince)) >= e.DisableAfter
	switch {
	case a.status == gone:
		return switchOff(tx, trail, d.Webhook, collections.WebhookGone, a.endedAt)
	case failing:
		return switchOff(tx, trail, d.Webhook, collections.WebhookFailing, a.endedAt)
	case outcome == outcomeFailed && a.endedAt.Sub(collections.ParseInstant(row.NotifiedAt)) >= tellEvery:
		if err := collections.MarkWebhookNotified(tx, d.Webhook, a.endedAt); err != nil {
			return err
		}
		return announce(tx, d.Webhook, "A webhook's receiver did not take an event, and it is not tried again by itself: Operations, Webhooks.", a.endedAt)
	}
	return nil
}

// switchOff puts a webhook out of use, and tells administrators. What waits goes on waiting.
func switchOff(tx core.App, trail *audit.Chain, id, because string, now time.Time) error {
	switched, err := collections.DisableWebhook(tx, id, because, now)
	if err != nil || !switched {
		return err
	}
	entry := audit.Entry{
		Event: audit.WebhookUpdate, Actor: audit.System(), ResourceType: audit.ResourceWebhook, ResourceID: id,
		Changes: audit.Changes{"active": {Old: true, New: false}, "off_because": {New: because}},
	}
	if err := trail.Add(entry, now); err != nil {
		return err
	}
	body := "A webhook was switched off: its receiver has taken nothing for days. What it missed waits until it is switched on again: Operations, Webhooks."
	if because == collections.WebhookGone {
		body = "A webhook was switched off: its receiver says that it is gone. What it missed waits until it is switched on again: Operations, Webhooks."
	}
	return announce(tx, id, body, now)
}

func announce(tx core.App, id, body string, now time.Time) error {
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.WebhookTrouble, Severity: "warning", Body: body, Key: "webhook " + id + " " + collections.Instant(now),
	}, now)
}

// shownEntry says whose values left the house, and whether they were taken.
func shownEntry(d collections.WebhookDelivery, a answer) audit.Entry {
	entry := audit.Entry{
		Event: audit.WebhookSend, Actor: audit.System(), ResourceType: audit.ResourceWebhookDelivery, ResourceID: d.ID, PatientID: d.Patient,
		Changes: audit.Changes{"webhook": {New: d.Webhook}, "event": {New: d.Event}},
	}
	if a.problem != "" {
		entry.Outcome = audit.MinorFailure
	}
	return entry
}
