// Package triage ranks patients: the risk score as a pure function that explains itself, the risk levels, and the
// stored row behind the triage list. It knows what needs attention first; it does not know who asks.
package triage

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// RiskLevel is the band of a risk score.
type RiskLevel string

// The risk levels of the contract.
const (
	RiskCritical RiskLevel = "critical" // 76 to 100
	RiskWarning  RiskLevel = "warning"  // 51 to 75
	RiskNormal   RiskLevel = "normal"   // 1 to 50
	RiskNoData   RiskLevel = "no_data"  // 0
)

// Weights of the risk score. Source: docs/decisions/triage.md, "Risk-score formula".
const (
	worstDeviationPoints = 50.0
	furtherPoints        = 10.0 // for deviations beyond the first
	alertPoints          = 25.0
	alertPointsFullAt    = 12.0
	reviewPoints         = 15.0
	reviewFullAfter      = 168 * time.Hour
	vitalsWindow         = 7 * 24 * time.Hour
	dataWindow           = 30 * 24 * time.Hour
	lowestCritical       = 76
	lowestWarning        = 51
)

// AlertCounts counts the alerts created in the last seven days, whatever became of them.
type AlertCounts struct{ Critical, Warning, NoData int }

// Circumstances are all that a risk score depends on.
type Circumstances struct {
	Latest     Latest
	Thresholds alerts.Thresholds
	Weighings  []alerts.Weighing
	// Alerts were created in the last seven days.
	Alerts AlertCounts
	// Unacknowledged reading alerts, and escalations that are open or in progress.
	UnacknowledgedCritical, UnacknowledgedWarning bool
	StatEscalation, UrgentEscalation              bool
	// ReviewedAt is the last review, or the patient's creation.
	ReviewedAt time.Time
}

// Factor explains a part of a score.
type Factor struct {
	Factor string  `json:"factor"` // vitals, alerts, review, floor or thresholds
	Points float64 `json:"points"`
	Detail string  `json:"detail"`
}

// Score is a risk score with its band and its reasons.
type Score struct {
	Value   int
	Level   RiskLevel
	Factors []Factor
}

// Rate computes the risk score, 0 to 100; 0 only when there is no data.
func Rate(c Circumstances, now time.Time) Score {
	unacknowledged := c.UnacknowledgedCritical || c.UnacknowledgedWarning
	if !unacknowledged && !c.Latest.measuredSince(now.Add(-dataWindow)) {
		return Score{Level: RiskNoData, Factors: []Factor{}}
	}
	factors, tenths := []Factor{}, 0
	for _, factor := range []Factor{vitalsFactor(c, now), alertsFactor(c.Alerts), reviewFactor(c.ReviewedAt, now)} {
		// Points are shown in tenths and added as shown, so that the score is the sum that people see.
		points := int(math.Round(factor.Points * 10))
		if points > 0 {
			factor.Points = float64(points) / 10
			factors, tenths = append(factors, factor), tenths+points
		}
	}
	sum := (tenths + 5) / 10
	floor, why := lowestScore(c)
	if floor > sum && why != "" {
		factors = append(factors, Factor{Factor: "floor", Points: float64(floor), Detail: why})
	}
	value := min(max(sum, floor), 100)
	return Score{Value: value, Level: LevelOf(value), Factors: factors}
}

// LevelOf is the band of a score.
func LevelOf(score int) RiskLevel {
	switch {
	case score >= lowestCritical:
		return RiskCritical
	case score >= lowestWarning:
		return RiskWarning
	case score >= 1:
		return RiskNormal
	}
	return RiskNoData
}

// lowestScore: nobody with an unanswered danger ranks below it.
func lowestScore(c Circumstances) (int, string) {
	switch {
	case c.UnacknowledgedCritical:
		return lowestCritical, "Unacknowledged critical alert."
	case c.StatEscalation:
		return lowestCritical, "Stat escalation not closed."
	case c.UnacknowledgedWarning:
		return lowestWarning, "Unacknowledged warning alert."
	case c.UrgentEscalation:
		return lowestWarning, "Urgent escalation not closed."
	}
	return 1, ""
}

func alertsFactor(counts AlertCounts) Factor {
	points := float64(4*counts.Critical + 2*counts.Warning + counts.NoData)
	return Factor{
		Factor: "alerts", Points: alertPoints * min(1, points/alertPointsFullAt),
		Detail: fmt.Sprintf("%d critical, %d warning and %d no-data alerts in 7 days.", counts.Critical, counts.Warning, counts.NoData),
	}
}

func reviewFactor(reviewedAt, now time.Time) Factor {
	since := max(0, now.Sub(reviewedAt))
	return Factor{
		Factor: "review", Points: reviewPoints * min(1, since.Hours()/reviewFullAfter.Hours()),
		Detail: fmt.Sprintf("%d hours since the last review.", int(since.Hours())),
	}
}

func vitalsFactor(c Circumstances, now time.Time) Factor {
	factor := Factor{Factor: "vitals"}
	worst, beyond := 0.0, 0
	for _, p := range c.Latest.parameters(c.Thresholds, c.Weighings, now.Add(-vitalsWindow)) {
		d := deviation(p.value, p.limits)
		if d == 0 {
			continue
		}
		beyond++
		if d > worst {
			worst = d
			factor.Detail = fmt.Sprintf("%s %s is out of bounds.", p.name, strconv.FormatFloat(p.value, 'f', -1, 64))
		}
	}
	if beyond == 0 {
		return factor
	}
	if beyond > 1 {
		factor.Detail += fmt.Sprintf(" %d parameters in all.", beyond)
	}
	factor.Points = worstDeviationPoints*worst + furtherPoints*min(1, float64(beyond-1)/2)
	return factor
}

// deviation is 0 inside the bounds, 1 at or beyond a critical bound, and 0.5 to 0.9 between warning and critical.
func deviation(value float64, l vitals.Limits) float64 {
	if (l.Critical != nil && value >= *l.Critical) || (l.CriticalLow != nil && value <= *l.CriticalLow) {
		return 1
	}
	between := func(past float64, warning, critical *float64) float64 {
		if critical == nil {
			return 0.5
		}
		return 0.5 + 0.4*past/math.Abs(*critical-*warning)
	}
	if l.High != nil && value >= *l.High {
		return between(value-*l.High, l.High, l.Critical)
	}
	if l.Low != nil && value <= *l.Low {
		return between(*l.Low-value, l.Low, l.CriticalLow)
	}
	return 0
}
