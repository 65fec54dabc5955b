package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// TriageScore is a patient's row behind the triage list. Pages of them are read by internal/triage itself, which must be fast.
type TriageScore struct{ core.BaseRecordProxy }

// NewTriageScore returns the unsaved row of a patient without data. oldest stands for no unacknowledged alert.
func NewTriageScore(app core.App, patientID, level, oldest string, now time.Time) (*TriageScore, error) {
	return fresh[TriageScore](app, TriageScores, map[string]any{
		"patient": patientID, "listed": true, "risk_level": level, "risk_factors": []string{}, "latest_vitals": map[string]any{},
		"oldest_unacknowledged_at": oldest, "enrolled_at": Instant(now), "scored_at": Instant(now),
	})
}

// FindTriageScore finds the row of a patient.
func FindTriageScore(app core.App, patientID string) (*TriageScore, error) {
	return find[TriageScore](app, TriageScores, dbx.HashExp{"patient": patientID})
}

// SetReviewed stores that somebody looked at a patient.
func SetReviewed(tx core.App, patientID, by string, now time.Time) error {
	return exec(tx, "note review", `UPDATE triage_scores SET last_reviewed_at = {:at}, last_reviewed_by = {:by} WHERE patient = {:patient}`,
		dbx.Params{"at": Instant(now), "by": by, "patient": patientID})
}

// SetLatestVitals stores what is known of a patient's latest readings.
func SetLatestVitals(tx core.App, patientID, latest string) error {
	return exec(tx, "replace latest vitals", `UPDATE triage_scores SET latest_vitals = {:latest} WHERE patient = {:patient}`,
		dbx.Params{"latest": latest, "patient": patientID})
}

// TriageOutdated reports whether there are scores of an earlier program, which made them otherwise.
func TriageOutdated(app core.App) (outdated bool, err error) {
	return queryValue[bool](app, "look for scores of an earlier program", `SELECT EXISTS (SELECT 1 FROM triage_scores WHERE scored_at = '')`, nil)
}

// SetTriageScored notes that all scores are those of this program.
func SetTriageScored(tx core.App, now time.Time) error {
	return exec(tx, "note that scores are up to date", `UPDATE triage_scores SET scored_at = {:now} WHERE scored_at = ''`, dbx.Params{"now": Instant(now)})
}

// Listed reports whether the patient is on the list: archived and deleted ones are not.
func (s *TriageScore) Listed() bool          { return s.GetBool("listed") }
func (s *TriageScore) SetListed(listed bool) { s.Set("listed", listed) }

// TriageGroup is the listed patients of one level that do or do not need a review, and have or have not an unacknowledged alert.
// The database keeps each group's row in step; see the migration of the triage totals.
type TriageGroup struct {
	Level       string `db:"risk_level"`
	NeedsReview bool   `db:"needs_review"`
	Patients    int    `db:"patients"`
	RiskScores  int    `db:"risk_scores"`
	Alerts      int    `db:"alerts"`
	Escalations int    `db:"escalations"`
}

// TriageGroups are the list's; those of a person's care teams are counted, unless "".
func TriageGroups(app core.App, careTeamOf string) (groups []TriageGroup, err error) {
	query := app.DB().Select("risk_level", "needs_review", "patients", "risk_scores", "alerts", "escalations").From("triage_totals")
	if careTeamOf != "" {
		query = app.DB().Select("risk_level", "needs_review", "COUNT(*) AS patients", "SUM(risk_score) AS risk_scores",
			"SUM(unacknowledged_alerts) AS alerts", "SUM(active_escalations) AS escalations").From(TriageScores).
			Where(Every(listed(careTeamOf))).GroupBy("risk_level", "needs_review")
	}
	err = query.All(&groups)
	return groups, wrap(err, "read triage totals")
}

func listed(careTeamOf string) Conditions {
	return Conditions{dbx.NewExp("listed = TRUE")}.OnCareTeamOf(careTeamOf)
}

