package migrations

import "github.com/pocketbase/pocketbase/core"

// The critical patients whom nobody has answered are those of a score from 86 on. Every reader of the list asks how many there are, so the
// totals keep it, as they keep the rest.
func init() {
	step("1767225989_triage_unanswered.go", func(app core.App) error { return execute(app, triageUnanswered...) })
}

var triageUnanswered = []string{
	`DROP TRIGGER triage_scores_join`, `DROP TRIGGER triage_scores_leave`, `DROP TRIGGER triage_scores_move`,
	`ALTER TABLE triage_totals ADD COLUMN unanswered INTEGER NOT NULL DEFAULT 0`,
	`UPDATE triage_totals SET unanswered = (SELECT COUNT(*) FROM triage_scores s WHERE s.listed = TRUE AND s.risk_level = triage_totals.risk_level
		AND s.risk_score >= 86 AND s.needs_review = triage_totals.needs_review AND (s.unacknowledged_alerts > 0) = triage_totals.unacknowledged)`,
	`CREATE TRIGGER triage_scores_join AFTER INSERT ON triage_scores WHEN NEW.listed BEGIN ` + joinsUnanswered + ` END`,
	`CREATE TRIGGER triage_scores_leave AFTER DELETE ON triage_scores WHEN OLD.listed BEGIN ` + leavesUnanswered + ` END`,
	`CREATE TRIGGER triage_scores_move AFTER UPDATE ON triage_scores
		WHEN (OLD.listed, OLD.risk_level, OLD.needs_review, OLD.risk_score, OLD.unacknowledged_alerts, OLD.active_escalations)
			IS NOT (NEW.listed, NEW.risk_level, NEW.needs_review, NEW.risk_score, NEW.unacknowledged_alerts, NEW.active_escalations)
		BEGIN ` + leavesUnanswered + joinsUnanswered + ` END`,
}

const (
	joinsUnanswered = `UPDATE triage_totals SET patients = patients + 1, risk_scores = risk_scores + NEW.risk_score,
			alerts = alerts + NEW.unacknowledged_alerts, escalations = escalations + NEW.active_escalations,
			unanswered = unanswered + (NEW.risk_score >= 86)
		WHERE NEW.listed AND risk_level = NEW.risk_level AND needs_review = NEW.needs_review
			AND unacknowledged = (NEW.unacknowledged_alerts > 0);`
	leavesUnanswered = `UPDATE triage_totals SET patients = patients - 1, risk_scores = risk_scores - OLD.risk_score,
			alerts = alerts - OLD.unacknowledged_alerts, escalations = escalations - OLD.active_escalations,
			unanswered = unanswered - (OLD.risk_score >= 86)
		WHERE OLD.listed AND risk_level = OLD.risk_level AND needs_review = OLD.needs_review
			AND unacknowledged = (OLD.unacknowledged_alerts > 0);`
)
