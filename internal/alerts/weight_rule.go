package alerts

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Suffixes of an alert's parameter name: the rule that was met.
const (
	dailyChange  = "_daily_change"
	windowChange = "_change"
	overTarget   = "_over_target"
)

// GainAndLoss returns the gain over the lowest, and the loss under the highest, earlier value within the calendar days of the rule; ok is false if
// there is none. Source: docs/decisions/alerts.md, "Weight rule".
func GainAndLoss(p *vitals.Parameter, value float64, at time.Time, rule ChangeRule, baseline []BaselineValue) (gain, loss float64, ok bool) {
	return rule.gainAndLoss(p, value, at, rule.WindowDays, baseline)
}

func (r ChangeRule) gainAndLoss(p *vitals.Parameter, value float64, at time.Time, days int, baseline []BaselineValue) (gain, loss float64, ok bool) {
	if len(baseline) == 0 {
		return 0, 0, false
	}
	from := r.Since(at, days)
	for _, w := range baseline {
		if w.Parameter != p || w.MeasuredAt.Before(from) || !w.MeasuredAt.Before(at) {
			continue
		}
		rise := vitals.RoundHundredths(value - w.Value)
		if !ok {
			gain, loss, ok = rise, -rise, true
			continue
		}
		gain, loss = max(gain, rise), max(loss, -rise)
	}
	return gain, loss, ok
}

// evaluateChange applies all change rules to a parameter and returns one finding, the most severe; of equally severe ones that of the
// shortest window, the most urgent. The second result is false without anything to compare with. Source: docs/decisions/alerts.md, "Weight
// rule".
func evaluateChange(r vitals.Reading, p *vitals.Parameter, rule ChangeRule, baseline []BaselineValue) (Finding, bool) {
	value := r.Value(p)
	if value == nil {
		return Finding{}, false
	}
	scales := changeEvaluation{p: p, finding: Finding{Type: p.Group, Parameter: p.Name}}
	if gain, _, found := rule.gainAndLoss(p, *value, r.MeasuredAt, 1, baseline); found {
		scales.compared = true
		scales.checkChange(Warning, dailyChange, gain, gain, rule.Daily, "gain", "1 day")
	}
	if gain, loss, found := GainAndLoss(p, *value, r.MeasuredAt, rule, baseline); found {
		scales.compared = true
		within := fmt.Sprintf("%d days", rule.WindowDays)
		if rule.WindowDays == 1 {
			within = "1 day"
		}
		_ = scales.checkChange(Critical, windowChange, gain, gain, rule.CriticalChange, "gain", within) ||
			scales.checkChange(Warning, windowChange, gain, gain, rule.Change, "gain", within) ||
			scales.checkChange(Warning, windowChange, loss, -loss, rule.Change, "loss", within)
	}
	if rule.Target != nil && rule.Over != nil {
		scales.compared = true
		scales.checkTarget(*value, *rule.Target, *rule.Over)
	}
	scales.finding.Message = strings.Join(scales.messages, " ")
	return scales.finding, scales.compared
}

// changeEvaluation collects the results of several rules about one value.
type changeEvaluation struct {
	p        *vitals.Parameter
	finding  Finding
	messages []string
	compared bool
}

// checkChange reports whether a change meets the bound; signed is the stored form.
func (e *changeEvaluation) checkChange(level Level, rule string, change, signed float64, bound *float64, direction, within string) bool {
	if bound == nil || change < *bound {
		return false
	}
	e.addBreach(level, rule, signed, *bound, fmt.Sprintf("%s %s of %s %s within %s is at or above the %s limit %s %s.",
		e.p.Label, direction, vitals.FormatNumber(math.Abs(change)), e.p.Range.Unit, within, level, vitals.FormatNumber(*bound), e.p.Range.Unit))
	return true
}

func (e *changeEvaluation) checkTarget(value, target, bound float64) {
	excess := vitals.RoundHundredths(value - target)
	if excess < bound {
		return
	}
	unit := e.p.Range.Unit
	e.addBreach(Warning, overTarget, excess, bound, fmt.Sprintf("%s %s %s is %s %s over the target of %s %s, at or above the warning limit %s %s.",
		e.p.Label, vitals.FormatNumber(value), unit, vitals.FormatNumber(excess), unit, vitals.FormatNumber(target), unit, vitals.FormatNumber(bound), unit))
}

func (e *changeEvaluation) addBreach(level Level, rule string, value, threshold float64, message string) {
	e.messages = append(e.messages, message)
	if e.finding.Level == "" || level == Critical && e.finding.Level != Critical {
		e.finding.Level, e.finding.Parameter, e.finding.Value, e.finding.Threshold = level, e.p.Name+rule, value, threshold
	}
}
