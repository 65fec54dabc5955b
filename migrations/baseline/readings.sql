CREATE TABLE reading_days (patient TEXT NOT NULL, day TEXT NOT NULL, observation_type TEXT NOT NULL,
				first_observation TEXT NOT NULL, readings INTEGER NOT NULL, device_readings INTEGER NOT NULL,
				PRIMARY KEY (patient, day, observation_type)) WITHOUT ROWID;

CREATE TABLE daily_counts (day TEXT NOT NULL, observation_type TEXT NOT NULL, status TEXT NOT NULL,
				readings INTEGER NOT NULL, PRIMARY KEY (day, observation_type, status)) WITHOUT ROWID;

CREATE TABLE `observations` (
  `comparator` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `device_id` TEXT DEFAULT '' NOT NULL,
  `diastolic` REAL DEFAULT NULL,
  `emr_resource_id` TEXT DEFAULT '' NOT NULL,
  `entered_in_error_at` TEXT DEFAULT '' NOT NULL,
  `entered_in_error_by` TEXT DEFAULT '' NOT NULL,
  `entered_in_error_reason` TEXT DEFAULT '' NOT NULL,
  `fhir_status` TEXT DEFAULT '' NOT NULL,
  `fhir_version` NUMERIC DEFAULT 0 NOT NULL,
  `gateway_key` TEXT DEFAULT '' NOT NULL,
  `glucose_mg_dl` REAL DEFAULT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `irregular_heartbeat` TEXT DEFAULT '' NOT NULL,
  `meal_context` TEXT DEFAULT '' NOT NULL,
  `measured_at` TEXT DEFAULT '' NOT NULL,
  `observation_type` TEXT DEFAULT '' NOT NULL,
  `original_unit` TEXT DEFAULT '' NOT NULL,
  `original_value` REAL DEFAULT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `perfusion_index` REAL DEFAULT NULL,
  `processing_ms` REAL DEFAULT NULL,
  `pulse` REAL DEFAULT NULL,
  `reading_key` TEXT DEFAULT '' NOT NULL,
  `source` TEXT DEFAULT '' NOT NULL,
  `spo2` REAL DEFAULT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `systolic` REAL DEFAULT NULL,
  `transform_error` TEXT DEFAULT '' NOT NULL,
  `transformed_at` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `weight_kg` REAL DEFAULT NULL,
  "temperature_c" REAL DEFAULT NULL,
  "origin" TEXT DEFAULT '' NOT NULL,
  "review_state" TEXT DEFAULT '' NOT NULL,
  "suspect_reason" TEXT DEFAULT '' NOT NULL,
  "confirmed_by" TEXT DEFAULT '' NOT NULL,
  "confirmed_at" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE processing_times (bucket TEXT NOT NULL, ms INTEGER NOT NULL, readings INTEGER NOT NULL, total_us INTEGER NOT NULL,
				PRIMARY KEY (bucket, ms)) WITHOUT ROWID;

CREATE UNIQUE INDEX `idx_observations_gateway_key` ON `observations` (`gateway_key`) WHERE gateway_key != '';

CREATE INDEX `idx_observations_measured` ON `observations` (
  `measured_at`,
  `id`
);

CREATE INDEX `idx_observations_created` ON `observations` (`created_at`);

CREATE INDEX `idx_observations_undelivered` ON `observations` (
  `fhir_status`,
  `measured_at`
) WHERE fhir_status != 'transmitted';

CREATE INDEX `idx_observations_untransformed` ON `observations` (`created_at`) WHERE transform_error != '';

CREATE INDEX idx_observations_updated ON observations (updated_at, id);

CREATE INDEX idx_observations_doubtful ON observations (status, measured_at, id) WHERE status != 'final';

CREATE UNIQUE INDEX idx_observations_patient_kind ON observations
				(patient, observation_type, measured_at, CASE WHEN reading_key != '' THEN reading_key END);
