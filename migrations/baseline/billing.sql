CREATE TABLE `payers` (
  `created_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `is_active` BOOLEAN DEFAULT FALSE NOT NULL,
  `name` TEXT DEFAULT '' NOT NULL,
  `payer_code` TEXT DEFAULT '' NOT NULL,
  "edi_payer_id" TEXT DEFAULT '' NOT NULL,
  "claim_filing_code" TEXT DEFAULT '' NOT NULL,
  "address" JSON DEFAULT NULL
);

CREATE TABLE `payer_rates` (
  `cpt_code` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `effective_date` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `payer` TEXT DEFAULT '' NOT NULL,
  `rate_cents` NUMERIC DEFAULT 0 NOT NULL
);

CREATE UNIQUE INDEX `idx_payer_rates_rate` ON `payer_rates` (
  `payer`,
  `cpt_code`,
  `effective_date`
);

CREATE TABLE `icd10_codes` (
  `category` TEXT DEFAULT '' NOT NULL,
  `code` TEXT DEFAULT '' NOT NULL,
  `description` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL
);

CREATE UNIQUE INDEX `idx_icd10_codes_code` ON `icd10_codes` (`code`);

CREATE TABLE `billing_entries` (
  `amount_cents` NUMERIC DEFAULT 0 NOT NULL,
  `appeal_date` TEXT DEFAULT '' NOT NULL,
  `appeal_reason` TEXT DEFAULT '' NOT NULL,
  `appeal_reference` TEXT DEFAULT '' NOT NULL,
  `attested` BOOLEAN DEFAULT FALSE NOT NULL,
  `billing_period_end` TEXT DEFAULT '' NOT NULL,
  `billing_period_start` TEXT DEFAULT '' NOT NULL,
  `claim_frequency_code` TEXT DEFAULT '' NOT NULL,
  `claim_id` TEXT DEFAULT '' NOT NULL,
  `cpt_code` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `created_by` TEXT DEFAULT '' NOT NULL,
  `denial_code` TEXT DEFAULT '' NOT NULL,
  `denial_date` TEXT DEFAULT '' NOT NULL,
  `denial_description` TEXT DEFAULT '' NOT NULL,
  `duration_minutes` NUMERIC DEFAULT 0 NOT NULL,
  `evidence` JSON DEFAULT NULL,
  `icd10_codes` JSON DEFAULT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `lifecycle_status` TEXT DEFAULT '' NOT NULL,
  `notes` TEXT DEFAULT '' NOT NULL,
  `original_reference` TEXT DEFAULT '' NOT NULL,
  `override_reason` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `payer` TEXT DEFAULT '' NOT NULL,
  `payer_name` TEXT DEFAULT '' NOT NULL,
  `payment_cents` REAL DEFAULT NULL,
  `payment_date` TEXT DEFAULT '' NOT NULL,
  `payment_reference` TEXT DEFAULT '' NOT NULL,
  `rendering_provider` TEXT DEFAULT '' NOT NULL,
  `resubmission_count` NUMERIC DEFAULT 0 NOT NULL,
  `reviewed_at` TEXT DEFAULT '' NOT NULL,
  `reviewed_by` TEXT DEFAULT '' NOT NULL,
  `service_date` TEXT DEFAULT '' NOT NULL,
  `source` TEXT DEFAULT '' NOT NULL,
  `submission_reference` TEXT DEFAULT '' NOT NULL,
  `submitted_at` TEXT DEFAULT '' NOT NULL,
  `transmission_days` REAL DEFAULT NULL,
  `units` NUMERIC DEFAULT 0 NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `void_reason` TEXT DEFAULT '' NOT NULL,
  `warnings` JSON DEFAULT NULL,
  "charge_cents" NUMERIC DEFAULT 0 NOT NULL,
  "paid_total_cents" NUMERIC DEFAULT 0 NOT NULL,
  "patient_responsibility_cents" NUMERIC DEFAULT 0 NOT NULL,
  "refunded_cents" NUMERIC DEFAULT 0 NOT NULL,
  "adjustments" JSON DEFAULT NULL,
  "claim_control_number" TEXT DEFAULT '' NOT NULL,
  "payer_control_number" TEXT DEFAULT '' NOT NULL,
  "claim_batch" TEXT DEFAULT '' NOT NULL,
  "facts_checked_at" TEXT DEFAULT '' NOT NULL,
  "evidence_changed_at" TEXT DEFAULT '' NOT NULL,
  "repay_by" TEXT DEFAULT '' NOT NULL,
  "refund_date" TEXT DEFAULT '' NOT NULL,
  "refund_reference" TEXT DEFAULT '' NOT NULL,
  "overpayment_reason" TEXT DEFAULT '' NOT NULL,
  "adjusted_cents" NUMERIC DEFAULT 0 NOT NULL,
  "rejection" JSON DEFAULT NULL
);

CREATE TABLE `time_entries` (
  `activity` TEXT DEFAULT '' NOT NULL,
  `auto_stopped` BOOLEAN DEFAULT FALSE NOT NULL,
  `billing_entry` TEXT DEFAULT '' NOT NULL,
  `category` TEXT DEFAULT '' NOT NULL,
  `contact_method` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `duration_seconds` NUMERIC DEFAULT 0 NOT NULL,
  `ended_at` TEXT DEFAULT '' NOT NULL,
  `escalation` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `notes` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `source` TEXT DEFAULT '' NOT NULL,
  `started_at` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL,
  "attested_by" TEXT DEFAULT '' NOT NULL,
  "attested_at" TEXT DEFAULT '' NOT NULL,
  "overlap_seconds" NUMERIC DEFAULT 0 NOT NULL
);

CREATE TABLE billing_months (month TEXT NOT NULL, cpt_code TEXT NOT NULL, payer TEXT NOT NULL, provider TEXT NOT NULL, status TEXT NOT NULL,
				claims INTEGER NOT NULL DEFAULT 0, units INTEGER NOT NULL DEFAULT 0, amount_cents INTEGER NOT NULL DEFAULT 0,
	paid_cents INTEGER NOT NULL DEFAULT 0, submitted_claims INTEGER NOT NULL DEFAULT 0, submitted_cents INTEGER NOT NULL DEFAULT 0,
	denied_claims INTEGER NOT NULL DEFAULT 0, settled_claims INTEGER NOT NULL DEFAULT 0, settled_days INTEGER NOT NULL DEFAULT 0, charge_cents INTEGER NOT NULL DEFAULT 0, adjusted_cents INTEGER NOT NULL DEFAULT 0, patient_cents INTEGER NOT NULL DEFAULT 0, refunded_cents INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (month, cpt_code, payer, provider, status)) WITHOUT ROWID;

CREATE TABLE billing_days (day TEXT NOT NULL, cpt_code TEXT NOT NULL, payer TEXT NOT NULL, status TEXT NOT NULL,
				claims INTEGER NOT NULL DEFAULT 0, units INTEGER NOT NULL DEFAULT 0, amount_cents INTEGER NOT NULL DEFAULT 0,
	paid_cents INTEGER NOT NULL DEFAULT 0, submitted_claims INTEGER NOT NULL DEFAULT 0, submitted_cents INTEGER NOT NULL DEFAULT 0,
	denied_claims INTEGER NOT NULL DEFAULT 0, settled_claims INTEGER NOT NULL DEFAULT 0, settled_days INTEGER NOT NULL DEFAULT 0, charge_cents INTEGER NOT NULL DEFAULT 0, adjusted_cents INTEGER NOT NULL DEFAULT 0, patient_cents INTEGER NOT NULL DEFAULT 0, refunded_cents INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (day, cpt_code, payer, status)) WITHOUT ROWID;

CREATE TABLE billing_patient_months (month TEXT NOT NULL, patient TEXT NOT NULL, claims INTEGER NOT NULL DEFAULT 0,
				PRIMARY KEY (month, patient)) WITHOUT ROWID;

CREATE UNIQUE INDEX idx_billing_entries_setup ON billing_entries (patient)
				WHERE cpt_code = '99453' AND source != 'manual' AND lifecycle_status != 'voided';

CREATE INDEX idx_billing_entries_supply ON billing_entries (patient, service_date, billing_period_start) WHERE source = 'automatic_device';

CREATE TABLE billing_code_months (month TEXT NOT NULL, cpt_code TEXT NOT NULL, payer TEXT NOT NULL, status TEXT NOT NULL,
				claims INTEGER NOT NULL DEFAULT 0, units INTEGER NOT NULL DEFAULT 0, amount_cents INTEGER NOT NULL DEFAULT 0,
	paid_cents INTEGER NOT NULL DEFAULT 0, submitted_claims INTEGER NOT NULL DEFAULT 0, submitted_cents INTEGER NOT NULL DEFAULT 0,
	denied_claims INTEGER NOT NULL DEFAULT 0, settled_claims INTEGER NOT NULL DEFAULT 0, settled_days INTEGER NOT NULL DEFAULT 0, charge_cents INTEGER NOT NULL DEFAULT 0, adjusted_cents INTEGER NOT NULL DEFAULT 0, patient_cents INTEGER NOT NULL DEFAULT 0, refunded_cents INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (month, cpt_code, payer, status)) WITHOUT ROWID;

CREATE TABLE billing_provider_days (day TEXT NOT NULL, provider TEXT NOT NULL, status TEXT NOT NULL,
				claims INTEGER NOT NULL DEFAULT 0, units INTEGER NOT NULL DEFAULT 0, amount_cents INTEGER NOT NULL DEFAULT 0,
	paid_cents INTEGER NOT NULL DEFAULT 0, submitted_claims INTEGER NOT NULL DEFAULT 0, submitted_cents INTEGER NOT NULL DEFAULT 0,
	denied_claims INTEGER NOT NULL DEFAULT 0, settled_claims INTEGER NOT NULL DEFAULT 0, settled_days INTEGER NOT NULL DEFAULT 0, charge_cents INTEGER NOT NULL DEFAULT 0, adjusted_cents INTEGER NOT NULL DEFAULT 0, patient_cents INTEGER NOT NULL DEFAULT 0, refunded_cents INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (day, provider, status)) WITHOUT ROWID;

CREATE INDEX idx_billing_entries_provider ON billing_entries (rendering_provider, service_date, patient, lifecycle_status);

CREATE INDEX idx_billing_entries_billed ON billing_entries (service_date, patient, rendering_provider, lifecycle_status)
				WHERE lifecycle_status != 'voided';

CREATE INDEX idx_billing_entries_denials ON billing_entries (service_date, payer, denial_code, denial_description, cpt_code, rendering_provider,
				denial_date, lifecycle_status) WHERE denial_date != '' AND lifecycle_status != 'voided';

CREATE INDEX idx_billing_entries_open ON billing_entries (submitted_at, payer, amount_cents, service_date, cpt_code, rendering_provider,
				lifecycle_status) WHERE lifecycle_status IN ('submitted', 'appealed');

CREATE INDEX idx_billing_entries_waiting ON billing_entries (lifecycle_status, (CASE lifecycle_status WHEN 'pending_review' THEN created_at WHEN 'reviewed' THEN reviewed_at ELSE denial_date END))
				WHERE lifecycle_status IN ('pending_review', 'reviewed', 'denied');

CREATE INDEX idx_billing_entries_attest ON billing_entries (service_date)
				WHERE lifecycle_status = 'pending_review' AND instr(warnings, 'attest_interaction') > 0;

CREATE INDEX idx_billing_entries_walk ON billing_entries (patient, service_date, id, lifecycle_status, cpt_code, source,
				billing_period_start, billing_period_end, units);

CREATE INDEX idx_billing_entries_control ON billing_entries (claim_control_number) WHERE claim_control_number != '';

CREATE INDEX idx_billing_entries_changed ON billing_entries (evidence_changed_at) WHERE evidence_changed_at != '';

CREATE INDEX `idx_time_entries_patient` ON `time_entries` (
  `patient`,
  `category`,
  `started_at`
);

CREATE INDEX `idx_time_entries_user` ON `time_entries` (
  `user`,
  `started_at`
);

CREATE UNIQUE INDEX `idx_time_entries_running` ON `time_entries` (`user`) WHERE ended_at = '';

CREATE INDEX `idx_time_entries_started` ON `time_entries` (
  `started_at`,
  `id`
);

CREATE UNIQUE INDEX `idx_time_entries_escalation` ON `time_entries` (
  `escalation`,
  `started_at`
) WHERE escalation != '';

CREATE INDEX idx_time_entries_month ON time_entries (category, started_at, patient, duration_seconds, ended_at, contact_method, source);

CREATE TABLE `fee_schedule` (
  `charge_cents` REAL DEFAULT NULL,
  `cpt_code` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `effective_date` TEXT DEFAULT '' NOT NULL,
  `expected_cents` REAL DEFAULT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `locality` TEXT DEFAULT '' NOT NULL,
  `source` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_fee_schedule_fee` ON `fee_schedule` (
  `cpt_code`,
  `locality`,
  `effective_date`
);

CREATE TABLE `payments` (
  `adjustments` JSON DEFAULT NULL,
  `amount_cents` NUMERIC DEFAULT 0 NOT NULL,
  `billing_entry` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `created_by` TEXT DEFAULT '' NOT NULL,
  `date` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `kind` TEXT DEFAULT '' NOT NULL,
  `payer` TEXT DEFAULT '' NOT NULL,
  `reason` TEXT DEFAULT '' NOT NULL,
  `reference` TEXT DEFAULT '' NOT NULL,
  `source` TEXT DEFAULT '' NOT NULL,
  `source_key` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_payments_id_nocase` ON `payments` (`id` COLLATE NOCASE);

CREATE INDEX `idx_payments_entry` ON `payments` (
  `billing_entry`,
  `id`
);

CREATE UNIQUE INDEX `idx_payments_source` ON `payments` (`source_key`) WHERE source_key != '';

CREATE TRIGGER payments_stay BEFORE DELETE ON payments BEGIN SELECT RAISE(ABORT, 'payments are never deleted'); END;

CREATE TRIGGER payments_stand BEFORE UPDATE ON payments WHEN NEW.billing_entry IS NOT OLD.billing_entry OR NEW.kind IS NOT OLD.kind
				OR NEW.amount_cents IS NOT OLD.amount_cents OR NEW.date IS NOT OLD.date OR NEW.reference IS NOT OLD.reference OR NEW.payer IS NOT OLD.payer
				OR NEW.source IS NOT OLD.source OR NEW.source_key IS NOT OLD.source_key OR NEW.adjustments IS NOT OLD.adjustments
				BEGIN SELECT RAISE(ABORT, 'payments are never changed'); END;

CREATE UNIQUE INDEX `idx_payers_code` ON `payers` (`payer_code` COLLATE NOCASE);

CREATE INDEX `idx_billing_entries_id_nocase` ON `billing_entries` (`id` COLLATE NOCASE);

CREATE UNIQUE INDEX `idx_billing_entries_claim` ON `billing_entries` (`claim_id`);

CREATE UNIQUE INDEX `idx_billing_entries_automatic` ON `billing_entries` (
  `patient`,
  `cpt_code`,
  `billing_period_start`
) WHERE source != 'manual' AND lifecycle_status != 'voided';

CREATE INDEX `idx_billing_entries_service` ON `billing_entries` (
  `service_date`,
  `id`
);

CREATE INDEX `idx_billing_entries_status` ON `billing_entries` (
  `lifecycle_status`,
  `service_date`
);

CREATE INDEX `idx_billing_entries_patient` ON `billing_entries` (
  `patient`,
  `service_date`
);

CREATE INDEX `idx_billing_entries_code` ON `billing_entries` (
  `cpt_code`,
  `service_date`
);

CREATE INDEX `idx_billing_entries_payer` ON `billing_entries` (
  `payer`,
  `service_date`
);

CREATE INDEX `idx_billing_entries_amount` ON `billing_entries` (
  `amount_cents`,
  `id`
);

CREATE TABLE `claim_batches` (
  `claims` NUMERIC DEFAULT 0 NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `created_by` TEXT DEFAULT '' NOT NULL,
  `file` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `interchange_control_number` TEXT DEFAULT '' NOT NULL,
  `lines` NUMERIC DEFAULT 0 NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `total_charge_cents` NUMERIC DEFAULT 0 NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `usage` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_claim_batches_id_nocase` ON `claim_batches` (`id` COLLATE NOCASE);

CREATE UNIQUE INDEX `idx_claim_batches_number` ON `claim_batches` (`interchange_control_number`);

CREATE TABLE `claim_lines` (
  `batch` TEXT DEFAULT '' NOT NULL,
  `billing_entry` TEXT DEFAULT '' NOT NULL,
  `carried` BOOLEAN DEFAULT FALSE NOT NULL,
  `charge_cents` NUMERIC DEFAULT 0 NOT NULL,
  `claim_control_number` TEXT DEFAULT '' NOT NULL,
  `frequency` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `line_control_number` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_claim_lines_id_nocase` ON `claim_lines` (`id` COLLATE NOCASE);

CREATE UNIQUE INDEX `idx_claim_lines_line` ON `claim_lines` (`line_control_number`);

CREATE INDEX `idx_claim_lines_claim` ON `claim_lines` (`claim_control_number`);

CREATE INDEX `idx_claim_lines_batch` ON `claim_lines` (`batch`);

CREATE INDEX `idx_claim_lines_entry` ON `claim_lines` (`billing_entry`);

CREATE TABLE `claim_responses` (
  `applied` NUMERIC DEFAULT 0 NOT NULL,
  `control_number` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `created_by` TEXT DEFAULT '' NOT NULL,
  `digest` TEXT DEFAULT '' NOT NULL,
  `file` TEXT DEFAULT '' NOT NULL,
  `finished_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `type` TEXT DEFAULT '' NOT NULL,
  "unmatched" TEXT DEFAULT '' NOT NULL
);

CREATE INDEX idx_billing_entries_undoing ON billing_entries (lifecycle_status, updated_at, id)
			WHERE lifecycle_status IN ('void_requested', 'refund_due');

CREATE INDEX `idx_claim_responses_id_nocase` ON `claim_responses` (`id` COLLATE NOCASE);

CREATE UNIQUE INDEX `idx_claim_responses_digest` ON `claim_responses` (`digest`);

CREATE INDEX idx_billing_entries_credit ON billing_entries (lifecycle_status, updated_at, id)
			WHERE lifecycle_status IN ('paid', 'denied') AND paid_total_cents > 0
				AND charge_cents < paid_total_cents + adjusted_cents + patient_responsibility_cents;
