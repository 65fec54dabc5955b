CREATE TABLE `thresholds` (
  `bounds` JSON DEFAULT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `updated_by` TEXT DEFAULT '' NOT NULL,
  "templates" JSON DEFAULT NULL
);

CREATE TABLE `threshold_changes` (
  `changed_at` TEXT DEFAULT '' NOT NULL,
  `changed_by` TEXT DEFAULT '' NOT NULL,
  `field` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `new_value` REAL DEFAULT NULL,
  `old_value` REAL DEFAULT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `reason` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_threshold_changes_patient` ON `threshold_changes` (
  `patient`,
  `changed_at`
);

CREATE INDEX `idx_threshold_changes_changed` ON `threshold_changes` (`changed_at`);

CREATE TABLE `alerts` (
  `acknowledged` BOOLEAN DEFAULT FALSE NOT NULL,
  `acknowledged_at` TEXT DEFAULT '' NOT NULL,
  `acknowledged_by` TEXT DEFAULT '' NOT NULL,
  `clinical_note` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `device_id` TEXT DEFAULT '' NOT NULL,
  `escalation` TEXT DEFAULT '' NOT NULL,
  `follow_up_at` TEXT DEFAULT '' NOT NULL,
  `follow_up_required` BOOLEAN DEFAULT FALSE NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `level` TEXT DEFAULT '' NOT NULL,
  `measured_at` TEXT DEFAULT '' NOT NULL,
  `message` TEXT DEFAULT '' NOT NULL,
  `normal_readings` NUMERIC DEFAULT 0 NOT NULL,
  `notes` TEXT DEFAULT '' NOT NULL,
  `observation` TEXT DEFAULT '' NOT NULL,
  `outcome` TEXT DEFAULT '' NOT NULL,
  `parameter` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `resolved_at` TEXT DEFAULT '' NOT NULL,
  `resolved_by` TEXT DEFAULT '' NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `threshold` REAL DEFAULT NULL,
  `type` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `value` REAL DEFAULT NULL,
  "snoozed" BOOLEAN DEFAULT FALSE NOT NULL,
  "follow_up_by" TEXT DEFAULT '' NOT NULL,
  "follow_up_told" BOOLEAN DEFAULT FALSE NOT NULL,
  "origin" TEXT DEFAULT '' NOT NULL,
  "late" BOOLEAN DEFAULT FALSE NOT NULL,
  "resolution_reason" TEXT DEFAULT '' NOT NULL,
  "quarantine_id" TEXT DEFAULT '' NOT NULL,
  "held_until" TEXT DEFAULT '' NOT NULL,
  "reported_values" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `escalations` (
  `alert` TEXT DEFAULT '' NOT NULL,
  `assigned_at` TEXT DEFAULT '' NOT NULL,
  `assigned_to` TEXT DEFAULT '' NOT NULL,
  `cancelled_at` TEXT DEFAULT '' NOT NULL,
  `cancelled_by` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `created_by` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `interaction_minutes` REAL DEFAULT NULL,
  `notified_at` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `priority` TEXT DEFAULT '' NOT NULL,
  `reason` TEXT DEFAULT '' NOT NULL,
  `related_escalation` TEXT DEFAULT '' NOT NULL,
  `resolution_notes` TEXT DEFAULT '' NOT NULL,
  `resolved_at` TEXT DEFAULT '' NOT NULL,
  `resolved_by` TEXT DEFAULT '' NOT NULL,
  `status` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  "tier" NUMERIC DEFAULT 0 NOT NULL,
  "waits_since" TEXT DEFAULT '' NOT NULL,
  "tier_at" TEXT DEFAULT '' NOT NULL,
  "on_call" TEXT DEFAULT '' NOT NULL,
  "noted_at" TEXT DEFAULT '' NOT NULL,
  "reminded_at" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `snoozes` (
  `created_at` TEXT DEFAULT '' NOT NULL,
  `created_by` TEXT DEFAULT '' NOT NULL,
  `ended_at` TEXT DEFAULT '' NOT NULL,
  `ended_by` TEXT DEFAULT '' NOT NULL,
  `ends_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `include_critical` BOOLEAN DEFAULT FALSE NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `reason` TEXT DEFAULT '' NOT NULL,
  `type` TEXT DEFAULT '' NOT NULL,
  "known" JSON DEFAULT NULL,
  "quiet_since" TEXT DEFAULT '' NOT NULL,
  "critical_since" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE alert_totals (level TEXT NOT NULL, status TEXT NOT NULL, type TEXT NOT NULL, acknowledged INTEGER NOT NULL,
				alerts INTEGER NOT NULL, PRIMARY KEY (level, status, type, acknowledged)) WITHOUT ROWID;

CREATE TRIGGER alerts_join AFTER INSERT ON alerts BEGIN INSERT INTO alert_totals (level, status, type, acknowledged, alerts) VALUES (NEW.level, NEW.status, NEW.type, NEW.acknowledged, 1)
				ON CONFLICT (level, status, type, acknowledged) DO UPDATE SET alerts = alerts + 1; END;

CREATE TRIGGER alerts_leave AFTER DELETE ON alerts BEGIN UPDATE alert_totals SET alerts = alerts - 1
				WHERE level = OLD.level AND status = OLD.status AND type = OLD.type AND acknowledged = OLD.acknowledged; END;

CREATE TRIGGER alerts_move AFTER UPDATE OF level, status, type, acknowledged ON alerts
				WHEN (OLD.level, OLD.status, OLD.type, OLD.acknowledged) IS NOT (NEW.level, NEW.status, NEW.type, NEW.acknowledged)
				BEGIN UPDATE alert_totals SET alerts = alerts - 1
				WHERE level = OLD.level AND status = OLD.status AND type = OLD.type AND acknowledged = OLD.acknowledged;INSERT INTO alert_totals (level, status, type, acknowledged, alerts) VALUES (NEW.level, NEW.status, NEW.type, NEW.acknowledged, 1)
				ON CONFLICT (level, status, type, acknowledged) DO UPDATE SET alerts = alerts + 1; END;

CREATE INDEX `idx_alerts_patient` ON `alerts` (
  `patient`,
  `created_at`
);

CREATE INDEX `idx_alerts_created` ON `alerts` (
  `created_at`,
  `id`
);

CREATE INDEX `idx_alerts_open` ON `alerts` (
  `patient`,
  `level`,
  `created_at`
) WHERE acknowledged = FALSE;

CREATE INDEX `idx_alerts_level` ON `alerts` (
  `level`,
  `created_at`
);

CREATE INDEX `idx_alerts_observation` ON `alerts` (`observation`) WHERE observation != '';

CREATE INDEX `idx_alerts_device` ON `alerts` (
  `device_id`,
  `type`
) WHERE device_id != '';

CREATE UNIQUE INDEX `idx_alerts_missed` ON `alerts` (
  `patient`,
  `parameter`
) WHERE type = 'missed_reading';

CREATE INDEX `idx_alerts_escalation` ON `alerts` (`escalation`) WHERE escalation != '';

CREATE INDEX `idx_alerts_follow_up` ON `alerts` (`follow_up_at`) WHERE follow_up_required = TRUE AND follow_up_told = FALSE;

CREATE INDEX `idx_alerts_status` ON `alerts` (
  `status`,
  `created_at`,
  `id`
);

CREATE INDEX `idx_alerts_acknowledged` ON `alerts` (
  `acknowledged`,
  `created_at`,
  `id`
);

CREATE INDEX `idx_alerts_type` ON `alerts` (
  `type`,
  `created_at`,
  `id`
);

CREATE INDEX `idx_alerts_things` ON `alerts` (
  `type`,
  `status`,
  `created_at`,
  `id`
) WHERE observation = '';

CREATE INDEX `idx_alerts_quarantine` ON `alerts` (`quarantine_id`) WHERE quarantine_id != '';

CREATE INDEX `idx_alerts_held` ON `alerts` (`held_until`) WHERE held_until != '';

CREATE INDEX `idx_snoozes_patient` ON `snoozes` (
  `patient`,
  `created_at`
);

CREATE UNIQUE INDEX `idx_snoozes_current` ON `snoozes` (
  `patient`,
  `type`
) WHERE ended_at = '';

CREATE INDEX `idx_snoozes_due` ON `snoozes` (`ends_at`) WHERE ended_at = '';

CREATE INDEX `idx_escalations_patient` ON `escalations` (
  `patient`,
  `created_at`
);

CREATE INDEX `idx_escalations_created` ON `escalations` (
  `created_at`,
  `id`
);

CREATE INDEX `idx_escalations_status` ON `escalations` (
  `status`,
  `priority`,
  `created_at`
);

CREATE INDEX `idx_escalations_assigned` ON `escalations` (
  `assigned_to`,
  `status`
) WHERE assigned_to != '';

CREATE UNIQUE INDEX `idx_escalations_system` ON `escalations` (`patient`) WHERE created_by = 'system' AND status IN ('open', 'in_progress');

CREATE TABLE `escalation_events` (
  `at` TEXT DEFAULT '' NOT NULL,
  `detail` TEXT DEFAULT '' NOT NULL,
  `escalation` TEXT DEFAULT '' NOT NULL,
  `event` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_escalation_events_escalation` ON `escalation_events` (
  `escalation`,
  `id`
);

CREATE TABLE `on_call_rota` (
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `overrides` JSON DEFAULT NULL,
  `shifts` JSON DEFAULT NULL,
  `time_zone` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `updated_by` TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `threshold_templates` (
  `bounds` JSON DEFAULT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `diagnoses` JSON DEFAULT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `key` TEXT DEFAULT '' NOT NULL,
  `max_age` REAL DEFAULT NULL,
  `min_age` REAL DEFAULT NULL,
  `name` TEXT DEFAULT '' NOT NULL,
  `signed_off_at` TEXT DEFAULT '' NOT NULL,
  `signed_off_by` TEXT DEFAULT '' NOT NULL,
  `sources` JSON DEFAULT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL,
  `updated_by` TEXT DEFAULT '' NOT NULL,
  `version` NUMERIC DEFAULT 0 NOT NULL
);

CREATE UNIQUE INDEX `idx_threshold_templates_key` ON `threshold_templates` (`key` COLLATE NOCASE);

CREATE UNIQUE INDEX `idx_thresholds_patient` ON `thresholds` (`patient`);

CREATE INDEX idx_alerts_acknowledged_by ON alerts (acknowledged_by, created_at, id) WHERE acknowledged_by != '';

CREATE TRIGGER triage_list_escalation_new AFTER INSERT ON escalations BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

CREATE TRIGGER triage_list_escalation_gone AFTER DELETE ON escalations BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

CREATE TRIGGER triage_list_escalation AFTER UPDATE ON escalations
		WHEN (OLD.patient, OLD.status) IS NOT (NEW.patient, NEW.status) BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

INSERT INTO threshold_templates (bounds, created_at, diagnoses, id, key, max_age, min_age, name, signed_off_at, signed_off_by, sources, updated_at, updated_by, version) VALUES ('{
			"blood_pressure": {"systolic_critical_low": 80, "systolic_low": 90, "systolic_high": 140, "systolic_critical": 180,
				"diastolic_critical_low": 40, "diastolic_low": 60, "diastolic_high": 90, "diastolic_critical": 120},
			"pulse": {"critical_low": 40, "low": 50, "high": 110, "critical": 130},
			"pulse_oximetry": {"critical_low": 88, "low": 92},
			"blood_glucose": {"critical_low": 54, "low": 70, "high": 250, "critical": 300},
			"body_temperature": {"critical_low": 35, "low": 36, "high": 38, "critical": 39.1},
			"weight": {"change_threshold_kg": 2.3, "change_window_days": 7}
		}', '2026-01-01T00:00:00.000000Z', '[]', '000000000000001', 'adult', NULL, 18, 'Adult', '', '', '["AHA/ACC high blood pressure guideline, 2025", "Royal College of Physicians, NEWS2, 2017", "ADA Standards of Care in Diabetes, 2025", "CMS NCD 240.2, home use of oxygen, 2021"]', '2026-01-01T00:00:00.000000Z', '', 1);

INSERT INTO threshold_templates (bounds, created_at, diagnoses, id, key, max_age, min_age, name, signed_off_at, signed_off_by, sources, updated_at, updated_by, version) VALUES ('{
			"weight": {"change_threshold_kg": 2, "change_window_days": 7, "critical_change_kg": 4}
		}', '2026-01-01T00:00:00.000000Z', '["I50", "I11.0", "I13.0", "I13.2"]', '000000000000002', 'heart_failure', NULL, 18, 'Heart failure', '', '', '["ESC guidelines for acute and chronic heart failure, 2021: over 2 kg in 3 days", "AHA/ACC/HFSA guideline for the management of heart failure, 2022"]', '2026-01-01T00:00:00.000000Z', '', 1);

INSERT INTO threshold_templates (bounds, created_at, diagnoses, id, key, max_age, min_age, name, signed_off_at, signed_off_by, sources, updated_at, updated_by, version) VALUES ('{
			"pulse_oximetry": {"critical_low": 85, "low": 87}
		}', '2026-01-01T00:00:00.000000Z', '["J44"]', '000000000000003', 'copd', NULL, 18, 'COPD, target saturation 88 to 92 %', '', '', '["BTS guideline for oxygen use in adults, 2017: target 88 to 92 %", "GOLD report, 2025", "Royal College of Physicians, NEWS2, 2017: SpO2 scale 2"]', '2026-01-01T00:00:00.000000Z', '', 1);

INSERT INTO threshold_templates (bounds, created_at, diagnoses, id, key, max_age, min_age, name, signed_off_at, signed_off_by, sources, updated_at, updated_by, version) VALUES ('{
			"blood_pressure": {"systolic_critical_low": 80, "systolic_low": 90, "systolic_high": 140, "systolic_critical": 160,
				"diastolic_critical_low": 40, "diastolic_low": 60, "diastolic_high": 90, "diastolic_critical": 110},
			"pulse": {"critical_low": 40, "low": 50, "high": 120, "critical": 130},
			"pulse_oximetry": {"critical_low": 90, "low": 94}
		}', '2026-01-01T00:00:00.000000Z', '["O09", "O10", "O11", "O12", "O13", "O14", "O15", "O16", "Z33.1", "Z34", "Z3A"]', '000000000000004', 'pregnancy', NULL, NULL, 'Pregnancy', '', '', '["ACOG Practice Bulletin 222, gestational hypertension and preeclampsia, 2020: severe from 160/110", "Maternal early warning criteria, National Partnership for Maternal Safety, 2014: pulse below 50 or above 120, saturation below 95 %"]', '2026-01-01T00:00:00.000000Z', '', 1);

INSERT INTO threshold_templates (bounds, created_at, diagnoses, id, key, max_age, min_age, name, signed_off_at, signed_off_by, sources, updated_at, updated_by, version) VALUES ('{
			"blood_glucose": {"critical_low": 54, "low": 70, "high": 250, "critical": 300}
		}', '2026-01-01T00:00:00.000000Z', '["E08", "E09", "E10", "E11", "E13"]', '000000000000005', 'diabetes', NULL, NULL, 'Diabetes', '', '', '["ADA Standards of Care in Diabetes, 2025: level 1 below 70, level 2 below 54 mg/dL", "ISPAD consensus guidelines, hypoglycemia, 2022: the same for children and adolescents"]', '2026-01-01T00:00:00.000000Z', '', 1);

INSERT INTO threshold_templates (bounds, created_at, diagnoses, id, key, max_age, min_age, name, signed_off_at, signed_off_by, sources, updated_at, updated_by, version) VALUES ('{
			"blood_glucose": {"critical_low": 54, "low": 63, "high": 140, "critical": 200},
			"blood_pressure": {"systolic_critical_low": 80, "systolic_low": 90, "systolic_high": 140, "systolic_critical": 160,
				"diastolic_critical_low": 40, "diastolic_low": 60, "diastolic_high": 90, "diastolic_critical": 110}
		}', '2026-01-01T00:00:00.000000Z', '["O24"]', '000000000000006', 'gestational_diabetes', NULL, NULL, 'Diabetes in pregnancy', '', '', '["ADA Standards of Care in Diabetes, 2025, section 15: 63 to 140 mg/dL, one hour after a meal below 140", "ACOG Practice Bulletin 201, pregestational diabetes, 2018: ketones from 200 mg/dL", "ACOG Practice Bulletin 222, 2020: severe from 160/110"]', '2026-01-01T00:00:00.000000Z', '', 1);

INSERT INTO thresholds (bounds, id, patient, templates, updated_at, updated_by) VALUES ('{"blood_pressure":{"systolic_critical_low":80,"systolic_low":90,"systolic_high":140,"systolic_critical":180,"diastolic_critical_low":40,"diastolic_low":60,"diastolic_high":90,"diastolic_critical":120},"pulse":{"critical_low":40,"low":50,"high":110,"critical":130},"pulse_oximetry":{"critical_low":88,"low":92},"blood_glucose":{"critical_low":54,"low":70,"high":250,"critical":300},"weight":{"change_threshold_kg":2.3,"change_window_days":7,"daily_change_kg":1.4,"over_target_kg":2.3},"body_temperature":{"critical_low":35,"low":36,"high":38,"critical":39.1}}', 'practicedefault', '', NULL, '', '');
