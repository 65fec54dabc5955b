package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// TriageScore is a patient's row of the triage list. internal/triage reads pages of them directly, because that is a hot path.
type TriageScore struct{ core.BaseRecordProxy }

// NewTriageScore returns the unsaved row of a patient without data. oldest is the placeholder for no unacknowledged alert.
func NewTriageScore(app core.App, patientID, level, oldest string, now time.Time) (*TriageScore, error) {
	return newRecord[TriageScore](app, TriageScores, map[string]any{
		"patient": patientID, "listed": true, "risk_level": level, "risk_factors": []string{}, "latest_vitals": map[string]any{},
		"oldest_unacknowledged_at": oldest, "enrolled_at": FormatInstant(now), "scored_at": FormatInstant(now),
	})
}

// FindTriageScore finds the row of a patient.
func FindTriageScore(app core.App, patientID string) (*TriageScore, error) {
	return find[TriageScore](app, TriageScores, dbx.HashExp{"patient": patientID})
}

// SetReviewed stores a review of a patient.
func SetReviewed(tx core.App, patientID, by string, now time.Time) error {
	return exec(tx, "store review", `UPDATE triage_scores SET last_reviewed_at = {:at}, last_reviewed_by = {:by} WHERE patient = {:patient}`,
		dbx.Params{"at": FormatInstant(now), "by": by, "patient": patientID})
}

// SetLatestVitals stores the summary of a patient's latest readings.
func SetLatestVitals(tx core.App, patientID, latest string) error {
	return exec(tx, "replace latest vitals", `UPDATE triage_scores SET latest_vitals = {:latest} WHERE patient = {:patient}`,
		dbx.Params{"latest": latest, "patient": patientID})
}

// HasOutdatedScores reports whether an earlier version computed any score.
func HasOutdatedScores(app core.App) (outdated bool, err error) {
	return queryValue[bool](app, "look for outdated scores", `SELECT EXISTS (SELECT 1 FROM triage_scores WHERE scored_at = '')`, nil)
}

// SetTriageScored marks all scores as current.
func SetTriageScored(tx core.App, now time.Time) error {
	return exec(tx, "mark scores as current", `UPDATE triage_scores SET scored_at = {:now} WHERE scored_at = ''`, dbx.Params{"now": FormatInstant(now)})
}

// Listed reports whether the patient is on the list; archived and deleted ones are not.
func (s *TriageScore) Listed() bool          { return s.GetBool("listed") }
func (s *TriageScore) SetListed(listed bool) { s.Set("listed", listed) }

// TriageGroup counts the listed patients of one level, with or without the need of a review and an unacknowledged alert. Triggers keep the
// rows current; see the migration of the triage totals.
type TriageGroup struct {
	Level       string `db:"risk_level"`
	NeedsReview bool   `db:"needs_review"`
	Patients    int    `db:"patients"`
	RiskScores  int    `db:"risk_scores"`
	Alerts      int    `db:"alerts"`
	Escalations int    `db:"escalations"`
}

// TriageGroups returns the stored groups, or counts those of a user's care teams unless "".
func TriageGroups(app core.App, careTeamOf string) (groups []TriageGroup, err error) {
	query := app.DB().Select("risk_level", "needs_review", "patients", "risk_scores", "alerts", "escalations").From("triage_totals")
	if careTeamOf != "" {
		query = app.DB().Select("risk_level", "needs_review", "COUNT(*) AS patients", "SUM(risk_score) AS risk_scores",
			"SUM(unacknowledged_alerts) AS alerts", "SUM(active_escalations) AS escalations").From(TriageScores).
			Where(AllOf(listed(careTeamOf))).GroupBy("risk_level", "needs_review")
	}
	err = query.All(&groups)
	return groups, wrap(err, "read triage totals")
}

func listed(careTeamOf string) Conditions {
	return Conditions{dbx.NewExp("listed = TRUE")}.OnCareTeamOf(careTeamOf)
}

// CountReviewed counts the listed patients reviewed since a time.
func CountReviewed(app core.App, careTeamOf string, since time.Time) (int, error) {
	return append(listed(careTeamOf), dbx.NewExp("last_reviewed_at >= {:since}", dbx.Params{"since": FormatInstant(since)})).Count(app, TriageScores)
}

// CountListed counts the listed patients of all care teams, narrowed by arguments that are not nil. It sums at most sixteen rows.
func CountListed(app core.App, level string, needsReview, unacknowledged *bool) (total int, err error) {
	where := Conditions{}.Equal("risk_level", level).Is("needs_review", needsReview).Is("unacknowledged", unacknowledged)
	err = app.DB().Select("COALESCE(SUM(patients), 0)").From("triage_totals").Where(AllOf(where)).Row(&total)
	return total, wrap(err, "read triage totals")
}

// ListVersion changes after each commit that changes a page of the triage list: scores, names, care teams, escalations. It combines a counter
// that triggers increment (see the migration of the triage version) and the position of the change feed.
type ListVersion struct {
	Counted int64 `db:"counted"`
	Changes int64 `db:"last_change"`
}

// ReadListVersion reads the version. Data read after it is at least as new.
func ReadListVersion(app core.App) (v ListVersion, err error) {
	err = app.ConcurrentDB().NewQuery(`SELECT value AS counted, (SELECT COALESCE(MAX(seq), 0) FROM changes) AS last_change FROM sequences WHERE name = 'triage_list'`).Row(&v.Counted, &v.Changes)
	return v, wrap(err, "read the version of the triage list")
}

// BumpListVersion records, in a transaction, that scores changed without another tracked change.
func BumpListVersion(tx core.App) error {
	return exec(tx, "increment the version of the triage list", `UPDATE sequences SET value = value + 1 WHERE name = 'triage_list'`, nil)
}

// AttentionCounts counts listed patients by what they need, in addition to the stored totals.
type AttentionCounts struct {
	Unanswered int `db:"unanswered"` // critical without an acknowledgment
	Alerting   int `db:"alerting"`   // with an unacknowledged alert
	Escalated  int `db:"escalated"`
}

// UnansweredFrom is the lowest score of an unacknowledged critical patient. The triggers of the totals use it too, so a change needs a
// migration.
const UnansweredFrom = 86

// CountAttention counts the listed patients, of a user's care teams unless "".
func CountAttention(app core.App, careTeamOf string, level string) (a AttentionCounts, err error) {
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

// escalated matches patients with an open escalation.
const escalated = "patient IN (SELECT patient FROM escalations WHERE status IN ('open', 'in_progress'))"

// Escalated keeps rows about patients with an open escalation.
func (c Conditions) Escalated() Conditions { return c.And(escalated) }

// CountListedOfTeam counts the listed patients of a user's care teams.
func CountListedOfTeam(app core.App, userID string) (int, error) {
	return listed(userID).Count(app, TriageScores)
}

// LastReview returns when a patient was last reviewed and by which user, or zero.
func LastReview(app core.App, patientID string) (at time.Time, by string, err error) {
	rows, err := queryAll[struct {
		At string `db:"last_reviewed_at"`
		By string `db:"last_reviewed_by"`
	}](app, "read the last review", `SELECT last_reviewed_at, last_reviewed_by FROM triage_scores WHERE patient = {:patient}`, dbx.Params{"patient": patientID})
	if err != nil || len(rows) == 0 {
		return time.Time{}, "", err
	}
	return ParseInstant(rows[0].At), rows[0].By, nil
}
