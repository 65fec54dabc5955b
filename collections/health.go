package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// StoreHealthSample stores the health of the service at one moment; services is JSON.
func StoreHealthSample(tx core.App, status, services string, at time.Time) error {
	return insert(tx, "store health sample", HealthSamples, dbx.Params{"sampled_at": FormatInstant(at), "status": status, "services": services})
}

// HealthSamplesSince counts the samples since a time, and those during which nothing could be delivered: the database, the workers or a
// configured EMR were down.
func HealthSamplesSince(app core.App, since time.Time) (samples, down int, err error) {
	err = app.DB().NewQuery(`SELECT COUNT(*), COALESCE(SUM(CASE WHEN status = 'down' THEN TRUE WHEN status = 'healthy' OR NOT json_valid(services) THEN FALSE
			ELSE COALESCE(services ->> '$.background_worker.status', '') = 'down'
				OR COALESCE(services ->> '$.emr.status', '') = 'down' AND COALESCE(services ->> '$.emr.detail', '') != 'not configured' END), 0)
		FROM health_samples WHERE sampled_at >= {:from}`).
		Bind(dbx.Params{"from": FormatInstant(since)}).Row(&samples, &down)
	return samples, down, wrap(err, "count health samples")
}

// Queue describes rows that wait in the database: a condition that a partial index serves, an optional second condition, and the column with
// the start of the wait.
type Queue struct{ Name, table, where, also, since string }

// Queues lists all queues in the database.
var Queues = []Queue{
	{"transmissions", Transmissions, duePending, waitingFor + "'turn'", "created_at"},
	{"transmission_retries", Transmissions, retryScheduled, "", "created_at"},
	{"transmissions_unlinked", Transmissions, waitingFor + "'link' AND " + notDeleted, "", "created_at"},
	{"emr_corrections", Transmissions, correctionDue + " AND " + notDeleted, "", "correction_due_at"},
	{"announcements", Announcements, "told_at = ''", "", "created_at"},
	{"pushes", PushDeliveries, "status = 'pending'", "", "created_at"},
	{"mails", Mails, "status = 'pending'", "", "created_at"},
	{"messages", Messages, dueMessages, "", "created_at"},
	{"quarantine", GatewayEvents, "status = 'open'", "", "received_at"},
	{"quarantine_critical", GatewayEvents, "critical = TRUE AND status IN ('open', 'rejected')", "", "received_at"},
	{"webhooks", WebhookDeliveries, "status = 'pending'", "", "created_at"},
}

// dueMessages selects messages that are due, those that are tried again in a minute included; others wait for the morning.
const dueMessages = `state = 'queued' AND due_at <= strftime('%Y-%m-%dT%H:%M:%f000Z', 'now', '+2 minutes')`

// Depth returns the number of waiting rows and the start of the longest wait.
func (q Queue) Depth(app core.App) (waiting int, first time.Time, err error) {
	for _, where := range []string{q.where, q.also} {
		if where == "" {
			continue
		}
		var some int
		var oldest string
		err := app.ConcurrentDB().Select("COUNT(*)", "COALESCE(MIN("+q.since+"), '')").From(q.table).Where(dbx.NewExp(where)).Row(&some, &oldest)
		if err != nil {
			return 0, time.Time{}, err
		}
		waiting += some
		if at := ParseInstant(oldest); first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return waiting, first, nil
}

// CountUnacknowledgedAlerts counts the unacknowledged alerts by level.
func CountUnacknowledgedAlerts(app core.App) (map[string]int, error) {
	return readMap[int]("count unacknowledged alerts",
		app.ConcurrentDB().NewQuery(`SELECT level, COUNT(*) FROM alerts WHERE acknowledged = FALSE GROUP BY level`))
}
