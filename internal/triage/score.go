// Package triage scores and ranks patients: the risk score as a pure function that explains itself, the triage list's rows, and the
// operations that change a patient and rescore in the same transaction. Callers decide who may see the list. The rules are in
// docs/decisions/triage.md.
package triage

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/collections"
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
	lowestUnanswered     = collections.UnansweredFrom
	highestOther         = lowestCritical - 1 // of patients outside the critical bands
	roundingError        = 1e-9               // makes an exact half round up
	lowestCritical       = 76
	lowestWarning        = 51
	urgentDeviation      = 0.9 // of an early warning below an emergency: as much as a value just before its critical bound
	gradedTenths         = 30  // tenths of a point that add one point to a warning
)

// AlertCounts counts the alerts created in the last seven days, in any state.
type AlertCounts struct{ Critical, Warning, NoData int }

// ScoreInput is everything that a risk score depends on.
type ScoreInput struct {
	Latest     Latest
	Thresholds alerts.Thresholds
	Baseline   []alerts.BaselineValue
	// Alerts counts the last seven days.
	Alerts AlertCounts
	// Unanswered are the unacknowledged critical alerts about measured values.
	Unanswered []alerts.OpenAlert
	// Undecided are acknowledged alerts with values neither confirmed nor discarded; they count like latest values.
	Undecided             []alerts.OpenAlert
	UnacknowledgedWarning bool
	// UrgentWarnings are the unacknowledged early warnings that call for an urgent review.
	UrgentWarnings []alerts.OpenAlert
	// Escalations that are open or in progress.
	StatEscalation, UrgentEscalation bool
	// ReviewedAt is the last review, or the patient's creation.
	ReviewedAt time.Time
	// AlertedAt is, by type, when the last critical alert about a reading of the last seven days was raised.
	AlertedAt map[string]time.Time
	// BoundsSetAt is when the last bound in force for the patient was set; zero for the initial ones.
	BoundsSetAt time.Time
}

// Factor explains a part of a score.
type Factor struct {
	Factor string  `json:"factor"` // vitals, alerts, review, floor, danger or thresholds
	Points float64 `json:"points"`
	Detail string  `json:"detail"`
}

// Score is a risk score with its band and its reasons.
type Score struct {
	Value   int
	Level   RiskLevel
	Factors []Factor
}

// ComputeScore computes the risk score, 0 to 100; it is 0 only without data and without anything open. An unanswered or recent critical
// value is graded by its danger alone; all other patients by the sum of the parts, which stays below the critical bands.
func ComputeScore(c ScoreInput, now time.Time) Score {
	var room [12]measuredValue // on the stack: runs for every reading
	latest := c.Latest.parameters(room[:0], c.Thresholds, c.Baseline, now.Add(-vitalsWindow))
	measured := len(latest)
	latest = c.withUndecided(latest)
	if c.nothingOpen() && !c.Latest.measuredSince(now.Add(-dataWindow)) && !slices.ContainsFunc(latest[measured:], measuredValue.critical) {
		return Score{Level: RiskNoData, Factors: []Factor{}}
	}
	for _, alert := range c.UrgentWarnings {
		latest = append(latest, measuredValue{name: "Early warning score", group: alerts.TypeEarlyWarning, value: alert.Value, at: alert.MeasuredAt, deviation: urgentDeviation})
	}
	vouched := c.withRecentVerified(latest, now)
	worst := worstDanger(c, vouched, now)
	lowest := c.scoreFloor(vouched, now)
	sum, factors := sumFactors([]Factor{vitalsFactor(latest, now), alertsFactor(c.Alerts), reviewFactor(c.ReviewedAt, now)}, lowest.why != "")
	switch {
	case lowest.why == "": // nothing is open
		value := max(sum, lowest.score)
		return Score{Value: value, Level: RiskLevelFor(value), Factors: factors}
	case lowest.span == 0:
		return gradeWarning(lowest, factors)
	}
	factors = append(factors, lowest.factor())
	added := int(math.Floor(worst.share*lowest.span + 0.5 + roundingError))
	if added > 0 {
		factors = append(factors, Factor{Factor: "danger", Points: float64(added), Detail: worst.String()})
	}
	value := lowest.score + added
	return Score{Value: value, Level: RiskLevelFor(value), Factors: factors}
}

// gradeWarning adds a third of the parts to the floor of the warnings, so that their order shows in the score and stays below the critical
// bands. Source: docs/decisions/triage.md, "Risk-score formula".
func gradeWarning(lowest floor, factors []Factor) Score {
	tenths := 0
	for _, factor := range factors {
		tenths += int(math.Round(factor.Points * 10))
	}
	added := min(highestOther-lowestWarning, (tenths+gradedTenths/2)/gradedTenths)
	factors = append(factors, lowest.factor())
	if added > 0 {
		factors = append(factors, Factor{Factor: "danger", Points: float64(added), Detail: "A third of the points of values, alerts and time since the review."})
	}
	value := lowest.score + added
	return Score{Value: value, Level: RiskLevelFor(value), Factors: factors}
}

