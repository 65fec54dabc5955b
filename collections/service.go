package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// StartJob notes that a job runs. Only one run of a job can be noted as running; ok is false when there is one already.
func StartJob(app core.App, job string, now time.Time) (runID string, ok bool, err error) {
	at := Instant(now)
	err = app.NonconcurrentDB().NewQuery(`INSERT INTO job_runs (job, scheduled_at, started_at, status)
		VALUES ({:job}, {:now}, {:now}, 'running') ON CONFLICT DO NOTHING RETURNING id`).
		Bind(dbx.Params{"job": job, "now": at}).Row(&runID)
	if Missing(err) {
		return "", false, nil
	}
	return runID, err == nil, wrap(err, "start job %s", job)
}

// FinishJob notes how a run ended. failure is "" for success; it must hold no health information.
func FinishJob(app core.App, runID string, counts map[string]int, failure string, now time.Time) error {
	encoded, err := json.Marshal(counts)
	if err != nil {
		return fmt.Errorf("encode job counts: %w", err)
	}
	status := "succeeded"
	if failure != "" {
		status = "failed"
	}
	return update(app, "finish job", JobRuns, dbx.Params{
		"status": status, "finished_at": Instant(now), "counts": string(encoded), "error": failure,
	}, dbx.HashExp{"id": runID})
}

// AbandonJobs is for the start of the process: a run noted as running belongs to a process that is gone.
func AbandonJobs(app core.App, now time.Time) error {
	return update(app, "abandon jobs", JobRuns, dbx.Params{"status": "failed", "finished_at": Instant(now), "error": AbandonedRun},
		dbx.HashExp{"status": "running"})
}

// LastSuccesses are when the last runs that succeeded were started, by job.
func LastSuccesses(app core.App) (map[string]string, error) {
	return readMap[string]("read job runs", app.DB().NewQuery(`SELECT job, MAX(started_at) FROM job_runs WHERE status = 'succeeded' GROUP BY job`))
}

// LastSuccess is when the last run of a job that succeeded was started; zero when none is noted.
func LastSuccess(app core.App, job string) (time.Time, error) {
	started, err := queryValue[string](app, "find last run of "+job,
		`SELECT COALESCE(MAX(started_at), '') FROM job_runs WHERE job = {:job} AND status = 'succeeded'`, dbx.Params{"job": job})
	return ParseInstant(started), err
}

// StoreHealthSample stores how the service was at a moment; services is JSON.
func StoreHealthSample(tx core.App, status, services string, at time.Time) error {
	return insert(tx, "store health sample", HealthSamples, dbx.Params{"sampled_at": Instant(at), "status": status, "services": services})
}

// HealthSamplesSince counts the samples since a time, and those in which nothing could have been delivered: the database, the workers or the EMR were
// down. An EMR that nobody configured was not.
func HealthSamplesSince(app core.App, since time.Time) (samples, down int, err error) {
	err = app.DB().NewQuery(`SELECT COUNT(*), COALESCE(SUM(CASE WHEN status = 'down' THEN TRUE WHEN status = 'healthy' OR NOT json_valid(services) THEN FALSE
			ELSE COALESCE(services ->> '$.background_worker.status', '') = 'down'
				OR COALESCE(services ->> '$.emr.status', '') = 'down' AND COALESCE(services ->> '$.emr.detail', '') != 'not configured' END), 0)
		FROM health_samples WHERE sampled_at >= {:from}`).
		Bind(dbx.Params{"from": Instant(since)}).Row(&samples, &down)
	return samples, down, wrap(err, "count health samples")
}

// Queue is what waits in the database: a condition that a small index serves, another if one alone does not say it, and since when each row waits.
type Queue struct{ Name, table, where, also, since string }

