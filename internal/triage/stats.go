package triage

import (
	"math"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Stats summarizes the triage list, in the contract's form.
type Stats struct {
	TotalPatients             int     `json:"total_patients"`
	PatientsByRiskLevel       ByLevel `json:"patients_by_risk_level"`
	TotalUnacknowledgedAlerts int     `json:"total_unacknowledged_alerts"`
	ActiveEscalations         int     `json:"active_escalations"`
	AverageRiskScore          float64 `json:"avg_risk_score"`
	PatientsReviewedToday     int     `json:"patients_reviewed_today"`
	PatientsNeedingReview     int     `json:"patients_needing_review"`
	CriticalUnanswered        int     `json:"critical_unanswered"` // the other critical patients are handled
	PatientsAlerting          int     `json:"patients_alerting"`
	PatientsEscalated         int     `json:"patients_escalated"`
}

// ByLevel counts patients by risk level.
type ByLevel struct {
	Critical int `json:"critical"`
	Warning  int `json:"warning"`
	Normal   int `json:"normal"`
	NoData   int `json:"no_data"`
}

// ReadStats summarizes the list; careTeamOf limits it to the patients of a user's care teams, "" does not. Reviews count since today, the
// start of the practice's day. Source: docs/decisions/triage.md, "Stats" and "Reviews".
func ReadStats(app core.App, careTeamOf string, today time.Time) (stats Stats, err error) {
	groups, err := collections.TriageGroups(app, careTeamOf)
	if err != nil {
		return stats, err
	}
	stats.add(groups)
	if stats.PatientsReviewedToday, err = collections.CountReviewed(app, careTeamOf, today); err != nil {
		return stats, err
	}
	wanted, err := collections.CountAttention(app, careTeamOf, string(RiskCritical))
	stats.CriticalUnanswered, stats.PatientsAlerting, stats.PatientsEscalated = wanted.Unanswered, wanted.Alerting, wanted.Escalated
	return stats, err
}

func (s *Stats) add(groups []collections.TriageGroup) {
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
		if count, found := levels[RiskLevel(g.Level)]; found {
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
