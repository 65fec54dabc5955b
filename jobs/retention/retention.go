// Package retention removes data after its retention period. Patients, their readings and billing, and the audit trail are never removed
// automatically: the law requires keeping them, and only a person may decide to delete them.
package retention

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Periods are the retention periods of each kind of data. Source: docs/decisions/retention.md, "Retention".
type Periods struct {
	WebhookRaw, Quarantine        time.Duration
	PushDeliveries, Notifications time.Duration
	RefreshTokens, PushTokens     time.Duration
	WebhooksOut                   time.Duration
	Changes                       time.Duration
}

// minPeriod is the minimum of every period, for any setting: nothing from today is removed.
const minPeriod = 24 * time.Hour

// Periods of operational data, which are not configurable: each is longer than any report looks back.
const (
	keepJobRuns       = 400 * 24 * time.Hour
	keepHealthSamples = 60 * 24 * time.Hour
	keepTimings       = 60 * 24 * time.Hour
	keepFailures      = 30 * 24 * time.Hour
	keepMails         = 90 * 24 * time.Hour
)

// batch bounds the rows that one transaction removes, so that readings never wait long for it.
const batch = 500

// rule removes one kind of row.
type rule struct {
	name string
	rows collections.Expired
	keep time.Duration
}

// rules lists what is purged, in an order in which no row is removed before rows that refer to it. Open and rejected events stay until a person
// closes them.
func (p Periods) rules() []rule {
	return []rule{
		{"webhook_payloads", collections.ExpiredPayloads, p.WebhookRaw},
		{"gateway_events", collections.ExpiredEvents, max(p.WebhookRaw, p.Quarantine)},
		{"quarantine", collections.ExpiredQuarantine, p.Quarantine},
		{"unmatched_texts", collections.ExpiredUnmatchedTexts, p.Quarantine},
		{"push_deliveries", collections.ExpiredPushes, p.PushDeliveries},
		{"notifications", collections.ExpiredNotifications, p.Notifications},
		{"refresh_tokens", collections.ExpiredRefreshTokens, p.RefreshTokens},
		// At least as long as the pushes sent to them.
		{"push_tokens", collections.ExpiredPushTokens, max(p.PushTokens, p.PushDeliveries)},
		{"webhook_deliveries", collections.ExpiredWebhookDeliveries, p.WebhooksOut},
		{"job_runs", collections.ExpiredJobRuns, keepJobRuns},
		// Anyone may try to sign in or request a link with any address within the rate limits. Four wrong passwords a month are not an attack.
		{"login_failures", collections.ExpiredLoginFailures, keepFailures},
		{"mails", collections.ExpiredMails, keepMails},
		{"health_samples", collections.ExpiredHealthSamples, keepHealthSamples},
		{"processing_times", collections.ExpiredProcessingTimes, keepTimings},
	}
}

// Purge removes expired data in small transactions, each with an audit entry, and returns the number of rows by kind. It is idempotent; the next run
// continues after a canceled one.
func Purge(ctx context.Context, app core.App, p Periods, now time.Time) (map[string]int, error) {
	counts := map[string]int{}
	for _, r := range p.rules() {
		counts[r.name] = 0
		for {
			if err := ctx.Err(); err != nil {
				return counts, err
			}
			gone, err := r.purge(app, now.Add(-max(minPeriod, r.keep)), now)
			if err != nil {
				return counts, err
			}
			counts[r.name] += gone
			if gone < batch {
				break
			}
		}
	}
	gone, err := purgeChanges(ctx, app, p.Changes, now)
	counts["changes"] = gone
	return counts, err
}

// purge removes one batch.
func (r rule) purge(app core.App, before, now time.Time) (gone int, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if gone, err = r.rows.Remove(tx, before, batch); err != nil || gone == 0 {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.RetentionPurge, Actor: audit.System(), ResourceType: r.rows.Table, ResourceID: r.name,
			Changes: audit.Changes{"rows": {Old: gone}, "before": {New: collections.FormatInstant(before)}},
		}, now)
	})
	return gone, err
}

// changeBatch bounds the changes that one transaction removes. There are as many changes as readings, and they are indexed by number only.
const changeBatch = 2000

// purgeChanges removes the oldest changes. The audit trail has their events too, so a night's purge is a single audit entry.
func purgeChanges(ctx context.Context, app core.App, keep time.Duration, now time.Time) (gone int, err error) {
	before := now.Add(-max(minPeriod, keep))
	if err := collections.MarkChangePosition(app, now); err != nil {
		return 0, err
	}
	for n := changeBatch; n == changeBatch && ctx.Err() == nil; gone += n {
		if n, err = collections.RemoveChanges(app, before, changeBatch); err != nil {
			return gone, err
		}
	}
	if gone == 0 {
		return 0, ctx.Err()
	}
	err = app.RunInTransaction(func(tx core.App) error {
		return audit.Append(tx, audit.Entry{
			Event: audit.RetentionPurge, Actor: audit.System(), ResourceType: collections.ChangesTable, ResourceID: "changes",
			Changes: audit.Changes{"rows": {Old: gone}, "before": {New: collections.FormatInstant(before)}},
		}, now)
	})
	if err == nil {
		err = ctx.Err()
	}
	return gone, err
}
