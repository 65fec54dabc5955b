CREATE TABLE `patients` (
  `active` BOOLEAN DEFAULT FALSE NOT NULL,
  `address` TEXT DEFAULT '' NOT NULL,
  `archive_reason` TEXT DEFAULT '' NOT NULL,
  `archived_at` TEXT DEFAULT '' NOT NULL,
  `archived_by` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `date_of_birth` TEXT DEFAULT '' NOT NULL,
  `deleted_at` TEXT DEFAULT '' NOT NULL,
  `deleted_by` TEXT DEFAULT '' NOT NULL,
  `email` TEXT DEFAULT '' NOT NULL,
  `email_index` TEXT DEFAULT '' NOT NULL,
  `external_id` TEXT DEFAULT '' NOT NULL,
  `first_name` TEXT DEFAULT '' NOT NULL,
  `gateway_patient_id` TEXT DEFAULT '' NOT NULL,
  `gender` TEXT DEFAULT '' NOT NULL,
  `icd10_codes` JSON DEFAULT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `insurance_member_id` TEXT DEFAULT '' NOT NULL,
  `insurance_payer` NUMERIC DEFAULT 0 NOT NULL,
  `last_name` TEXT DEFAULT '' NOT NULL,
  `monitoring_schedule` JSON DEFAULT NULL,
  `mrn` TEXT DEFAULT '' NOT NULL,
  `phone` TEXT DEFAULT '' NOT NULL,
  `phone_index` TEXT DEFAULT '' NOT NULL,
  `primary_provider` TEXT DEFAULT '' NOT NULL,
  `programs` JSON DEFAULT NULL,
  `ssn` TEXT DEFAULT '' NOT NULL,
  `ssn_index` TEXT DEFAULT '' NOT NULL,
  `time_zone` TEXT DEFAULT '' NOT NULL,
  `unarchived_at` TEXT DEFAULT '' NOT NULL,
  `unarchived_by` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `version` NUMERIC DEFAULT 0 NOT NULL,
  "insurance_details" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `care_team_members` (
  `created_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `role` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_care_team_members_patient_user` ON `care_team_members` (
  `patient`,
  `user`
);

CREATE INDEX `idx_care_team_members_user` ON `care_team_members` (
  `user`,
  `patient`
);

CREATE TABLE `consents` (
  `created_at` TEXT DEFAULT '' NOT NULL,
  `document_reference` TEXT DEFAULT '' NOT NULL,
  `expires_at` TEXT DEFAULT '' NOT NULL,
  `granted_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `method` TEXT DEFAULT '' NOT NULL,
  `notes` TEXT DEFAULT '' NOT NULL,
  `obtained_by` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `recorded_by` TEXT DEFAULT '' NOT NULL,
  `revoke_reason` TEXT DEFAULT '' NOT NULL,
  `revoked_at` TEXT DEFAULT '' NOT NULL,
  `revoked_by` TEXT DEFAULT '' NOT NULL,
  `type` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_consents_patient` ON `consents` (
  `patient`,
  `type`,
  `granted_at`
);

CREATE INDEX `idx_patients_id_nocase` ON `patients` (`id` COLLATE NOCASE);

CREATE UNIQUE INDEX `idx_patients_mrn` ON `patients` (`mrn` COLLATE NOCASE);

CREATE UNIQUE INDEX `idx_patients_gateway_id` ON `patients` (`gateway_patient_id`) WHERE gateway_patient_id != '';

CREATE UNIQUE INDEX `idx_patients_external_id` ON `patients` (`external_id`) WHERE external_id != '';

CREATE INDEX `idx_patients_created` ON `patients` (
  `created_at`,
  `id`
);

CREATE INDEX `idx_patients_ssn` ON `patients` (`ssn_index`) WHERE ssn_index != '';

CREATE INDEX `idx_patients_email` ON `patients` (`email_index`) WHERE email_index != '';

CREATE INDEX `idx_patients_phone` ON `patients` (`phone_index`) WHERE phone_index != '';

CREATE INDEX `idx_patients_provider` ON `patients` (
  `primary_provider`,
  `id`
);

CREATE INDEX `idx_patients_deleted` ON `patients` (`id`) WHERE deleted_at != '';

CREATE TABLE `orders` (
  `author` TEXT DEFAULT '' NOT NULL,
  `dated` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `kind` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `recorded_at` TEXT DEFAULT '' NOT NULL,
  `recorded_by` TEXT DEFAULT '' NOT NULL,
  `text` TEXT DEFAULT '' NOT NULL,
  "until" TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_orders_patient` ON `orders` (
  `patient`,
  `kind`,
  `dated`
);

CREATE TABLE `note_templates` (
  `context` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `name` TEXT DEFAULT '' NOT NULL,
  `text` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `updated_by` TEXT DEFAULT '' NOT NULL
);

CREATE TRIGGER triage_list_patient_new AFTER INSERT ON patients BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

CREATE TRIGGER triage_list_patient_gone AFTER DELETE ON patients BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

CREATE TRIGGER triage_list_patient AFTER UPDATE ON patients
		WHEN (OLD.mrn, OLD.first_name, OLD.last_name, OLD.primary_provider) IS NOT (NEW.mrn, NEW.first_name, NEW.last_name, NEW.primary_provider) BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

CREATE TRIGGER triage_list_team_new AFTER INSERT ON care_team_members BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

CREATE TRIGGER triage_list_team_gone AFTER DELETE ON care_team_members BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

CREATE TRIGGER triage_list_team AFTER UPDATE ON care_team_members BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;
