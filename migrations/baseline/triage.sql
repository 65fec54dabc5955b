CREATE TABLE `triage_scores` (
  `active_escalations` NUMERIC DEFAULT 0 NOT NULL,
  `enrolled_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `last_reading_at` TEXT DEFAULT '' NOT NULL,
  `last_reviewed_at` TEXT DEFAULT '' NOT NULL,
  `last_reviewed_by` TEXT DEFAULT '' NOT NULL,
  `latest_vitals` JSON DEFAULT NULL,
  `listed` BOOLEAN DEFAULT FALSE NOT NULL,
  `needs_review` BOOLEAN DEFAULT FALSE NOT NULL,
  `oldest_unacknowledged_at` TEXT DEFAULT '' NOT NULL,
  `patient` TEXT DEFAULT '' NOT NULL,
  `risk_factors` JSON DEFAULT NULL,
  `risk_level` TEXT DEFAULT '' NOT NULL,
  `risk_score` NUMERIC DEFAULT 0 NOT NULL,
  `scored_at` TEXT DEFAULT '' NOT NULL,
  `unacknowledged_alerts` NUMERIC DEFAULT 0 NOT NULL,
  `unacknowledged_critical` NUMERIC DEFAULT 0 NOT NULL,
  "age_group" TEXT DEFAULT '' NOT NULL,
  "needs_thresholds" BOOLEAN DEFAULT FALSE NOT NULL
);

CREATE TABLE triage_totals (
		risk_level TEXT NOT NULL, needs_review INTEGER NOT NULL, unacknowledged INTEGER NOT NULL,
		patients INTEGER NOT NULL DEFAULT 0, risk_scores INTEGER NOT NULL DEFAULT 0, alerts INTEGER NOT NULL DEFAULT 0,
		escalations INTEGER NOT NULL DEFAULT 0, unanswered INTEGER NOT NULL DEFAULT 0,
		PRIMARY KEY (risk_level, needs_review, unacknowledged)) WITHOUT ROWID;

CREATE UNIQUE INDEX `idx_triage_scores_patient` ON `triage_scores` (`patient`);

CREATE INDEX `idx_triage_scores_severity` ON `triage_scores` (
  `listed`,
  `risk_score` DESC,
  `unacknowledged_critical` DESC,
  `oldest_unacknowledged_at`,
  `last_reviewed_at`,
  `patient`
);

CREATE INDEX `idx_triage_scores_last_reading` ON `triage_scores` (
  `listed`,
  `last_reading_at`,
  `patient`
);

CREATE INDEX `idx_triage_scores_level` ON `triage_scores` (
  `listed`,
  `risk_level`,
  `risk_score` DESC,
  `unacknowledged_critical` DESC,
  `oldest_unacknowledged_at`,
  `last_reviewed_at`,
  `patient`
);

CREATE INDEX `idx_triage_scores_unacknowledged` ON `triage_scores` (
  `listed`,
  `risk_score` DESC,
  `unacknowledged_critical` DESC,
  `oldest_unacknowledged_at`,
  `last_reviewed_at`,
  `patient`
) WHERE unacknowledged_alerts > 0;

CREATE INDEX `idx_triage_scores_review` ON `triage_scores` (
  `listed`,
  `risk_score` DESC,
  `unacknowledged_critical` DESC,
  `oldest_unacknowledged_at`,
  `last_reviewed_at`,
  `patient`
) WHERE needs_review = TRUE;

CREATE INDEX `idx_triage_scores_reviewed` ON `triage_scores` (
  `listed`,
  `last_reviewed_at`
);

CREATE INDEX `idx_triage_scores_minors` ON `triage_scores` (`patient`) WHERE age_group != 'adult';

CREATE TRIGGER triage_scores_join AFTER INSERT ON triage_scores WHEN NEW.listed BEGIN UPDATE triage_totals SET patients = patients + 1, risk_scores = risk_scores + NEW.risk_score,
			alerts = alerts + NEW.unacknowledged_alerts, escalations = escalations + NEW.active_escalations,
			unanswered = unanswered + (NEW.risk_score >= 86)
		WHERE NEW.listed AND risk_level = NEW.risk_level AND needs_review = NEW.needs_review
			AND unacknowledged = (NEW.unacknowledged_alerts > 0); END;

CREATE TRIGGER triage_scores_leave AFTER DELETE ON triage_scores WHEN OLD.listed BEGIN UPDATE triage_totals SET patients = patients - 1, risk_scores = risk_scores - OLD.risk_score,
			alerts = alerts - OLD.unacknowledged_alerts, escalations = escalations - OLD.active_escalations,
			unanswered = unanswered - (OLD.risk_score >= 86)
		WHERE OLD.listed AND risk_level = OLD.risk_level AND needs_review = OLD.needs_review
			AND unacknowledged = (OLD.unacknowledged_alerts > 0); END;

CREATE TRIGGER triage_scores_move AFTER UPDATE ON triage_scores
		WHEN (OLD.listed, OLD.risk_level, OLD.needs_review, OLD.risk_score, OLD.unacknowledged_alerts, OLD.active_escalations)
			IS NOT (NEW.listed, NEW.risk_level, NEW.needs_review, NEW.risk_score, NEW.unacknowledged_alerts, NEW.active_escalations)
		BEGIN UPDATE triage_totals SET patients = patients - 1, risk_scores = risk_scores - OLD.risk_score,
			alerts = alerts - OLD.unacknowledged_alerts, escalations = escalations - OLD.active_escalations,
			unanswered = unanswered - (OLD.risk_score >= 86)
		WHERE OLD.listed AND risk_level = OLD.risk_level AND needs_review = OLD.needs_review
			AND unacknowledged = (OLD.unacknowledged_alerts > 0);UPDATE triage_totals SET patients = patients + 1, risk_scores = risk_scores + NEW.risk_score,
			alerts = alerts + NEW.unacknowledged_alerts, escalations = escalations + NEW.active_escalations,
			unanswered = unanswered + (NEW.risk_score >= 86)
		WHERE NEW.listed AND risk_level = NEW.risk_level AND needs_review = NEW.needs_review
			AND unacknowledged = (NEW.unacknowledged_alerts > 0); END;

CREATE TRIGGER triage_list_join AFTER INSERT ON triage_scores BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

CREATE TRIGGER triage_list_leave AFTER DELETE ON triage_scores BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

CREATE TRIGGER triage_list_place AFTER UPDATE ON triage_scores WHEN NEW.scored_at IS OLD.scored_at BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

CREATE TRIGGER triage_list_rest AFTER UPDATE OF patient, listed, last_reviewed_at, last_reviewed_by, enrolled_at ON triage_scores BEGIN UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'; END;

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 0, 0, 'critical', 0, 0, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 0, 0, 'critical', 0, 1, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 0, 0, 'no_data', 0, 0, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 0, 0, 'no_data', 0, 1, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 0, 0, 'normal', 0, 0, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 0, 0, 'normal', 0, 1, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 0, 0, 'warning', 0, 0, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 0, 0, 'warning', 0, 1, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 1, 0, 'critical', 0, 0, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 1, 0, 'critical', 0, 1, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 1, 0, 'no_data', 0, 0, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 1, 0, 'no_data', 0, 1, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 1, 0, 'normal', 0, 0, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 1, 0, 'normal', 0, 1, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 1, 0, 'warning', 0, 0, 0);

INSERT INTO triage_totals (alerts, escalations, needs_review, patients, risk_level, risk_scores, unacknowledged, unanswered) VALUES (0, 0, 1, 0, 'warning', 0, 1, 0);