// CountReviewed is how many listed patients somebody has looked at since a time.
func CountReviewed(app core.App, careTeamOf string, since time.Time) (int, error) {
	return append(listed(careTeamOf), dbx.NewExp("last_reviewed_at >= {:since}", dbx.Params{"since": Instant(since)})).Count(app, TriageScores)
}

// CountListed is how many patients of all care teams are listed, narrowed by what is not nil: at most sixteen rows say it.
func CountListed(app core.App, level string, needsReview, unacknowledged *bool) (total int, err error) {
	where := Conditions{}.Equal("risk_level", level).Is("needs_review", needsReview).Is("unacknowledged", unacknowledged)
	err = app.DB().Select("COALESCE(SUM(patients), 0)").From("triage_totals").Where(Every(where)).Row(&total)
	return total, wrap(err, "read triage totals")
}

// ListVersion is another one after each commit that changes what a page of the triage list shows: places, names, care teams, escalations. What
// triggers count says so, see the migration of the triage version, or a change that is told, as every reading is.
type ListVersion struct {
	Counted int64 `db:"counted"`
	Told    int64 `db:"told"`
}

// ReadListVersion reads the version; what is read after it is at least as new.
func ReadListVersion(app core.App) (v ListVersion, err error) {
	err = app.ConcurrentDB().NewQuery(`SELECT value AS counted, (SELECT COALESCE(MAX(seq), 0) FROM changes) AS told FROM sequences WHERE name = 'triage_list'`).Row(&v.Counted, &v.Told)
	return v, wrap(err, "read the version of the triage list")
}

// CountListVersion notes, inside a transaction, that places were worked out anew and nothing else tells of it.
func CountListVersion(tx core.App) error {
	return exec(tx, "count the states of the triage list", `UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'`, nil)
}

// Attention is how many listed patients want what, besides the totals that are kept.
type Attention struct {
	Unanswered int `db:"unanswered"` // critical, and nobody has answered
	Alerting   int `db:"alerting"`   // with an unacknowledged alert
	Escalated  int `db:"escalated"`
}

// UnansweredFrom is the score at which an unanswered critical begins. The triggers of the totals count from it too: another one needs a migration.
const UnansweredFrom = 86

// CountAttention counts among the listed patients, of a person's care teams unless "".
func CountAttention(app core.App, careTeamOf string, level string) (a Attention, err error) {
	where := listed(careTeamOf)
	if a.Escalated, err = where.And(escalated).Count(app, TriageScores); err != nil {
		return a, err
	}
	if careTeamOf == "" {
		err = app.DB().Select("COALESCE(SUM(unanswered) FILTER (WHERE risk_level = {:level}), 0) AS unanswered",
			"COALESCE(SUM(patients) FILTER (WHERE unacknowledged), 0) AS alerting").From("triage_totals").
			Bind(dbx.Params{"level": level}).Row(&a.Unanswered, &a.Alerting)
		return a, wrap(err, "read triage totals")
	}
	unanswered := append(where.Equal("risk_level", level), dbx.NewExp("risk_score >= {:from}", dbx.Params{"from": UnansweredFrom}))
	if a.Unanswered, err = unanswered.Count(app, TriageScores); err != nil {
		return a, err
	}
	a.Alerting, err = where.And("unacknowledged_alerts > 0").Count(app, TriageScores)
	return a, err
}

// escalated keeps the patients with an escalation that is open, found by those.
const escalated = "patient IN (SELECT patient FROM escalations WHERE status IN ('open', 'in_progress'))"

// Escalated keeps rows about patients with an escalation that is open.
func (c Conditions) Escalated() Conditions { return c.And(escalated) }

// CountListedOfTeam is how many listed patients are those of a person's care teams.
func CountListedOfTeam(app core.App, userID string) (int, error) {
	return listed(userID).Count(app, TriageScores)
}
