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

// Reason is one cause for looking at a patient, as text. Since is when it began; zero if that is irrelevant.
type Reason struct {
	Code  string
	Text  string
	Since time.Time
}

// maxReasons is how many reasons fit in a row.
const maxReasons = 4

// The codes of the reasons, in addition to the alert types.
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

// alertWords are the texts of alerts without a value.
var alertWords = map[string]string{
	alerts.TypeMissedReading: "Missed its reading", alerts.TypeNoReading24h: "No reading for a day", alerts.TypeDeviceBattery: "Battery low",
	alerts.TypeHubOffline: "Hub offline", alerts.TypeStaleReading: "Readings never change", alerts.TypeDeviceClock: "Device clock in doubt",
	alerts.TypeIrregularHeartbeat: "Irregular heartbeat",
}

// reasons explains the first concern and lists what else is open.
func (p PatientSnapshot) reasons(first Concern, all []Concern) (list []Reason) {
	add := func(code, text string, since time.Time) {
		if text != "" && len(list) < maxReasons {
			list = append(list, Reason{code, text, since})
		}
	}
	if first.State == StateUnsure {
		add(reasonDoubt, suspectText(first), time.Time{})
	}
	if count, since := p.repeated(first); count > 1 {
		add(reasonRepeated, fmt.Sprintf("%s %d×", capitalize(string(first.level)), count), since)
	}
	add(reasonBound, first.boundText(p.Thresholds), time.Time{})
	for _, c := range all {
		if c.Type == first.Type && c.State == StateInRange && c.MeasuredAt.After(first.MeasuredAt) {
			add(reasonSince, "In range", c.MeasuredAt)
		}
	}
	for _, e := range p.Escalations {
		if e.Priority != escalations.Routine {
			add(reasonEscalation, capitalize(string(e.Priority))+" escalation", time.Time{})
			break
		}
	}
	for _, c := range all {
		if c.Type != first.Type && (c.State == StateCritical || c.State == StateWarning || c.State == StateUnsure) {
			add(reasonAlso, "Also "+c.summary(), time.Time{})
		}
	}
	var notified []string
	for _, alert := range p.Open {
		if word := alertWords[alert.Type]; word != "" && !slices.Contains(notified, alert.Type) {
			notified = append(notified, alert.Type)
			add(alert.Type, word, time.Time{})
		}
	}
	if p.missingThresholdsText() != "" {
		add(reasonNoBounds, "A minor without thresholds", time.Time{})
	} else if first.State == StateNoBounds {
		add(reasonNoBounds, "No bounds to compare it with", time.Time{})
	}
	if len(list) == 0 && p.LastReviewedAt.IsZero() {
		add(reasonReview, "Never reviewed", time.Time{})
	}
	return list
}

