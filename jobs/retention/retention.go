// Package retention knows what is removed by itself once it has been kept long enough, and removes nothing else. Records of patients, their
// readings and their billing, and the audit trail are not on its list: the law wants them kept, and only a person may decide that they go.
package retention

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Periods say how long each kind is kept. Source: docs/decisions/retention.md, "Retention".
type Periods struct {
	WebhookRaw, Quarantine        time.Duration
	PushDeliveries, Notifications time.Duration
	RefreshTokens, PushTokens     time.Duration
	WebhooksOut                   time.Duration
	Changes                       time.Duration
}

// least is what every period is at least, whatever was set: nothing that happened today goes today.
const least = 24 * time.Hour

// What the service notes about itself has periods that nobody needs to choose: longer than every figure made of it looks back.
const (
	keepJobRuns       = 400 * 24 * time.Hour
	keepHealthSamples = 60 * 24 * time.Hour
	keepTimings       = 60 * 24 * time.Hour
	keepFailures      = 30 * 24 * time.Hour
	keepMails         = 90 * 24 * time.Hour
)

// batch bounds what one transaction removes, so that readings never wait long for it.
const batch = 500

// rule is one kind of row that goes.
type rule struct {
	name string
	rows collections.Expired
	keep time.Duration
}

// rules are all that is purged, in an order in which nothing goes before what names it. Events that still wait for somebody, open or
// rejected, stay until they are closed.
func (p Periods) rules() []rule {
	return []rule{
		{"webhook_payloads", collections.ExpiredPayloads, p.WebhookRaw},
		{"gateway_events", collections.ExpiredEvents, max(p.WebhookRaw, p.Quarantine)},
		{"quarantine", collections.ExpiredQuarantine, p.Quarantine},
		{"push_deliveries", collections.ExpiredPushes, p.PushDeliveries},
		{"notifications", collections.ExpiredNotifications, p.Notifications},
		{"refresh_tokens", collections.ExpiredRefreshTokens, p.RefreshTokens},
		// At least as long as what was sent to them.
		{"push_tokens", collections.ExpiredPushTokens, max(p.PushTokens, p.PushDeliveries)},
		{"webhook_deliveries", collections.ExpiredWebhookDeliveries, p.WebhooksOut},
		{"job_runs", collections.ExpiredJobRuns, keepJobRuns},
		// Anybody may try to sign in or ask for a link, with any address, as often as the limits allow. Four wrong passwords a month are no way in.
		{"login_failures", collections.ExpiredLoginFailures, keepFailures},
		{"mails", collections.ExpiredMails, keepMails},
		{"health_samples", collections.ExpiredHealthSamples, keepHealthSamples},
		{"processing_times", collections.ExpiredProcessingTimes, keepTimings},
	}
}

// Purge removes what has been kept long enough, in small transactions, each with its line in the audit trail, and says how much of what went.
// Doing it again removes nothing; what was not done before ctx ended is done the next time.
func Purge(ctx context.Context, app core.App, p Periods, now time.Time) (map[string]int, error) {
	counts := map[string]int{}
	for _, r := range p.rules() {
		counts[r.name] = 0
		for {
			if err := ctx.Err(); err != nil {
				return counts, err
			}
			gone, err := r.purge(app, now.Add(-max(least, r.keep)), now)
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
			Changes: audit.Changes{"rows": {Old: gone}, "before": {New: collections.Instant(before)}},
		}, now)
	})
	return gone, err
}
