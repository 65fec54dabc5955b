CREATE TABLE `hubs` (
  `created_at` TEXT DEFAULT '' NOT NULL,
  `hub_id` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `last_event_at` TEXT DEFAULT '' NOT NULL,
  `last_heartbeat_at` TEXT DEFAULT '' NOT NULL,
  `state_at` TEXT DEFAULT '' NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_hubs_hub_id` ON `hubs` (`hub_id`);

CREATE TABLE `devices` (
  `assigned_at` TEXT DEFAULT '' NOT NULL,
  `battery_level` REAL DEFAULT NULL,
  `battery_state` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `device_id` TEXT DEFAULT '' NOT NULL,
  `device_type` TEXT DEFAULT '' NOT NULL,
  `firmware_version` TEXT DEFAULT '' NOT NULL,
  `flag_reason` TEXT DEFAULT '' NOT NULL,
  `flagged` BOOLEAN DEFAULT FALSE NOT NULL,
  `hub_id` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `last_reading_at` TEXT DEFAULT '' NOT NULL,
  `last_seen_at` TEXT DEFAULT '' NOT NULL,
  `model` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `setup_completed_at` TEXT DEFAULT '' NOT NULL,
  `setup_completed_by` TEXT DEFAULT '' NOT NULL,
  `setup_notes` TEXT DEFAULT '' NOT NULL,
  `signal_strength` REAL DEFAULT NULL,
  `state_at` TEXT DEFAULT '' NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  "kind" TEXT DEFAULT '' NOT NULL,
  "battery_at" TEXT DEFAULT '' NOT NULL,
  "battery_told" TEXT DEFAULT '' NOT NULL,
  "made_on" TEXT DEFAULT '' NOT NULL,
  "clock_wrong_at" TEXT DEFAULT '' NOT NULL,
  "clock_told_at" TEXT DEFAULT '' NOT NULL,
  "clock_patient" TEXT DEFAULT '' NOT NULL,
  "clock_observation" TEXT DEFAULT '' NOT NULL,
  "manufacturer" TEXT DEFAULT '' NOT NULL,
  "serial_number" TEXT DEFAULT '' NOT NULL,
  "udi" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `device_assignments` (
  `assigned_at` TEXT DEFAULT '' NOT NULL,
  `assigned_by` TEXT DEFAULT '' NOT NULL,
  `device_id` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `unassign_reason` TEXT DEFAULT '' NOT NULL,
  `unassigned_at` TEXT DEFAULT '' NOT NULL,
  `unassigned_by` TEXT DEFAULT '' NOT NULL,
  "setup_completed_at" TEXT DEFAULT '' NOT NULL,
  "setup_completed_by" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `device_orders` (
  `created_at` TEXT DEFAULT '' NOT NULL,
  `device_id` TEXT DEFAULT '' NOT NULL,
  `estimated_delivery` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `kind` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `requested_by` TEXT DEFAULT '' NOT NULL,
  `shipping_address` TEXT DEFAULT '' NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_device_orders_device` ON `device_orders` (
  `device_id`,
  `created_at`
);

CREATE INDEX `idx_device_orders_status` ON `device_orders` (
  `status`,
  `created_at`
);

CREATE TABLE `gateway_events` (
  `close_reason` TEXT DEFAULT '' NOT NULL,
  `closed_at` TEXT DEFAULT '' NOT NULL,
  `closed_by` TEXT DEFAULT '' NOT NULL,
  `device_id` TEXT DEFAULT '' NOT NULL,
  `event_type` TEXT DEFAULT '' NOT NULL,
  `field_errors` JSON DEFAULT NULL,
  `hub_id` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `measurement_type` TEXT DEFAULT '' NOT NULL,
  `observation` TEXT DEFAULT '' NOT NULL,
  `payload` TEXT DEFAULT '' NOT NULL,
  `reason` TEXT DEFAULT '' NOT NULL,
  `received_at` TEXT DEFAULT '' NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `timestamp` TEXT DEFAULT '' NOT NULL,
  "vendor" TEXT DEFAULT '' NOT NULL,
  "source" TEXT DEFAULT '' NOT NULL,
  "implausible" BOOLEAN DEFAULT FALSE NOT NULL,
  "patient" TEXT DEFAULT '' NOT NULL,
  "alert" TEXT DEFAULT '' NOT NULL,
  "gathered" TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_device_assignments_device` ON `device_assignments` (
  `device_id`,
  `assigned_at`
);

CREATE INDEX `idx_device_assignments_patient` ON `device_assignments` (
  `patient`,
  `assigned_at`
);

CREATE UNIQUE INDEX `idx_device_assignments_held` ON `device_assignments` (`device_id`) WHERE unassigned_at = '';

CREATE UNIQUE INDEX `idx_devices_device_id` ON `devices` (`device_id`);

CREATE INDEX `idx_devices_patient` ON `devices` (`patient`) WHERE patient != '';

CREATE INDEX `idx_devices_hub` ON `devices` (`hub_id`) WHERE hub_id != '';

CREATE INDEX `idx_gateway_events_id_nocase` ON `gateway_events` (`id` COLLATE NOCASE);

CREATE INDEX `idx_gateway_events_status` ON `gateway_events` (
  `status`,
  `received_at`
);

CREATE INDEX `idx_gateway_events_device` ON `gateway_events` (
  `device_id`,
  `received_at`
) WHERE device_id != '';

CREATE INDEX `idx_gateway_events_alert` ON `gateway_events` (`alert`) WHERE alert != '';
