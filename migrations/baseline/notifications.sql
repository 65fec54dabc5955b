CREATE TABLE `push_tokens` (
  `active` BOOLEAN DEFAULT FALSE NOT NULL,
  `app_version` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `deliverable` BOOLEAN DEFAULT FALSE NOT NULL,
  `device_id` TEXT DEFAULT '' NOT NULL,
  `expires_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `inactive_because` TEXT DEFAULT '' NOT NULL,
  `last_delivered_at` TEXT DEFAULT '' NOT NULL,
  `platform` TEXT DEFAULT '' NOT NULL,
  `token` TEXT DEFAULT '' NOT NULL,
  `token_hash` TEXT DEFAULT '' NOT NULL,
  `token_hint` TEXT DEFAULT '' NOT NULL,
  `type` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL,
  "session" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `notification_preferences` (
  `channels` JSON DEFAULT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `quiet_hours` JSON DEFAULT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_notification_preferences_user` ON `notification_preferences` (`user`);

CREATE TABLE `notifications` (
  `alert` TEXT DEFAULT '' NOT NULL,
  `billing_entry` TEXT DEFAULT '' NOT NULL,
  `body` TEXT DEFAULT '' NOT NULL,
  `channel` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `dedupe_key` TEXT DEFAULT '' NOT NULL,
  `dispatched_at` TEXT DEFAULT '' NOT NULL,
  `due_at` TEXT DEFAULT '' NOT NULL,
  `escalation` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `in_app` BOOLEAN DEFAULT FALSE NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `read_at` TEXT DEFAULT '' NOT NULL,
  `severity` TEXT DEFAULT '' NOT NULL,
  `title` TEXT DEFAULT '' NOT NULL,
  `type` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL,
  "at_once" BOOLEAN DEFAULT FALSE NOT NULL
);

CREATE TABLE `push_deliveries` (
  `attempted_at` TEXT DEFAULT '' NOT NULL,
  `attempts` NUMERIC DEFAULT 0 NOT NULL,
  `body` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `next_attempt_at` TEXT DEFAULT '' NOT NULL,
  `notification` TEXT DEFAULT '' NOT NULL,
  `push_token` TEXT DEFAULT '' NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `status_code` REAL DEFAULT NULL,
  `title` TEXT DEFAULT '' NOT NULL,
  `type` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `mails` (
  `attempts` NUMERIC DEFAULT 0 NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `error` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `next_attempt_at` TEXT DEFAULT '' NOT NULL,
  `parameters` TEXT DEFAULT '' NOT NULL,
  `recipient` TEXT DEFAULT '' NOT NULL,
  `sent_at` TEXT DEFAULT '' NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `template` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_mails_pending` ON `mails` (`next_attempt_at`) WHERE status = 'pending';

CREATE INDEX `idx_mails_user` ON `mails` (
  `user`,
  `created_at`
);

CREATE TABLE `announcements` (
  `alert` TEXT DEFAULT '' NOT NULL,
  `billing_entry` TEXT DEFAULT '' NOT NULL,
  `body` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `escalation` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `key` TEXT DEFAULT '' NOT NULL,
  `kind` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `severity` TEXT DEFAULT '' NOT NULL,
  `told_at` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL,
  "at_once" BOOLEAN DEFAULT FALSE NOT NULL
);

CREATE INDEX `idx_push_deliveries_notification` ON `push_deliveries` (`notification`);

CREATE INDEX `idx_push_deliveries_pending` ON `push_deliveries` (`next_attempt_at`) WHERE status = 'pending';

CREATE INDEX `idx_push_deliveries_created` ON `push_deliveries` (`created_at`);

CREATE UNIQUE INDEX `idx_push_deliveries_once` ON `push_deliveries` (
  `notification`,
  `push_token`
) WHERE push_token != '';

CREATE UNIQUE INDEX `idx_announcements_key` ON `announcements` (`key`);

CREATE INDEX `idx_announcements_open` ON `announcements` (`created_at`) WHERE told_at = '';

CREATE INDEX `idx_notifications_user` ON `notifications` (
  `user`,
  `created_at`
);

CREATE INDEX `idx_notifications_unread` ON `notifications` (
  `user`,
  `created_at`
) WHERE read_at = '';

CREATE INDEX `idx_notifications_due` ON `notifications` (`due_at`) WHERE dispatched_at = '';

CREATE UNIQUE INDEX `idx_notifications_dedupe` ON `notifications` (
  `user`,
  `dedupe_key`
) WHERE dedupe_key != '';

CREATE TABLE changes (seq INTEGER PRIMARY KEY, type TEXT, record TEXT, change TEXT, event TEXT, patient TEXT, at TEXT);

CREATE TABLE change_marks (at TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE `webhooks` (
  `active` BOOLEAN DEFAULT FALSE NOT NULL,
  `again_anew` BOOLEAN DEFAULT FALSE NOT NULL,
  `again_since` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `events` JSON DEFAULT NULL,
  `failing_since` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `include_values` BOOLEAN DEFAULT FALSE NOT NULL,
  `last_delivered_at` TEXT DEFAULT '' NOT NULL,
  `off_because` TEXT DEFAULT '' NOT NULL,
  `paused_until` TEXT DEFAULT '' NOT NULL,
  `position` NUMERIC DEFAULT 0 NOT NULL,
  `previous_secret` TEXT DEFAULT '' NOT NULL,
  `previous_until` TEXT DEFAULT '' NOT NULL,
  `secret` TEXT DEFAULT '' NOT NULL,
  `told_at` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `url` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_webhooks_id_nocase` ON `webhooks` (`id` COLLATE NOCASE);

CREATE INDEX `idx_webhooks_created` ON `webhooks` (
  `created_at`,
  `id`
);

CREATE TABLE `webhook_deliveries` (
  `attempts` NUMERIC DEFAULT 0 NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `delivered_at` TEXT DEFAULT '' NOT NULL,
  `due_at` TEXT DEFAULT '' NOT NULL,
  `error` TEXT DEFAULT '' NOT NULL,
  `event` TEXT DEFAULT '' NOT NULL,
  `first_attempt_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `last_attempt_at` TEXT DEFAULT '' NOT NULL,
  `occurred_at` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `queue` TEXT DEFAULT '' NOT NULL,
  `record` TEXT DEFAULT '' NOT NULL,
  `seq` NUMERIC DEFAULT 0 NOT NULL,
  `spent` NUMERIC DEFAULT 0 NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `status_code` NUMERIC DEFAULT 0 NOT NULL,
  `waits` BOOLEAN DEFAULT FALSE NOT NULL,
  `webhook` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_webhook_deliveries_id_nocase` ON `webhook_deliveries` (`id` COLLATE NOCASE);

CREATE UNIQUE INDEX `idx_webhook_deliveries_change` ON `webhook_deliveries` (
  `webhook`,
  `seq`
) WHERE seq > 0;

CREATE INDEX `idx_webhook_deliveries_due` ON `webhook_deliveries` (
  `webhook`,
  `due_at`,
  `seq`
) WHERE status = 'pending' AND waits = FALSE;

CREATE INDEX `idx_webhook_deliveries_queue` ON `webhook_deliveries` (
  `webhook`,
  `queue`,
  `seq`,
  `created_at`
) WHERE status = 'pending';

CREATE INDEX `idx_webhook_deliveries_failed` ON `webhook_deliveries` (
  `webhook`,
  `first_attempt_at`
) WHERE status = 'failed';

CREATE INDEX `idx_webhook_deliveries_log` ON `webhook_deliveries` (
  `webhook`,
  `created_at`,
  `id`
);

CREATE INDEX `idx_webhook_deliveries_ended` ON `webhook_deliveries` (`created_at`) WHERE status != 'pending';

CREATE INDEX `idx_push_tokens_user` ON `push_tokens` (
  `user`,
  `active`
);

CREATE INDEX `idx_push_tokens_device` ON `push_tokens` (
  `user`,
  `device_id`
);

CREATE UNIQUE INDEX `idx_push_tokens_active_token` ON `push_tokens` (`token_hash`) WHERE active = TRUE;

INSERT INTO changes (type, record, change, event, patient, at) VALUES ('', lower(hex(randomblob(16))), '', '', '', '');
