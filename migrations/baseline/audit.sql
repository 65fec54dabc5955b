CREATE TABLE `audit_log` (
  `action` TEXT DEFAULT '' NOT NULL,
  `actor_email` TEXT DEFAULT '' NOT NULL,
  `actor_id` TEXT DEFAULT '' NOT NULL,
  `actor_role` TEXT DEFAULT '' NOT NULL,
  `actor_type` TEXT DEFAULT '' NOT NULL,
  `changes` TEXT DEFAULT '' NOT NULL,
  `client` TEXT DEFAULT '' NOT NULL,
  `event` TEXT DEFAULT '' NOT NULL,
  `hash` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `outcome` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `prev_hash` TEXT DEFAULT '' NOT NULL,
  `reason` TEXT DEFAULT '' NOT NULL,
  `recorded_at` TEXT DEFAULT '' NOT NULL,
  `request_id` TEXT DEFAULT '' NOT NULL,
  `resource_id` TEXT DEFAULT '' NOT NULL,
  `resource_type` TEXT DEFAULT '' NOT NULL,
  `source_ip` TEXT DEFAULT '' NOT NULL,
  "actor_name" TEXT DEFAULT '' NOT NULL
);

CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END;

CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END;

CREATE TABLE audit_state (id INTEGER PRIMARY KEY CHECK (id = 1), entries INTEGER NOT NULL, head TEXT NOT NULL,
				unkeyed INTEGER NOT NULL, unkeyed_head TEXT NOT NULL, seal TEXT NOT NULL);

CREATE TRIGGER audit_state_no_delete BEFORE DELETE ON audit_state BEGIN SELECT RAISE(ABORT,'audit_state is kept'); END;

CREATE TRIGGER audit_state_no_replace BEFORE INSERT ON audit_state WHEN EXISTS (SELECT 1 FROM audit_state)
				BEGIN SELECT RAISE(ABORT,'audit_state is kept'); END;

CREATE INDEX `idx_audit_log_recorded` ON `audit_log` (`recorded_at`);

CREATE INDEX `idx_audit_log_event` ON `audit_log` (
  `event`,
  `id`
);

CREATE INDEX `idx_audit_log_actor` ON `audit_log` (
  `actor_id`,
  `id`
);

CREATE INDEX `idx_audit_log_resource` ON `audit_log` (
  `resource_id`,
  `resource_type`,
  `id`
);

CREATE INDEX `idx_audit_log_patient` ON `audit_log` (
  `patient`,
  `id`
);

CREATE INDEX `idx_audit_log_email` ON `audit_log` (
  `actor_email`,
  `id`
) WHERE actor_email != '';

CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id)
				BEGIN SELECT RAISE(FAIL,'audit_log is append-only'); END;