// repeated counts the unacknowledged alerts of the same type and level, and returns when the first was measured.
func (p PatientSnapshot) repeated(c Concern) (count int, since time.Time) {
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

func suspectText(c Concern) string {
	if c.Type == alerts.TypeImplausibleReading {
		return "Implausible: confirm or discard"
	}
	if of := c.Parameter(); of != nil && of.Suspect != nil {
		return "Far from the usual. " + of.Suspect.Prompt
	}
	return "In doubt: confirm or discard"
}

// boundText names the bound that was met.
func (c Concern) boundText(t alerts.Thresholds) string {
	if c.State != StateCritical && c.State != StateWarning {
		return ""
	}
	if c.Change != nil {
		return c.changeText(t)
	}
	if c.Type == alerts.TypeEarlyWarning {
		return "Score " + vitals.FormatNumber(c.score)
	}
	if len(c.Values) == 0 {
		return ""
	}
	first := c.Values[0]
	name := ""
	if len(c.Values) > 1 || first.Parameter.Prefix != "" {
		name = first.Parameter.Label + " "
	}
	switch side, bound := c.Limits.Breached(first.Value); side {
	case vitals.Critical, vitals.High:
		return capitalize(name + "≥ " + vitals.FormatNumber(bound))
	case vitals.CriticalLow, vitals.Low:
		return capitalize(name + "≤ " + vitals.FormatNumber(bound))
	}
	return "Beyond an earlier bound" // the bound was widened since
}

func (c Concern) changeText(t alerts.Thresholds) string {
	for _, p := range vitals.ChangeParameters {
		if p.Group != c.Type {
			continue
		}
		rule, way, unit := t.Change(p), "gain", p.Range.Unit
		if *c.Change < 0 {
			way = "loss"
		}
		amount := vitals.FormatNumber(math.Abs(*c.Change)) + " " + unit
		switch {
		case strings.HasSuffix(c.Rule, "_over_target") && rule.Target != nil:
			return fmt.Sprintf("%s over the target of %s %s", amount, vitals.FormatNumber(*rule.Target), unit)
		case alerts.IsSlowChange(c.Rule) && *c.Change < 0:
			return fmt.Sprintf("Loss %s %% over weeks", vitals.FormatNumber(math.Abs(*c.Change)))
		case alerts.IsSlowChange(c.Rule):
			return fmt.Sprintf("Gain %s over weeks", amount)
		case strings.HasSuffix(c.Rule, "_daily_change"):
			return fmt.Sprintf("%s %s in a day", capitalize(way), amount)
		}
		return fmt.Sprintf("%s %s within %d days", capitalize(way), amount, rule.WindowDays)
	}
	return ""
}

// summary names a concern in the fewest words, for the list of other concerns.
func (c Concern) summary() string {
	if c.Change != nil && *c.Change < 0 && alerts.IsSlowChange(c.Rule) {
		return fmt.Sprintf("%s %+g %%", strings.ReplaceAll(c.Type, "_", " "), vitals.RoundHundredths(*c.Change))
	}
	if c.Change != nil {
		return fmt.Sprintf("%s %+g kg", strings.ReplaceAll(c.Type, "_", " "), vitals.RoundHundredths(*c.Change))
	}
	if c.Type == alerts.TypeEarlyWarning {
		return "early warning score " + vitals.FormatNumber(c.score)
	}
	if len(c.Values) == 0 {
		return strings.ReplaceAll(c.Type, "_", " ")
	}
	if len(c.Values) == 2 && c.Type == string(vitals.BloodPressure) {
		return fmt.Sprintf("blood pressure %s/%s", vitals.FormatNumber(c.value(vitals.Systolic)), vitals.FormatNumber(c.value(vitals.Diastolic)))
	}
	text := lowerFirst(c.Values[0].Parameter.Label) + " " + vitals.FormatNumber(c.Values[0].Value) + " " + c.Values[0].Parameter.Range.Unit
	if c.State == StateUnsure {
		text += ", in doubt"
	}
	return text
}

func (c Concern) value(of *vitals.Parameter) float64 {
	for _, v := range c.Values {
		if v.Parameter == of {
			return v.Value
		}
	}
	return 0
}

// usesTrend reports whether a reason depends on the values of the previous days: for a value beyond a bound, not for a change.
func (c *Concern) usesTrend() bool {
	return (c.State == StateCritical || c.State == StateWarning) && c.Parameter() != nil && c.Parameter().Change == nil
}

// AddTrendReason adds on how many of the last days the value was out of range, or that this is the first time in two weeks.
func (c *Concern) AddTrendReason(trend []Point, zone *time.Location, now time.Time) {
	if !c.usesTrend() || len(trend) < 2 {
		return
	}
	out, days := map[string]bool{}, map[string]bool{}
	count, begin := 0, collections.StartOfDay(now.In(zone)).AddDate(0, 0, 1-trendReasonDays)
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
	case count == 1 && len(trend) >= minTrendValues:
		reason = Reason{Code: reasonFirst, Text: fmt.Sprintf("First time in %d days", trendDays)}
	case len(out) > 1:
		reason = Reason{Code: reasonDays, Text: fmt.Sprintf("Out of range on %d of %d days", len(out), len(days))}
	default:
		return
	}
	at := min(len(c.Reasons), 1)
	c.Reasons = slices.Insert(c.Reasons, at, reason)
	c.Reasons = c.Reasons[:min(len(c.Reasons), maxReasons)]
}

const (
	trendReasonDays = 7 // calendar days including today
	minTrendValues  = 5 // with fewer, "first time" means nothing
)

func capitalize(text string) string {
	if text == "" || text[0] >= utf8.RuneSelf {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// lowerFirst lowercases the first letter, except of abbreviations such as SpO2.
func lowerFirst(text string) string {
	if len(text) > 2 && strings.ToLower(text[1:]) == text[1:] {
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}

// formatDuration renders a duration in hours, or in days from 48 hours.
func formatDuration(d time.Duration) string {
	const inDays = 48 * time.Hour
	switch hours := int(d.Hours()); {
	case d >= inDays:
		return fmt.Sprintf("%d days", hours/24)
	case hours == 1:
		return "1 hour"
	default:
		return fmt.Sprintf("%d hours", hours)
	}
}
