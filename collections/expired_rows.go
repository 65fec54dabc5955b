package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Expired describes rows to purge once they are older than {:before}.
type Expired struct {
	Table, where string
	empty        string // the column to empty instead of deleting the row
	key          string // "id" if empty
}

// Rows to purge, by kind.
var (
	ExpiredPayloads = Expired{
		Table: GatewayEvents, empty: "payload", where: "status IN ('handled', 'ignored') AND received_at < {:before} AND payload != ''",
	}
	ExpiredEvents     = Expired{Table: GatewayEvents, where: "status IN ('handled', 'ignored') AND received_at < {:before} AND payload = ''"}
	ExpiredQuarantine = Expired{
		Table: GatewayEvents, where: "status IN ('released', 'discarded') AND closed_at != '' AND closed_at < {:before}",
	}
	// Only the text is removed. The row stays, because its id rejects a text that is sent again.
	ExpiredUnmatchedTexts = Expired{Table: Messages, empty: "text", where: unmatched + " AND read_at != '' AND read_at < {:before} AND text != ''"}
	ExpiredPushes         = Expired{Table: PushDeliveries, where: "status != 'pending' AND created_at < {:before}"}
	ExpiredNotifications  = Expired{
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
	// Deliveries to a disabled webhook are kept until it is enabled again.
	ExpiredWebhookDeliveries = Expired{
		Table: WebhookDeliveries,
		where: `status != 'pending' AND created_at < {:before} AND (status = 'delivered' OR webhook NOT IN (SELECT id FROM webhooks WHERE active = FALSE))`,
	}
	ExpiredProcessingTimes = Expired{Table: "processing_times", where: "bucket < {:before}", key: "bucket"}
)

// Remove deletes up to limit rows and returns how many it deleted.
func (e Expired) Remove(tx core.App, before time.Time, limit int) (int, error) {
	key, statement := e.key, "DELETE FROM "+e.Table
	if key == "" {
		key = "id"
	}
	if e.empty != "" {
		statement = "UPDATE " + e.Table + " SET " + e.empty + " = ''"
	}
	statement += fmt.Sprintf(" WHERE %[1]s IN (SELECT %[1]s FROM %[2]s WHERE %[3]s LIMIT %[4]d)", key, e.Table, e.where, limit)
	n, err := execCounted(tx, "purge "+e.Table, statement, dbx.Params{"before": FormatInstant(before)})
	return int(n), err
}
