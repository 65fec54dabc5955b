package triage

import (
	"fmt"
	"math"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Stats is the triage list summed up, in the contract's form.
type Stats struct {
	TotalPatients             int     `json:"total_patients"`
	PatientsByRiskLevel       ByLevel `json:"patients_by_risk_level"`
	TotalUnacknowledgedAlerts int     `json:"total_unacknowledged_alerts"`
	ActiveEscalations         int     `json:"active_escalations"`
	AverageRiskScore          float64 `json:"avg_risk_score"`
	PatientsReviewedToday     int     `json:"patients_reviewed_today"`
	PatientsNeedingReview     int     `json:"patients_needing_review"`
}

// ByLevel counts patients by risk level.
type ByLevel struct {
	Critical int `json:"critical"`
	Warning  int `json:"warning"`
	Normal   int `json:"normal"`
	NoData   int `json:"no_data"`
}

// group is the listed patients of one level that do or do not need a review, and have or have not an unacknowledged alert.
// The database keeps each group's row in step; see the migration of the triage totals.
type group struct {
	Level       string `db:"risk_level"`
	NeedsReview bool   `db:"needs_review"`
	Patients    int    `db:"patients"`
	RiskScores  int    `db:"risk_scores"`
	Alerts      int    `db:"alerts"`
	Escalations int    `db:"escalations"`
}

// ReadStats sums the list up; careTeamOf confines it to the patients of a user's care teams, "" does not. Reviews count since
// today began, which the practice's zone decides. Source: docs/decisions/triage.md, "Stats" and "What a review is".
func ReadStats(app core.App, careTeamOf string, today time.Time) (stats Stats, err error) {
	listed := true
	theirs := collections.Conditions{}.Is("listed", &listed).OnCareTeamOf(careTeamOf)
	var groups []group
	if careTeamOf == "" {
		err = app.DB().Select("risk_level", "needs_review", "patients", "risk_scores", "alerts", "escalations").From("triage_totals").All(&groups)
	} else {
		err = app.DB().Select("risk_level", "needs_review", "COUNT(*) AS patients", "SUM(risk_score) AS risk_scores",
			"SUM(unacknowledged_alerts) AS alerts", "SUM(active_escalations) AS escalations").From(collections.TriageScores).
			Where(collections.Every(theirs)).GroupBy("risk_level", "needs_review").All(&groups)
	}
	if err != nil {
		return stats, fmt.Errorf("read triage totals: %w", err)
	}
	stats.add(groups)
	err = app.DB().Select("COUNT(*)").From(collections.TriageScores).
		Where(collections.Every(append(theirs, dbx.NewExp("last_reviewed_at >= {:today}", dbx.Params{"today": collections.Instant(today)})))).
		Row(&stats.PatientsReviewedToday)
	if err != nil {
		return stats, fmt.Errorf("count reviews: %w", err)
	}
	return stats, nil
}

func (s *Stats) add(groups []group) {
	scores := 0
	levels := map[RiskLevel]*int{
		RiskCritical: &s.PatientsByRiskLevel.Critical, RiskWarning: &s.PatientsByRiskLevel.Warning,
		RiskNormal: &s.PatientsByRiskLevel.Normal, RiskNoData: &s.PatientsByRiskLevel.NoData,
	}
	for _, g := range groups {
		s.TotalPatients += g.Patients
		s.TotalUnacknowledgedAlerts += g.Alerts
		s.ActiveEscalations += g.Escalations
		scores += g.RiskScores
		if count, known := levels[RiskLevel(g.Level)]; known {
			*count += g.Patients
		}
		if g.NeedsReview {
			s.PatientsNeedingReview += g.Patients
		}
	}
	if withData := s.TotalPatients - s.PatientsByRiskLevel.NoData; withData > 0 {
		s.AverageRiskScore = math.Floor(float64(scores)/float64(withData)*10+0.5) / 10
	}
}

// countListed is how many patients match a filter that is not confined to a care team: at most sixteen rows say it.
func countListed(app core.App, f Filter) (total int, err error) {
	where := collections.Conditions{}.Equal("risk_level", f.RiskLevel).Is("needs_review", f.NeedsReview).Is("unacknowledged", f.Unacknowledged)
	err = app.DB().Select("COALESCE(SUM(patients), 0)").From("triage_totals").Where(collections.Every(where)).Row(&total)
	if err != nil {
		return 0, fmt.Errorf("read triage totals: %w", err)
	}
	return total, nil
}
