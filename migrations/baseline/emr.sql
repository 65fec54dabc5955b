CREATE TABLE `transmissions` (
  `ambiguous` BOOLEAN DEFAULT FALSE NOT NULL,
  `attempt_count` NUMERIC DEFAULT 0 NOT NULL,
  `claimed_at` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `diagnostics` TEXT DEFAULT '' NOT NULL,
  `emr_resource_id` TEXT DEFAULT '' NOT NULL,
  `error_code` TEXT DEFAULT '' NOT NULL,
  `error_message` TEXT DEFAULT '' NOT NULL,
  `first_attempted_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `last_attempted_at` TEXT DEFAULT '' NOT NULL,
  `next_retry_at` TEXT DEFAULT '' NOT NULL,
  `observation` TEXT DEFAULT '' NOT NULL,
  `observation_type` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `sent_hash` TEXT DEFAULT '' NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  "form" TEXT DEFAULT '' NOT NULL,
  "period_from" TEXT DEFAULT '' NOT NULL,
  "period_to" TEXT DEFAULT '' NOT NULL,
  "corrections" NUMERIC DEFAULT 0 NOT NULL,
  "waits_for_line" BOOLEAN DEFAULT FALSE NOT NULL,
  "waits_for" TEXT DEFAULT '' NOT NULL,
  "correction_due_at" TEXT DEFAULT '' NOT NULL,
  "correction_closed_at" TEXT DEFAULT '' NOT NULL,
  "correction_closed_by" TEXT DEFAULT '' NOT NULL,
  "correction_closed_at_change" NUMERIC DEFAULT 0 NOT NULL,
  "correction_note" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `transmission_attempts` (
  `duration_ms` NUMERIC DEFAULT 0 NOT NULL,
  `error_code` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `request_id` TEXT DEFAULT '' NOT NULL,
  `started_at` TEXT DEFAULT '' NOT NULL,
  `status_code` REAL DEFAULT NULL,
  `transmission` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_transmission_attempts_transmission` ON `transmission_attempts` (
  `transmission`,
  `started_at`
);

CREATE TABLE `emr_tokens` (
  `access_token` TEXT DEFAULT '' NOT NULL,
  `connected_by` TEXT DEFAULT '' NOT NULL,
  `expires_at` TEXT DEFAULT '' NOT NULL,
  `flow` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `obtained_at` TEXT DEFAULT '' NOT NULL,
  `refresh_expires_at` TEXT DEFAULT '' NOT NULL,
  `refresh_token` TEXT DEFAULT '' NOT NULL,
  `scope` TEXT DEFAULT '' NOT NULL,
  "audience" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `emr_auth_states` (
  `created_at` TEXT DEFAULT '' NOT NULL,
  `expires_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `state_hash` TEXT DEFAULT '' NOT NULL,
  `used_at` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL,
  `verifier` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_emr_auth_states_hash` ON `emr_auth_states` (`state_hash`);

CREATE UNIQUE INDEX `idx_emr_tokens_flow` ON `emr_tokens` (`flow`);

CREATE TABLE transmission_totals (status TEXT PRIMARY KEY NOT NULL, transmissions INTEGER NOT NULL) WITHOUT ROWID;

CREATE TRIGGER transmissions_leave AFTER DELETE ON transmissions BEGIN UPDATE transmission_totals SET transmissions = transmissions - 1 WHERE status = OLD.status; END;

CREATE TABLE `exports` (
  `attempts` NUMERIC DEFAULT 0 NOT NULL,
  `changed_since` TEXT DEFAULT '' NOT NULL,
  `client` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `expires_at` TEXT DEFAULT '' NOT NULL,
  `file_key` TEXT DEFAULT '' NOT NULL,
  `files` JSON DEFAULT NULL,
  `finished_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `ignored` JSON DEFAULT NULL,
  `request` TEXT DEFAULT '' NOT NULL,
  `resource_types` JSON DEFAULT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `transaction_time` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_exports_id_nocase` ON `exports` (`id` COLLATE NOCASE);

CREATE INDEX `idx_exports_status` ON `exports` (
  `status`,
  `created_at`
);

CREATE INDEX `idx_exports_client` ON `exports` (`client`);

CREATE INDEX `idx_transmissions_retrying` ON `transmissions` (`next_retry_at`) WHERE status = 'failed' AND next_retry_at != '';

CREATE INDEX `idx_transmissions_processing` ON `transmissions` (`claimed_at`) WHERE status = 'processing';

CREATE INDEX `idx_transmissions_failed` ON `transmissions` (`last_attempted_at`) WHERE status = 'failed';

CREATE INDEX `idx_transmissions_transmitted` ON `transmissions` (`last_attempted_at`) WHERE status = 'transmitted';

CREATE UNIQUE INDEX `idx_transmissions_observation` ON `transmissions` (
  `observation`,
  `form`
);

CREATE INDEX `idx_transmissions_means` ON `transmissions` (
  `patient`,
  `period_from`
) WHERE form = 'mean_blood_pressure';

CREATE INDEX `idx_transmissions_given_up` ON `transmissions` (
  `created_at`,
  `id`,
  `patient`
) WHERE status = 'failed' AND next_retry_at = '' AND error_code != 'entered_in_error';

CREATE INDEX `idx_transmissions_error` ON `transmissions` (
  `error_code`,
  `created_at`,
  `id`
) WHERE error_code != '';

CREATE INDEX `idx_transmissions_waiting` ON `transmissions` (
  `created_at`,
  `id`
) WHERE status = 'pending' AND waits_for = '';

CREATE INDEX `idx_transmissions_waits` ON `transmissions` (
  `patient`,
  `waits_for`
) WHERE waits_for != '';

CREATE INDEX `idx_transmissions_corrections` ON `transmissions` (`correction_due_at`) WHERE correction_due_at != '';

CREATE INDEX idx_transmissions_of_patient ON transmissions (patient);

CREATE TRIGGER transmissions_join AFTER INSERT ON transmissions BEGIN INSERT INTO transmission_totals (status, transmissions) VALUES (NEW.status, 0) ON CONFLICT (status) DO NOTHING;
				UPDATE transmission_totals SET transmissions = transmissions + 1 WHERE status = NEW.status; END;

CREATE TRIGGER transmissions_move AFTER UPDATE OF status ON transmissions WHEN OLD.status != NEW.status BEGIN UPDATE transmission_totals SET transmissions = transmissions - 1 WHERE status = OLD.status;INSERT INTO transmission_totals (status, transmissions) VALUES (NEW.status, 0) ON CONFLICT (status) DO NOTHING;
				UPDATE transmission_totals SET transmissions = transmissions + 1 WHERE status = NEW.status; END;
