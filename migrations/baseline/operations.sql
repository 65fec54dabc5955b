CREATE TABLE sequences (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE sealed_keys (name TEXT PRIMARY KEY NOT NULL, sealed TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE `job_runs` (
  `counts` JSON DEFAULT NULL,
  `error` TEXT DEFAULT '' NOT NULL,
  `finished_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `job` TEXT DEFAULT '' NOT NULL,
  `scheduled_at` TEXT DEFAULT '' NOT NULL,
  `started_at` TEXT DEFAULT '' NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_job_runs_job` ON `job_runs` (
  `job`,
  `started_at`
);

CREATE UNIQUE INDEX `idx_job_runs_running` ON `job_runs` (`job`) WHERE status = 'running';

CREATE INDEX `idx_job_runs_started` ON `job_runs` (`started_at`);

CREATE TABLE `health_samples` (
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `sampled_at` TEXT DEFAULT '' NOT NULL,
  `services` JSON DEFAULT NULL,
  `status` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_health_samples_sampled` ON `health_samples` (`sampled_at`);

CREATE TABLE ring_keys (key_id TEXT PRIMARY KEY NOT NULL, sealed TEXT NOT NULL, uses INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE service_keys (key_id TEXT PRIMARY KEY NOT NULL, sealed TEXT NOT NULL, seals INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE `idempotency_keys` (
  `answer` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `request` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_idempotency_keys_created` ON `idempotency_keys` (`created_at`);

CREATE TABLE `backups` (
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `name` TEXT DEFAULT '' NOT NULL,
  `taken_at` TEXT DEFAULT '' NOT NULL,
  `verified_at` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_backups_name` ON `backups` (`name`);

CREATE INDEX `idx_backups_taken` ON `backups` (`taken_at`);

CREATE INDEX `idx_backups_verified` ON `backups` (`verified_at`);

INSERT INTO sequences (name, value) VALUES ('threshold_templates', 6);

INSERT INTO sequences (name, value) VALUES ('triage_list', 1);
