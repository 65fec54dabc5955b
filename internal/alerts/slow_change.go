package alerts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Suffixes of an alert's parameter name for a change over weeks.
const (
	slowGain = "_slow_gain"
	slowLoss = "_loss"
)

const (
	// MedianDays are the calendar days of a median, and slowGainDays those in which the lowest one is looked for.
	MedianDays, slowGainDays = 7, 30
	// SlowEpisodeDays is how far back the start of an episode is looked for.
	SlowEpisodeDays = 365
)

// IsSlowChange reports whether an alert is about a change over weeks. Such alerts do not end automatically: a median returns as slowly as it
// left. Source: docs/decisions/alerts.md, "Weight over weeks".
func IsSlowChange(parameter string) bool {
	return slices.ContainsFunc(vitals.ChangeParameters, func(p *vitals.Parameter) bool {
		return parameter == p.Name+slowGain || parameter == p.Name+slowLoss
	})
}

// SlowDays is how many calendar days before a value its changes over weeks depend on; 0 without such a rule.
func (r ChangeRule) SlowDays() (days int) {
	if r.SlowGain != nil || r.SlowCritical != nil {
		days = slowGainDays + MedianDays
	}
	for _, loss := range r.Losses {
		days = max(days, loss.Days+MedianDays)
	}
	return days
}

// SlowChanges are a patient's values of one parameter, by calendar day of the patient, with the median of the seven days that end with each.
type SlowChanges struct {
	of      *vitals.Parameter
	rule    ChangeRule
	days    []int // with a median, ascending
	medians map[int]float64
}

// NewSlowChanges prepares the medians. Seven days count only after the patient's first value: a single first value is no median.
func NewSlowChanges(p *vitals.Parameter, rule ChangeRule, values []BaselineValue) *SlowChanges {
	s := &SlowChanges{of: p, rule: rule, medians: map[int]float64{}}
	byDay := map[int][]float64{}
	for _, v := range values {
		day := s.dayOf(v.MeasuredAt)
		byDay[day] = append(byDay[day], v.Value)
	}
	if len(byDay) == 0 {
		return s
	}
	first, last := extremeDays(byDay)
	for day := first + MedianDays - 1; day <= last; day++ {
		var around []float64
		for d := day - MedianDays + 1; d <= day; d++ {
			around = append(around, byDay[d]...)
		}
		if len(around) > 0 {
			s.days, s.medians[day] = append(s.days, day), vitals.Median(around)
		}
	}
	return s
}

func extremeDays(byDay map[int][]float64) (first, last int) {
	begun := false
	for day := range byDay {
		if !begun {
			first, last, begun = day, day, true
		}
		first, last = min(first, day), max(last, day)
	}
	return first, last
}

// dayOf numbers the calendar days of the patient.
func (s *SlowChanges) dayOf(at time.Time) int {
	year, month, day := at.In(collections.Zone(s.rule.Zone, time.UTC)).Date()
	return int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / int64(24*time.Hour/time.Second))
}

// Findings returns the breaches on the day of a value: a gain over weeks, a loss, or both.
func (s *SlowChanges) Findings(at time.Time) (found []Finding) {
	day := s.dayOf(at)
	for _, f := range []Finding{s.gain(day), s.loss(day)} {
		if f.Breached() {
			found = append(found, f)
		}
	}
	return found
}

// gain compares the median with the lowest of the last 30 days.
func (s *SlowChanges) gain(day int) Finding {
	now, measured := s.medians[day]
	if !measured {
		return Finding{}
	}
	gain := vitals.RoundHundredths(now - slices.Min(s.mediansOf(day, slowGainDays)))
	finding := Finding{Type: s.of.Group, Parameter: s.of.Name + slowGain, Value: gain}
	for _, bound := range []struct {
		level Level
		limit *float64
	}{{Critical, s.rule.SlowCritical}, {Warning, s.rule.SlowGain}} {
		if bound.limit == nil || gain < *bound.limit {
			continue
		}
		unit := s.of.Range.Unit
		finding.Level, finding.Threshold = bound.level, *bound.limit
		finding.Message = fmt.Sprintf("%s gain of %s %s within %d days, by medians of %d days, is at or above the %s limit %s %s.", s.of.Label,
			vitals.FormatNumber(gain), unit, slowGainDays, MedianDays, bound.level, vitals.FormatNumber(*bound.limit), unit)
		return finding
	}
	return Finding{}
}

// loss compares the median with the highest of each number of days. The value is the signed percentage of the first rule that is met.
func (s *SlowChanges) loss(day int) (finding Finding) {
	now, measured := s.medians[day]
	if !measured {
		return finding
	}
	var messages []string
	for _, rule := range s.rule.Losses {
		highest := slices.Max(s.mediansOf(day, rule.Days))
		percent := vitals.RoundHundredths(100 * (highest - now) / highest)
		if percent < *rule.Percent {
			continue
		}
		messages = append(messages, fmt.Sprintf("%s loss of %s %% within %d days, by medians of %d days, is at or above the warning limit %s %%.",
			s.of.Label, vitals.FormatNumber(percent), rule.Days, MedianDays, vitals.FormatNumber(*rule.Percent)))
		if finding.Level == "" {
			finding = Finding{Type: s.of.Group, Level: Warning, Parameter: s.of.Name + slowLoss, Value: -percent, Threshold: *rule.Percent}
		}
	}
	finding.Message = strings.Join(messages, " ")
	return finding
}

// mediansOf returns the medians of the calendar days that end with a day, which has one itself.
func (s *SlowChanges) mediansOf(day, days int) (list []float64) {
	for _, d := range s.days {
		if d > day-days && d <= day {
			list = append(list, s.medians[d])
		}
	}
	return list
}

// Episode returns the span of the episode at a value. It ends after seven days without a breach, so
// a value near the bound does not start one each day.
func (s *SlowChanges) Episode(finding Finding, at time.Time) (start, end time.Time) {
	day := s.dayOf(at)
	first, last := day, day
	of := s.loss
	if finding.Parameter == s.of.Name+slowGain {
		of = s.gain
	}
	for _, d := range slices.Backward(s.days) {
		if d < day && first-d <= MedianDays && of(d).Breached() {
			first = d
		}
	}
	for _, d := range s.days {
		if d > day && d-last <= MedianDays && of(d).Breached() {
			last = d
		}
	}
	return s.rule.Since(at, day-first), s.rule.Since(at, day-last-1)
}
