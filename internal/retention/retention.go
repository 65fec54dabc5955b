// Package retention knows what is removed by itself once it has been kept long enough, and removes nothing else. Records of patients, their
// readings and their billing, and the audit trail are not on its list: the law wants them kept, and only a person may decide that they go.
package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Periods say how long each kind is kept. Source: docs/decisions/retention.md, "Retention".
type Periods struct {
	WebhookRaw, Quarantine        time.Duration
	PushDeliveries, Notifications time.Duration
	RefreshTokens, PushTokens     time.Duration
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

// rule is one kind of row that goes. where holds {:before}, the end of the period.
type rule struct {
	name, table, where string
	keep               func(Periods) time.Duration
	// change empties columns instead of removing the row.
	change string
	key    string // "id" when empty
}

func fixed(d time.Duration) func(Periods) time.Duration {
	return func(Periods) time.Duration { return d }
}

// rules are all that is purged, in an order in which nothing goes before what names it. Events that still wait for somebody, open or
// rejected, stay until they are closed.
var rules = []rule{
	{
		name: "webhook_payloads", table: collections.GatewayEvents, change: "payload = ''",
		where: "status IN ('handled', 'ignored') AND received_at < {:before} AND payload != ''", keep: func(p Periods) time.Duration { return p.WebhookRaw },
	},
	{
		name: "gateway_events", table: collections.GatewayEvents,
		where: "status IN ('handled', 'ignored') AND received_at < {:before} AND payload = ''",
		keep:  func(p Periods) time.Duration { return max(p.WebhookRaw, p.Quarantine) },
	},
	{
		name: "quarantine", table: collections.GatewayEvents,
		where: "status IN ('released', 'discarded') AND closed_at != '' AND closed_at < {:before}",
		keep:  func(p Periods) time.Duration { return p.Quarantine },
	},
	{
		name: "push_deliveries", table: collections.PushDeliveries,
		where: "status != 'pending' AND created_at < {:before}", keep: func(p Periods) time.Duration { return p.PushDeliveries },
	},
	{
		name: "notifications", table: collections.Notifications,
		where: `read_at != '' AND read_at < {:before} AND NOT EXISTS (SELECT 1 FROM push_deliveries d WHERE d.notification = notifications.id)`,
		keep:  func(p Periods) time.Duration { return p.Notifications },
	},
	{
		name: "refresh_tokens", table: collections.RefreshTokens,
		where: "expires_at != '' AND expires_at < {:before}", keep: func(p Periods) time.Duration { return p.RefreshTokens },
	},
	{
		name: "push_tokens", table: collections.PushTokens, // at least as long as what was sent to them
		where: `active = FALSE AND updated_at < {:before}`, keep: func(p Periods) time.Duration { return max(p.PushTokens, p.PushDeliveries) },
	},
	{
		name: "job_runs", table: collections.JobRuns, keep: fixed(keepJobRuns),
		where: `status != 'running' AND started_at < {:before} AND EXISTS (SELECT 1 FROM job_runs later WHERE later.job = job_runs.job
			AND later.started_at > job_runs.started_at AND later.status = 'succeeded')`,
	},
	// Anybody may try to sign in or ask for a link, with any address, as often as the limits allow. Four wrong passwords a month are no way in.
	{name: "login_failures", table: collections.LoginFailures, where: "last_failure_at < {:before} AND locked_until < {:before}", keep: fixed(keepFailures)},
	{name: "mails", table: collections.Mails, where: "status IN ('sent', 'failed') AND created_at < {:before}", keep: fixed(keepMails)},
	{name: "health_samples", table: collections.HealthSamples, where: "sampled_at < {:before}", keep: fixed(keepHealthSamples)},
	{name: "processing_times", table: "processing_times", where: "bucket < {:before}", keep: fixed(keepTimings), key: "bucket"},
}

// Purge removes what has been kept long enough, in small transactions, each with its line in the audit trail, and says how much of what went.
// Doing it again removes nothing; what was not done before ctx ended is done the next time.
func Purge(ctx context.Context, app core.App, p Periods, now time.Time) (map[string]int, error) {
	counts := map[string]int{}
	for _, r := range rules {
		counts[r.name] = 0
		for {
			if err := ctx.Err(); err != nil {
				return counts, err
			}
			gone, err := r.purge(app, now.Add(-max(least, r.keep(p))), now)
			if err != nil {
				return counts, err
			}
			counts[r.name] += gone
			if gone < batch {
				break
			}
		}
	}
	return counts, nil
}

// purge removes one batch.
func (r rule) purge(app core.App, before, now time.Time) (gone int, err error) {
	key := r.key
	if key == "" {
		key = "id"
	}
	sql := "DELETE FROM " + r.table
	if r.change != "" {
		sql = "UPDATE " + r.table + " SET " + r.change
	}
	sql += fmt.Sprintf(" WHERE %[1]s IN (SELECT %[1]s FROM %[2]s WHERE %[3]s LIMIT %[4]d)", key, r.table, r.where, batch)
	err = app.RunInTransaction(func(tx core.App) error {
		result, err := tx.NonconcurrentDB().NewQuery(sql).Bind(dbx.Params{"before": collections.Instant(before)}).Execute()
		if err != nil {
			return fmt.Errorf("purge %s: %w", r.name, err)
		}
		rows, err := result.RowsAffected()
		if gone = int(rows); err != nil || gone == 0 {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.RetentionPurge, Actor: audit.System(), ResourceType: r.table, ResourceID: r.name,
			Changes: audit.Changes{"rows": {Old: gone}, "before": {New: collections.Instant(before)}},
		}, now)
	})
	return gone, err
}
