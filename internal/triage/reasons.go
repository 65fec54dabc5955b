package triage

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Reason is one cause for looking at a patient, in words. Since is when it began, zero where that says nothing.
type Reason struct {
	Code  string
	Text  string
	Since time.Time
}

// mostReasons is how many fit beside a value.
const mostReasons = 4

// The codes of the reasons, besides the alert types.
const (
	reasonRepeated   = "repeated"
	reasonBound      = "bound"
	reasonDoubt      = "doubt"
	reasonAlso       = "also"
	reasonSince      = "since"
	reasonNoBounds   = "no_bounds"
	reasonEscalation = "escalation"
	reasonReview     = "review"
	reasonDays       = "days_out_of_range"
	reasonFirst      = "first"
)

// words of the alerts that are about no value.
var words = map[string]string{
	alerts.TypeMissedReading: "Missed its reading", alerts.TypeNoReading24h: "No reading for a day", alerts.TypeDeviceBattery: "Battery low",
	alerts.TypeHubOffline: "Hub offline", alerts.TypeStaleReading: "Readings never change", alerts.TypeDeviceClock: "Device clock is wrong",
	alerts.TypeIrregularHeartbeat: "Irregular heartbeat",
}

// reasons say why the first concern is one, and what else there is.
func (p Picture) reasons(first Concern, all []Concern) (list []Reason) {
	add := func(code, text string, since time.Time) {
		if text != "" && len(list) < mostReasons {
			list = append(list, Reason{code, text, since})
		}
	}
	if first.State == StateUnsure {
		add(reasonDoubt, doubtWords(first), time.Time{})
	}
	if count, since := p.repeated(first); count > 1 {
		add(reasonRepeated, fmt.Sprintf("%s %d×", title(string(first.level)), count), since)
	}
	add(reasonBound, first.boundWords(p.Thresholds), time.Time{})
	for _, c := range all {
		if c.Type == first.Type && c.State == StateInRange && c.MeasuredAt.After(first.MeasuredAt) {
			add(reasonSince, "In range", c.MeasuredAt)
		}
	}
	for _, e := range p.Escalations {
		if e.Priority != escalations.Routine {
			add(reasonEscalation, title(string(e.Priority))+" escalation", time.Time{})
			break
		}
	}
	for _, c := range all {
		if c.Type != first.Type && (c.State == StateCritical || c.State == StateWarning || c.State == StateUnsure) {
			add(reasonAlso, "Also "+c.short(), time.Time{})
		}
	}
	var told []string
	for _, alert := range p.Open {
		if word := words[alert.Type]; word != "" && !slices.Contains(told, alert.Type) {
			told = append(told, alert.Type)
			add(alert.Type, word, time.Time{})
		}
	}
	if p.needsThresholds() != "" {
		add(reasonNoBounds, "A minor without thresholds", time.Time{})
	} else if first.State == StateNoBounds {
		add(reasonNoBounds, "No bounds to hold it against", time.Time{})
	}
	if len(list) == 0 && p.LastReviewedAt.IsZero() {
		add(reasonReview, "Never reviewed", time.Time{})
	}
	return list
}

// repeated counts the unacknowledged alerts that say the same, and when the first of them was measured.
func (p Picture) repeated(c Concern) (count int, since time.Time) {
	if c.State != StateCritical && c.State != StateWarning {
		return 0, since
	}
	for _, alert := range p.Open {
		if alert.Type != c.Type || alert.Level != c.level {
			continue
		}
		if count++; since.IsZero() || alert.MeasuredAt.Before(since) {
			since = alert.MeasuredAt
		}
	}
	return count, since
}

func doubtWords(c Concern) string {
	if c.Type == alerts.TypeImplausibleReading {
		return "Implausible: confirm or discard"
	}
	if of := c.Of(); of != nil && of.Doubt != nil {
		return "Far from the usual. " + of.Doubt.Question
	}
	return "In doubt: confirm or discard"
}

// boundWords name the bound that was met.
func (c Concern) boundWords(t alerts.Thresholds) string {
	if c.State != StateCritical && c.State != StateWarning {
		return ""
	}
	if c.Change != nil {
		return c.changeWords(t)
	}
	if len(c.Values) == 0 {
		return ""
	}
	first := c.Values[0]
	limits, level := c.Limits, deviation(first.Value, c.Limits)
	name := ""
	if len(c.Values) > 1 || first.Of.Prefix != "" {
		name = first.Of.Label + " "
	}
	side := func(sign string, bound *float64) string { return name + sign + " " + number(*bound) }
	switch {
	case level == 1 && limits.Critical != nil && first.Value >= *limits.Critical:
		return title(side("≥", limits.Critical))
	case level == 1 && limits.CriticalLow != nil:
		return title(side("≤", limits.CriticalLow))
	case level > 0 && limits.High != nil && first.Value >= *limits.High:
		return title(side("≥", limits.High))
	case level > 0 && limits.Low != nil:
		return title(side("≤", limits.Low))
	}
	return "Beyond the bound of then" // it has been set wider since
}

