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

// Outcomes of an attempt, as the metrics count them.
const (
	outcomeDelivered = "delivered"
	outcomeRetried   = "retried"
	outcomeFailed    = "failed"
)

// Outcomes lists all outcomes of an attempt.
var Outcomes = []string{outcomeDelivered, outcomeRetried, outcomeFailed}

// resendAfterOutage is the shortest outage after which missed deliveries are sent immediately once the receiver is back. After a shorter one their
// regular retries are due soon.
const resendAfterOutage = 5 * time.Minute

// notifyInterval is the least time between two notices to administrators about one receiver's dead letters.
const notifyInterval = 24 * time.Hour

// finishedAttempt pairs a delivery with the result of its attempt.
type finishedAttempt struct {
	delivery collections.WebhookDelivery
	attempt  attempt
}

// countOutcomes reports a group of stored attempts to OnAttempt.
func (e *Engine) countOutcomes(group []*async.GroupItem[finishedAttempt, string]) {
	for _, item := range group {
		if item.Err == nil && item.Out != "" && e.OnAttempt != nil {
			e.OnAttempt(item.Out)
		}
	}
}

// storeResults stores the results of attempts in one transaction.
func (e *Engine) storeResults(app core.App, group []*async.GroupItem[finishedAttempt, string]) error {
	return async.JoinTx(app, func(tx core.App) error {
		trail, err := audit.NewChain(tx)
		if err != nil {
			return err
		}
		tx = collections.WithStatementCache(tx)
		for _, item := range group {
			if item.Out, err = e.storeResult(tx, trail, item.In.delivery, item.In.attempt); err != nil {
				return err
			}
		}
		return trail.Store()
	})
}

// storeResult stores the result of one attempt and updates the health of its endpoint.
func (e *Engine) storeResult(tx core.App, trail *audit.Chain, d collections.WebhookDelivery, a attempt) (outcome string, err error) {
	end := collections.WebhookAttemptResult{Error: a.errorCode, Code: a.status, StartedAt: a.startedAt, Ended: a.endedAt}
	switch {
	case a.errorCode == "":
		end.Status, outcome = collections.WebhookDelivered, outcomeDelivered
	case a.status == statusGone: // stays pending: the receiver may want the event once it is back
		end.Status, end.DueAt, outcome = collections.WebhookPending, a.endedAt, outcomeRetried
	default:
		end.Status, outcome = collections.WebhookPending, outcomeRetried
		next, again := e.Schedule.Next(d.Attempts-d.Spent+1, a.endedAt, e.Jitter())
		if end.DueAt = slices.MaxFunc([]time.Time{next, a.endedAt.Add(a.retryAfter)}, time.Time.Compare); !again {
			end.Status, end.DueAt, outcome = collections.WebhookFailed, time.Time{}, outcomeFailed
		}
	}
	if err := collections.StoreWebhookResult(tx, d, end); err != nil {
		return "", err
	}
	if a.sentValues {
		if err := trail.Add(disclosureEntry(d, a), a.endedAt); err != nil {
			return "", err
		}
	}
	return outcome, e.updateEndpointHealth(tx, trail, d, a, outcome)
}

// statusGone is the status with which a receiver refuses all further events. Source: RFC 9110, section 15.5.11; Standard Webhooks, "Delivery success
// and failure".
const statusGone = 410

// updateEndpointHealth records the success or failure of an attempt on its endpoint, and disables an endpoint that is gone or has failed for too
// long. It also notifies administrators of a dead letter, at most once a day per endpoint.
func (e *Engine) updateEndpointHealth(tx core.App, trail *audit.Chain, d collections.WebhookDelivery, a attempt, outcome string) error {
	switch {
	case outcome == outcomeDelivered:
		return collections.RecordWebhookSuccess(tx, d.Webhook, a.endedAt.Add(-resendAfterOutage), a.endedAt)
	case a.errorCode == errUnreadable: // our failure, not the receiver's
		return nil
	}
	pausedUntil := time.Time{}
	if a.retryAfter > 0 {
		pausedUntil = a.endedAt.Add(a.retryAfter)
	}
	if err := collections.RecordWebhookFailure(tx, d.Webhook, a.startedAt, pausedUntil); err != nil {
		return err
	}
	row, err := collections.FindWebhookState(tx, d.Webhook)
	if collections.IsNotFound(err) {
		return nil // the endpoint was removed in the meantime
	}
	if err != nil {
		return err
	}
	failing := a.endedAt.Sub(collections.ParseInstant(row.FailingSince)) >= e.DisableAfter
	switch {
	case a.status == statusGone:
		return disableEndpoint(tx, trail, d.Webhook, collections.WebhookGone, a.endedAt)
	case failing:
		return disableEndpoint(tx, trail, d.Webhook, collections.WebhookFailing, a.endedAt)
	case outcome == outcomeFailed && a.endedAt.Sub(collections.ParseInstant(row.NotifiedAt)) >= notifyInterval:
		if err := collections.MarkWebhookNotified(tx, d.Webhook, a.endedAt); err != nil {
			return err
		}
		return announce(tx, d.Webhook, "A webhook's receiver did not accept an event, and Vigil does not retry it automatically. See Operations, Webhooks.", a.endedAt)
	}
	return nil
}

// disableEndpoint disables an endpoint and notifies administrators. Its queued deliveries stay queued.
func disableEndpoint(tx core.App, trail *audit.Chain, id, because string, now time.Time) error {
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
	body := "A webhook was switched off: its receiver has accepted nothing for days. The events it missed stay queued until the webhook is switched on again. See Operations, Webhooks."
	if because == collections.WebhookGone {
		body = "A webhook was switched off: its receiver answered that it is gone. The events it missed stay queued until the webhook is switched on again. See Operations, Webhooks."
	}
	return announce(tx, id, body, now)
}

func announce(tx core.App, id, body string, now time.Time) error {
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.WebhookTrouble, Severity: "warning", Body: body, Key: "webhook " + id + " " + collections.FormatInstant(now),
	}, now)
}

// disclosureEntry records in the audit trail that a patient's values were sent to a receiver, and whether the receiver accepted them.
func disclosureEntry(d collections.WebhookDelivery, a attempt) audit.Entry {
	entry := audit.Entry{
		Event: audit.WebhookSend, Actor: audit.System(), ResourceType: audit.ResourceWebhookDelivery, ResourceID: d.ID, PatientID: d.Patient,
		Changes: audit.Changes{"webhook": {New: d.Webhook}, "event": {New: d.Event}},
	}
	if a.errorCode != "" {
		entry.Outcome = audit.MinorFailure
	}
	return entry
}