// nothingOpen reports whether nothing open sets a floor for the score.
func (si ScoreInput) nothingOpen() bool {
	return len(si.Unanswered) == 0 && !si.UnacknowledgedWarning && !si.StatEscalation && !si.UrgentEscalation
}

// sumFactors adds the parts and drops those without points. Points are rounded to tenths before they are added, so the score is the sum
// that users see. Unless uncapped is true, the sum is capped below the critical levels.
func sumFactors(parts []Factor, uncapped bool) (sum int, factors []Factor) {
	factors, tenths := []Factor{}, 0
	for _, factor := range parts {
		points := int(math.Round(factor.Points * 10))
		if room := highestOther*10 - tenths; points > room && !uncapped {
			points = room
			factor.Detail += fmt.Sprintf(" Without a critical value that is unanswered or fresh the score ends at %d.", highestOther)
		}
		if points > 0 {
			factor.Points = float64(points) / 10
			factors, tenths = append(factors, factor), tenths+points
		}
	}
	return (tenths + 5) / 10, factors
}

// RiskLevelFor returns the level of a score.
func RiskLevelFor(score int) RiskLevel {
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

// floor is the floor of a patient's score, and why; danger adds up to span.
type floor struct {
	score int
	span  float64
	why   string
}

func (b floor) factor() Factor {
	return Factor{Factor: "floor", Points: float64(b.score), Detail: b.why}
}

// scoreFloor returns the floor: unanswered danger ranks highest, then a recent critical value, then warnings.
func (si ScoreInput) scoreFloor(latest []measuredValue, now time.Time) floor {
	switch {
	case len(si.Unanswered) > 0:
		return floor{lowestUnanswered, 100 - lowestUnanswered, "Unacknowledged critical alert."}
	case si.StatEscalation:
		return floor{lowestUnanswered, 100 - lowestUnanswered, "Stat escalation not closed."}
	case si.hasUnseenCritical(latest, now):
		return floor{lowestUnanswered, 100 - lowestUnanswered, "A critical value by bounds that were set after it was measured: no one was alerted."}
	case hasRecentCritical(latest, now):
		return floor{lowestCritical, lowestUnanswered - 1 - lowestCritical, "A critical value of the last 24 hours."}
	case si.UnacknowledgedWarning:
		return floor{lowestWarning, 0, "Unacknowledged warning alert."}
	case si.UrgentEscalation:
		return floor{lowestWarning, 0, "Urgent escalation not closed."}
	}
	return floor{score: 1}
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
		Detail: formatDuration(since) + " since the last review.",
	}
}

func vitalsFactor(latest []measuredValue, now time.Time) Factor {
	factor := Factor{Factor: "vitals"}
	worst, beyond := 0.0, 0
	outOfBounds := func(p measuredValue) bool {
		return p.boundDeviation() > 0 && !p.at.Before(now.Add(-vitalsWindow))
	}
	for i, p := range latest {
		if !outOfBounds(p) {
			continue
		}
		if !slices.ContainsFunc(latest[:i], func(other measuredValue) bool { return other.group == p.group && outOfBounds(other) }) {
			beyond++
		}
		d := p.boundDeviation()
		if d > worst {
			worst = d
			factor.Detail = fmt.Sprintf("%s %s is out of bounds.", p.name, vitals.FormatNumber(p.value))
		}
	}
	if beyond == 0 {
		return factor
	}
	if beyond > 1 {
		factor.Detail += fmt.Sprintf(" %d kinds of value in all.", beyond)
	}
	factor.Points = worstDeviationPoints*worst + furtherPoints*min(1, float64(beyond-1)/2)
	return factor
}

// boundDeviation returns the deviation of a value from its bounds.
func (v measuredValue) boundDeviation() float64 {
	return max(v.deviation, deviationBy(v.value, v.limits, v.low, v.high))
}

// deviation is 0 inside the bounds, 1 at or beyond a critical bound, and between 0 and 1 from a warning bound on.
func deviation(value float64, l vitals.Limits) float64 {
	return deviationBy(value, l, otherGrowth, otherGrowth)
}

// deviationBy grades warnings by the parameter's growth, so that what harms sooner ranks first.
func deviationBy(value float64, l vitals.Limits, low, high growth) float64 {
	side, bound := l.Breached(value)
	between := func(g growth, critical *float64) float64 {
		if critical == nil {
			return g.warned
		}
		return g.warned + (g.nearly-g.warned)*math.Abs(value-bound)/math.Abs(*critical-bound)
	}
	switch side {
	case vitals.Critical, vitals.CriticalLow:
		return 1
	case vitals.High:
		return between(high, l.Critical)
	case vitals.Low:
		return between(low, l.CriticalLow)
	}
	return 0
}
