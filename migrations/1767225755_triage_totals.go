package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// The triage list in the order of severity is one walk along one index, whatever narrows it. How many patients it has, and
// what they add up to, stands in sixteen rows that triggers keep in step, so that nobody counts a hundred thousand.
func init() {
	step("1767225755_triage_totals.go", func(app core.App) error {
		scores, err := app.FindCollectionByNameOrId("triage_scores")
		if err != nil {
			return fmt.Errorf("find triage scores: %w", err)
		}
		const severity = "risk_score DESC, unacknowledged_critical DESC, oldest_unacknowledged_at, last_reviewed_at, patient"
		for _, index := range []struct{ suffix, columns, where string }{
			{"level", "listed, risk_level, " + severity, ""},
			{"unacknowledged", "listed, " + severity, "unacknowledged_alerts > 0"},
			{"review", "listed, " + severity, "needs_review = TRUE"},
			{"reviewed", "listed, last_reviewed_at", ""},
		} {
			scores.RemoveIndex("idx_triage_scores_" + index.suffix)
			scores.AddIndex("idx_triage_scores_"+index.suffix, false, index.columns, index.where)
		}
		if err := app.Save(scores); err != nil {
			return fmt.Errorf("indexes of triage scores: %w", err)
		}
		return execute(app, triageTotals...)
	})
}

// triageTotals is every listed patient in one of sixteen groups; a patient who changes leaves one group and joins another.
var triageTotals = []string{
	`CREATE TABLE triage_totals (
		risk_level TEXT NOT NULL, needs_review INTEGER NOT NULL, unacknowledged INTEGER NOT NULL,
		patients INTEGER NOT NULL DEFAULT 0, risk_scores INTEGER NOT NULL DEFAULT 0, alerts INTEGER NOT NULL DEFAULT 0,
		escalations INTEGER NOT NULL DEFAULT 0,
		PRIMARY KEY (risk_level, needs_review, unacknowledged)) WITHOUT ROWID`,
	`INSERT INTO triage_totals (risk_level, needs_review, unacknowledged, patients, risk_scores, alerts, escalations)
		SELECT level.value, review.value, open.value, COUNT(s.patient), COALESCE(SUM(s.risk_score), 0),
			COALESCE(SUM(s.unacknowledged_alerts), 0), COALESCE(SUM(s.active_escalations), 0)
		FROM json_each('["critical","warning","normal","no_data"]') level, json_each('[0,1]') review, json_each('[0,1]') open
		LEFT JOIN triage_scores s ON s.listed = TRUE AND s.risk_level = level.value AND s.needs_review = review.value
			AND (s.unacknowledged_alerts > 0) = open.value
		GROUP BY 1, 2, 3`,
	`CREATE TRIGGER triage_scores_join AFTER INSERT ON triage_scores WHEN NEW.listed BEGIN ` + joins + ` END`,
	`CREATE TRIGGER triage_scores_leave AFTER DELETE ON triage_scores WHEN OLD.listed BEGIN ` + leaves + ` END`,
	`CREATE TRIGGER triage_scores_move AFTER UPDATE ON triage_scores
		WHEN (OLD.listed, OLD.risk_level, OLD.needs_review, OLD.risk_score, OLD.unacknowledged_alerts, OLD.active_escalations)
			IS NOT (NEW.listed, NEW.risk_level, NEW.needs_review, NEW.risk_score, NEW.unacknowledged_alerts, NEW.active_escalations)
		BEGIN ` + leaves + joins + ` END`,
}

const (
	joins = `UPDATE triage_totals SET patients = patients + 1, risk_scores = risk_scores + NEW.risk_score,
			alerts = alerts + NEW.unacknowledged_alerts, escalations = escalations + NEW.active_escalations
		WHERE NEW.listed AND risk_level = NEW.risk_level AND needs_review = NEW.needs_review
			AND unacknowledged = (NEW.unacknowledged_alerts > 0);`
	leaves = `UPDATE triage_totals SET patients = patients - 1, risk_scores = risk_scores - OLD.risk_score,
			alerts = alerts - OLD.unacknowledged_alerts, escalations = escalations - OLD.active_escalations
		WHERE OLD.listed AND risk_level = OLD.risk_level AND needs_review = OLD.needs_review
			AND unacknowledged = (OLD.unacknowledged_alerts > 0);`
)
