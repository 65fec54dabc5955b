package retention_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/jobs/retention"
)

const day = 24 * time.Hour

var (
	now     = vigiltest.Clock
	periods = retention.Periods{
		WebhookRaw: 90 * day, Quarantine: 180 * day, PushDeliveries: 365 * day, Notifications: 365 * day, RefreshTokens: 30 * day, PushTokens: 365 * day,
		WebhooksOut: 90 * day, Changes: 30 * day,
	}
)

func ago(days int) string { return collections.FormatInstant(now.Add(-time.Duration(days) * day)) }

// rows inserts a row on either side of the period in each table.
func rows(t *testing.T, app core.App) {
	t.Helper()
	insert := func(table string, columns dbx.Params) {
		t.Helper()
		if _, err := app.DB().Insert(table, columns).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	event := func(id, status, received, closed string) {
		insert(collections.GatewayEvents, dbx.Params{"id": id, "status": status, "received_at": received, "closed_at": closed, "payload": "sealed"})
	}
	event("old handled", "handled", ago(91), "")
	event("new handled", "handled", ago(89), "")
	event("very old handled", "handled", ago(181), "")
	event("still open", "open", ago(3000), "")
	event("still rejected", "rejected", ago(3000), "")
	event("old discarded", "discarded", ago(400), ago(181))
	event("new released", "released", ago(400), ago(179))

	insert("changes", dbx.Params{"type": "alert", "record": "1", "change": "updated", "event": "", "patient": "", "at": ""}) // after the first row, which is removed
	if err := collections.MarkChangePosition(app, now.Add(-31*day)); err != nil {
		t.Fatal(err)
	}
	insert(collections.Notifications, dbx.Params{"id": "read long ago", "read_at": ago(366), "created_at": ago(500)})
	insert(collections.Notifications, dbx.Params{"id": "read lately", "read_at": ago(364), "created_at": ago(500)})
	insert(collections.Notifications, dbx.Params{"id": "never read", "read_at": "", "created_at": ago(3000)})
	insert(collections.Notifications, dbx.Params{"id": "with a delivery", "read_at": ago(366), "created_at": ago(500)})
	insert(collections.PushDeliveries, dbx.Params{"id": "old push", "status": "sent", "created_at": ago(366), "notification": "read long ago"})
	insert(collections.PushDeliveries, dbx.Params{"id": "new push", "status": "sent", "created_at": ago(364), "notification": "with a delivery"})
	insert(collections.PushDeliveries, dbx.Params{"id": "waiting push", "status": "pending", "created_at": ago(3000)})
	insert(collections.RefreshTokens, dbx.Params{"id": "old refresh", "expires_at": ago(31), "token_hash": "1"})
	insert(collections.RefreshTokens, dbx.Params{"id": "new refresh", "expires_at": ago(29), "token_hash": "2"})
	insert(collections.LoginFailures, dbx.Params{"id": "old failure", "email_key": "1", "failures": 4, "last_failure_at": ago(31)})
	insert(collections.LoginFailures, dbx.Params{"id": "new failure", "email_key": "2", "failures": 4, "last_failure_at": ago(29)})
	insert(collections.LoginFailures, dbx.Params{"id": "old failure, locked", "email_key": "3", "failures": 5, "last_failure_at": ago(31), "locked_until": ago(-1)})
	insert(collections.Mails, dbx.Params{"id": "old mail", "template": "x", "status": "sent", "created_at": ago(91)})
	insert(collections.Mails, dbx.Params{"id": "new mail", "template": "x", "status": "failed", "created_at": ago(89)})
	insert(collections.Mails, dbx.Params{"id": "waiting mail", "template": "x", "status": "pending", "created_at": ago(91)})
	insert(collections.Webhooks, dbx.Params{"id": "off", "active": false})
	insert(collections.Webhooks, dbx.Params{"id": "on", "active": true})
	for i, d := range []dbx.Params{
		{"id": "old and taken", "webhook": "off", "status": "delivered", "created_at": ago(91)},
		{"id": "old and given up", "webhook": "on", "status": "failed", "created_at": ago(91)},
		{"id": "old and missed", "webhook": "off", "status": "failed", "created_at": ago(91)},
		{"id": "old and waiting", "webhook": "on", "status": "pending", "created_at": ago(400)},
		{"id": "new and taken", "webhook": "on", "status": "delivered", "created_at": ago(89)},
	} {
		d["seq"] = i + 1
		insert(collections.WebhookDeliveries, d)
	}
	for id, text := range map[string]dbx.Params{
		"closed long ago": {"read_at": ago(181)}, "closed lately": {"read_at": ago(179)}, "still unread": {}, "of a patient": {"patient": "p", "read_at": ago(3000)},
	} {
		for column, value := range map[string]any{"id": id, "provider_id": id, "direction": "in", "text": "sealed", "created_at": ago(4000)} {
			text[column] = value
		}
		insert(collections.Messages, text)
	}
	insert(collections.PushTokens, dbx.Params{"id": "old token", "active": false, "updated_at": ago(366), "token_hash": "1"})
	insert(collections.PushTokens, dbx.Params{"id": "new token", "active": false, "updated_at": ago(364), "token_hash": "2"})
	insert(collections.PushTokens, dbx.Params{"id": "active token", "active": true, "updated_at": ago(3000), "token_hash": "3"})
	insert(collections.JobRuns, dbx.Params{"id": "old run", "job": "a", "status": "failed", "started_at": ago(500)})
	insert(collections.JobRuns, dbx.Params{"id": "last success", "job": "a", "status": "succeeded", "started_at": ago(450)})
	insert(collections.HealthSamples, dbx.Params{"id": "old sample", "status": "healthy", "sampled_at": ago(61)})
	insert(collections.HealthSamples, dbx.Params{"id": "new sample", "status": "healthy", "sampled_at": ago(59)})
	insert("processing_times", dbx.Params{"bucket": ago(61), "ms": 1, "readings": 1, "total_us": 1})
	insert("processing_times", dbx.Params{"bucket": ago(59), "ms": 1, "readings": 1, "total_us": 1})
}

func left(t *testing.T, app core.App, table string) (ids []string) {
	t.Helper()
	if err := app.DB().Select("id").From(table).OrderBy("id").Column(&ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

// Source: docs/decisions/retention.md, "Retention".
func TestPurge(t *testing.T) {
	app := vigiltest.NewApp(t)
	rows(t, app)
	counts, err := retention.Purge(t.Context(), app, periods, now)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"webhook_payloads": 2, "gateway_events": 1, "quarantine": 1, "unmatched_texts": 1, "push_deliveries": 1, "notifications": 1, "refresh_tokens": 1, "push_tokens": 1,
		"job_runs": 1, "login_failures": 1, "mails": 1, "health_samples": 1, "processing_times": 1, "webhook_deliveries": 2, "changes": 1,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
	var emptied []string
	if err := app.DB().NewQuery(`SELECT id FROM messages WHERE text = ''`).Column(&emptied); err != nil || !slices.Equal(emptied, []string{"closed long ago"}) {
		t.Errorf("without a text: %v, %v", emptied, err)
	}
	for table, want := range map[string][]string{
		collections.Messages:          {"closed lately", "closed long ago", "of a patient", "still unread"},
		collections.WebhookDeliveries: {"new and taken", "old and missed", "old and waiting"},
		collections.GatewayEvents:     {"new handled", "new released", "old handled", "still open", "still rejected"},
		collections.Notifications:     {"never read", "read lately", "with a delivery"},
		collections.PushDeliveries:    {"new push", "waiting push"},
		collections.RefreshTokens:     {"new refresh"},
		collections.PushTokens:        {"active token", "new token"},
		collections.JobRuns:           {"last success"},
		collections.LoginFailures:     {"new failure", "old failure, locked"},
		collections.Mails:             {"new mail", "waiting mail"},
		collections.HealthSamples:     {"new sample"},
	} {
		if diff := cmp.Diff(want, left(t, app, table)); diff != "" {
			t.Errorf("%s: %s", table, diff)
		}
	}
	var kept []string
	if err := app.DB().NewQuery(`SELECT id FROM gateway_events WHERE payload != '' ORDER BY id`).Column(&kept); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new handled", "new released", "still open", "still rejected"}, kept); diff != "" {
		t.Errorf("payloads: %s", diff)
	}

	// The purge is audited, and a second run removes nothing.
	entries, total, err := audit.List(app, audit.Filter{Event: string(audit.RetentionPurge)}, 0, 100)
	if err != nil || total != len(want) || len(entries) == 0 || fmt.Sprint(entries[0].Changes["rows"].Old) != "1" {
		t.Errorf("%d entries for %d kinds (%v)", total, len(want), err)
	}
	again, err := retention.Purge(t.Context(), app, periods, now)
	for name, gone := range again {
		if gone != 0 {
			t.Errorf("%s: %d more", name, gone)
		}
	}
	if _, after, _ := audit.List(app, audit.Filter{Event: string(audit.RetentionPurge)}, 0, 1); err != nil || after != total {
		t.Errorf("the second run added %d entries (%v)", after-total, err)
	}
}

// Protected data stays with any settings, and nothing from today is removed.
func TestPurgeKeepsProtectedData(t *testing.T) {
	app := vigiltest.NewApp(t)
	if _, err := app.DB().Insert(collections.RefreshTokens, dbx.Params{"id": "of this morning", "expires_at": ago(0), "token_hash": "1"}).Execute(); err != nil {
		t.Fatal(err)
	}
	if err := audit.Append(app, audit.Entry{Event: audit.Login, Actor: audit.System()}, now.AddDate(-30, 0, 0)); err != nil {
		t.Fatal(err)
	}
	protected := []string{
		collections.Patients, collections.Observations, collections.Alerts, collections.Escalations, collections.Thresholds, collections.ThresholdChanges,
		collections.Consents, collections.BillingEntries, collections.TimeEntries, collections.AuditLog, collections.Transmissions, collections.DeviceAssignments,
	}
	for _, table := range retention.Tables() {
		if slices.Contains(protected, table) {
			t.Errorf("%s is purged", table)
		}
	}
	if counts, err := retention.Purge(t.Context(), app, retention.Periods{}, now); err != nil || counts["refresh_tokens"] != 0 {
		t.Errorf("%v (%v)", counts, err)
	}
	if got := left(t, app, collections.AuditLog); len(got) != 1 {
		t.Errorf("the trail has %d entries", len(got))
	}
}

// A large purge uses several transactions.
func TestPurgeInBatches(t *testing.T) {
	app := vigiltest.NewApp(t)
	const many = 1201
	_, err := app.DB().NewQuery(`INSERT INTO health_samples (id, status, sampled_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {:many}) SELECT 'sample' || i, 'healthy', {:at} FROM n`).
		Bind(dbx.Params{"many": many, "at": ago(100)}).Execute()
	if err != nil {
		t.Fatal(err)
	}
	counts, err := retention.Purge(t.Context(), app, periods, now)
	if _, entries, _ := audit.List(app, audit.Filter{Event: string(audit.RetentionPurge)}, 0, 1); err != nil || counts["health_samples"] != many || entries != 3 {
		t.Errorf("%v in %d transactions (%v)", counts, entries, err)
	}
}
