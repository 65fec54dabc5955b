package alerts

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// What an alert says was met, behind the name of the parameter.
const (
	dailyChange  = "_daily_change"
	windowChange = "_change"
	overTarget   = "_over_target"
)

// Gain is the gain over the lowest, and the loss under the highest, earlier value of a parameter measured within the calendar days of
// the rule before the reading; ok is false when there is none. Source: docs/decisions/alerts.md, "Weight rule".
func Gain(p *vitals.Parameter, value float64, at time.Time, rule ChangeRule, weighings []Weighing) (gain, loss float64, ok bool) {
	return rule.gain(p, value, at, rule.WindowDays, weighings)
}

func (r ChangeRule) gain(p *vitals.Parameter, value float64, at time.Time, days int, weighings []Weighing) (gain, loss float64, ok bool) {
	if len(weighings) == 0 {
		return 0, 0, false
	}
	from := r.Since(at, days)
	for _, w := range weighings {
		if w.Of != p || w.MeasuredAt.Before(from) || !w.MeasuredAt.Before(at) {
			continue
		}
		rise := cents(value - w.Value)
		if !ok {
			gain, loss, ok = rise, -rise, true
			continue
		}
		gain, loss = max(gain, rise), max(loss, -rise)
	}
	return gain, loss, ok
}

// weighed holds a parameter against its earlier values and against its target, by all rules at once: one finding, the most severe; of
// equally severe ones that of the shortest time, which is the most urgent. It has nothing to say when there is nothing to hold it against.
// Source: docs/decisions/alerts.md, "Weight rule".
func weighed(r vitals.Reading, p *vitals.Parameter, rule ChangeRule, weighings []Weighing) (Finding, bool) {
	value := r.Value(p)
	if value == nil {
		return Finding{}, false
	}
	scales := scales{p: p, finding: Finding{Type: p.Group, Parameter: p.Name}}
	if gain, _, known := rule.gain(p, *value, r.MeasuredAt, 1, weighings); known {
		scales.spoke = true
		scales.change(Warning, dailyChange, gain, gain, rule.Daily, "gain", "1 day")
	}
	if gain, loss, known := Gain(p, *value, r.MeasuredAt, rule, weighings); known {
		scales.spoke = true
		within := fmt.Sprintf("%d days", rule.WindowDays)
		if rule.WindowDays == 1 {
			within = "1 day"
		}
		_ = scales.change(Critical, windowChange, gain, gain, rule.CriticalChange, "gain", within) ||
			scales.change(Warning, windowChange, gain, gain, rule.Change, "gain", within) ||
			scales.change(Warning, windowChange, loss, -loss, rule.Change, "loss", within)
	}
	if rule.Target != nil && rule.Over != nil {
		scales.spoke = true
		scales.over(*value, *rule.Target, *rule.Over)
	}
	scales.finding.Message = strings.Join(scales.messages, " ")
	return scales.finding, scales.spoke
}

// scales gather what several rules say of one value.
type scales struct {
	p        *vitals.Parameter
	finding  Finding
	messages []string
	spoke    bool
}

// change reports whether a change meets the bound; signed is how it is stored.
func (s *scales) change(level Level, rule string, change, signed float64, bound *float64, direction, within string) bool {
	if bound == nil || change < *bound {
		return false
	}
	s.breach(level, rule, signed, *bound, fmt.Sprintf("%s %s of %s %s within %s is at or above the %s limit %s %s.",
		s.p.Label, direction, number(math.Abs(change)), s.p.Range.Unit, within, level, number(*bound), s.p.Range.Unit))
	return true
}

func (s *scales) over(value, target, bound float64) {
	excess := cents(value - target)
	if excess < bound {
		return
	}
	unit := s.p.Range.Unit
	s.breach(Warning, overTarget, excess, bound, fmt.Sprintf("%s %s %s is %s %s over the target of %s %s, at or above the warning limit %s %s.",
		s.p.Label, number(value), unit, number(excess), unit, number(target), unit, number(bound), unit))
}

func (s *scales) breach(level Level, rule string, value, threshold float64, message string) {
	s.messages = append(s.messages, message)
	if s.finding.Level == "" || level == Critical && s.finding.Level != Critical {
		s.finding.Level, s.finding.Parameter, s.finding.Value, s.finding.Threshold = level, s.p.Name+rule, value, threshold
	}
}

// cents rounds to two decimals, half away from zero, so that 82.3 − 80 is 2.3 and meets the bound 2.3.
func cents(value float64) float64 { return math.Round(value*100) / 100 }