func (c Concern) changeWords(t alerts.Thresholds) string {
	for _, p := range vitals.Changing {
		if p.Group != c.Type {
			continue
		}
		rule, way, unit := t.Change(p), "gain", p.Range.Unit
		if *c.Change < 0 {
			way = "loss"
		}
		amount := number(math.Abs(*c.Change)) + " " + unit
		switch {
		case strings.HasSuffix(c.Rule, "_over_target") && rule.Target != nil:
			return fmt.Sprintf("%s over the target of %s", amount, number(*rule.Target))
		case strings.HasSuffix(c.Rule, "_daily_change"):
			return fmt.Sprintf("%s %s in a day", title(way), amount)
		}
		return fmt.Sprintf("%s %s within %d days", title(way), amount, rule.WindowDays)
	}
	return ""
}

// short is a concern in the fewest words, as another's company.
func (c Concern) short() string {
	if c.Change != nil {
		return fmt.Sprintf("%s %+g kg", strings.ReplaceAll(c.Type, "_", " "), rounded(*c.Change))
	}
	if len(c.Values) == 0 {
		return strings.ReplaceAll(c.Type, "_", " ")
	}
	if len(c.Values) == 2 && c.Type == string(vitals.BloodPressure) {
		return fmt.Sprintf("blood pressure %s/%s", number(c.value(vitals.Systolic)), number(c.value(vitals.Diastolic)))
	}
	text := lowerFirst(c.Values[0].Of.Label) + " " + number(c.Values[0].Value) + " " + c.Values[0].Of.Range.Unit
	if c.State == StateUnsure {
		text += ", in doubt"
	}
	return text
}

func (c Concern) value(of *vitals.Parameter) float64 {
	for _, v := range c.Values {
		if v.Of == of {
			return v.Value
		}
	}
	return 0
}

// goesByDays says whether a reason is told by how the value was on the days before: a value beyond a bound, not one that is judged by its change.
func (c *Concern) goesByDays() bool {
	return (c.State == StateCritical || c.State == StateWarning) && c.Of() != nil && c.Of().Change == nil
}

// Follow adds what the last fortnight of the value says: on how many of the last days it was out of range, or that this is the first time.
func (c *Concern) Follow(trend []Point, zone *time.Location, now time.Time) {
	if !c.goesByDays() || len(trend) < 2 {
		return
	}
	out, days := map[string]bool{}, map[string]bool{}
	count, begin := 0, collections.StartOfDay(now.In(zone)).AddDate(0, 0, 1-followDays)
	for _, point := range trend {
		beyond := deviation(point.Value, c.Limits) > 0
		if beyond {
			count++
		}
		if !point.At.Before(begin) {
			day := point.At.In(zone).Format(time.DateOnly)
			days[day] = true
			if beyond {
				out[day] = true
			}
		}
	}
	var reason Reason
	switch {
	case count == 1 && len(trend) >= firstAmong:
		reason = Reason{Code: reasonFirst, Text: fmt.Sprintf("First time in %d days", trendDays)}
	case len(out) > 1:
		reason = Reason{Code: reasonDays, Text: fmt.Sprintf("Out of range on %d of %d days", len(out), len(days))}
	default:
		return
	}
	at := min(len(c.Reasons), 1)
	c.Reasons = slices.Insert(c.Reasons, at, reason)
	c.Reasons = c.Reasons[:min(len(c.Reasons), mostReasons)]
}

const (
	followDays = 7 // calendar days with today
	firstAmong = 5 // values; of fewer nothing can be said to be the first
)

func title(text string) string {
	if text == "" || text[0] >= utf8.RuneSelf {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// lowerFirst leaves a word in capitals, as SpO2, as it is.
func lowerFirst(text string) string {
	if len(text) > 2 && strings.ToLower(text[1:]) == text[1:] {
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}

// rounded is a value as it is kept: in hundredths.
func rounded(value float64) float64 { return math.Round(value*100) / 100 }
