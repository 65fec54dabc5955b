package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

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