// Queues are all that wait in the database.
var Queues = []Queue{
	{"transmissions", Transmissions, waiting, waitingFor + "'turn'", "created_at"},
	{"transmission_retries", Transmissions, retrying, "", "created_at"},
	{"transmissions_unlinked", Transmissions, waitingFor + "'link' AND " + notDeleted, "", "created_at"},
	{"emr_corrections", Transmissions, correctionDue + " AND " + notDeleted, "", "correction_due_at"},
	{"announcements", Announcements, "told_at = ''", "", "created_at"},
	{"pushes", PushDeliveries, "status = 'pending'", "", "created_at"},
	{"mails", Mails, "status = 'pending'", "", "created_at"},
	{"quarantine", GatewayEvents, "status = 'open'", "", "received_at"},
	{"webhooks", WebhookDeliveries, "status = 'pending'", "", "created_at"},
}

// Waiting is how much waits, and since when.
func (q Queue) Waiting(app core.App) (waiting int, first time.Time, err error) {
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

// UnacknowledgedAlerts counts the alerts that nobody has acknowledged, by level.
func UnacknowledgedAlerts(app core.App) (map[string]int, error) {
	return readMap[int]("count unacknowledged alerts",
		app.ConcurrentDB().NewQuery(`SELECT level, COUNT(*) FROM alerts WHERE acknowledged = FALSE GROUP BY level`))
}

// Expired are rows that go once they are older than {:before}.
type Expired struct {
	Table, where string
	empty        string // the column that is emptied instead of removing the row
	key          string // "id" when empty
}

// What may expire.
var (
	ExpiredPayloads = Expired{
		Table: GatewayEvents, empty: "payload", where: "status IN ('handled', 'ignored') AND received_at < {:before} AND payload != ''",
	}
	ExpiredEvents     = Expired{Table: GatewayEvents, where: "status IN ('handled', 'ignored') AND received_at < {:before} AND payload = ''"}
	ExpiredQuarantine = Expired{
		Table: GatewayEvents, where: "status IN ('released', 'discarded') AND closed_at != '' AND closed_at < {:before}",
	}
	ExpiredPushes        = Expired{Table: PushDeliveries, where: "status != 'pending' AND created_at < {:before}"}
	ExpiredNotifications = Expired{
		Table: Notifications,
		where: `read_at != '' AND read_at < {:before} AND NOT EXISTS (SELECT 1 FROM push_deliveries d WHERE d.notification = notifications.id)`,
	}
	ExpiredRefreshTokens = Expired{Table: RefreshTokens, where: "expires_at != '' AND expires_at < {:before}"}
	ExpiredPushTokens    = Expired{Table: PushTokens, where: `active = FALSE AND updated_at < {:before}`}
	ExpiredJobRuns       = Expired{
		Table: JobRuns,
		where: `status != 'running' AND started_at < {:before} AND EXISTS (SELECT 1 FROM job_runs later WHERE later.job = job_runs.job
			AND later.started_at > job_runs.started_at AND later.status = 'succeeded')`,
	}
	ExpiredLoginFailures = Expired{Table: LoginFailures, where: "last_failure_at < {:before} AND locked_until < {:before}"}
	ExpiredMails         = Expired{Table: Mails, where: "status IN ('sent', 'failed') AND created_at < {:before}"}
	ExpiredHealthSamples = Expired{Table: HealthSamples, where: "sampled_at < {:before}"}
	// What a webhook that is out of use has not taken goes on waiting for it.
	ExpiredWebhookDeliveries = Expired{
		Table: WebhookDeliveries,
		where: `status != 'pending' AND created_at < {:before} AND (status = 'delivered' OR webhook NOT IN (SELECT id FROM webhooks WHERE active = FALSE))`,
	}
	ExpiredTimings = Expired{Table: "processing_times", where: "bucket < {:before}", key: "bucket"}
)

// Remove removes up to limit of them, and returns how many went.
func (e Expired) Remove(tx core.App, before time.Time, limit int) (int, error) {
	key, statement := e.key, "DELETE FROM "+e.Table
	if key == "" {
		key = "id"
	}
	if e.empty != "" {
		statement = "UPDATE " + e.Table + " SET " + e.empty + " = ''"
	}
	statement += fmt.Sprintf(" WHERE %[1]s IN (SELECT %[1]s FROM %[2]s WHERE %[3]s LIMIT %[4]d)", key, e.Table, e.where, limit)
	n, err := change(tx, "purge "+e.Table, statement, dbx.Params{"before": Instant(before)})
	return int(n), err
}
