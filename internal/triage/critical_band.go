package triage

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Constants of the danger of a critical value. Source: docs/decisions/triage.md, "Critical bands".
const (
	freshFor       = time.Hour
	halfFreshAfter = 24 * time.Hour
	stillFresh     = 0.5 // at halfFreshAfter
	oldAfter       = 7 * 24 * time.Hour
	oldest         = 0.25 // from oldAfter on
	// changeRangeFactor times the critical change is the end of the range of a change, which has no range of its own.
	changeRangeFactor = 3
)

// measuredValue is one value with its limits.
type measuredValue struct {
	name, group string
	value       float64
	at          time.Time
	limits      vitals.Limits
	// The ends of the measurable range.
	lowest, highest float64
	// low and high are how danger grows beyond the critical bounds.
	low, high growth
	// deviation replaces that from limits, if it is set.
	deviation float64
	// isAnswered: a clinician acknowledged an alert about it. isReceipt: its time is that of receipt.
	isAnswered, isReceipt bool
}

// growth is how dangerous a value is at a critical bound, relative to the end of its range, and the shape of the growth in between: below 1
// most of it comes early, above 1 late. A saturation at the bound harms within minutes, a weight within days; a pulse of 36 is nearly the end
// of its range and harms less than a saturation of 80 in the middle of its own. warned and nearly are the deviation at a warning bound and just
// before the critical one. Source: docs/decisions/triage.md, "Critical bands" and "Risk-score formula".
type growth struct{ atBound, shape, warned, nearly float64 }

// otherGrowth is for the bounds that no source grades.
var otherGrowth = growth{0.2, 1, 0.5, 0.8}

// growths are those of low and high values.
var growths = map[*vitals.Parameter][2]growth{
	vitals.SpO2:         {{0.5, 0.5, 0.7, 0.9}, otherGrowth},
	vitals.Systolic:     {{0.5, 0.5, 0.7, 0.9}, {0.2, 1.2, 0.4, 0.75}},
	vitals.Diastolic:    {otherGrowth, {0.2, 1.2, 0.4, 0.75}},
	vitals.GlucoseMgDL:  {{0.45, 1.3, 0.7, 0.95}, {0.2, 6, 0.4, 0.7}},
	vitals.Pulse:        {{0.4, 2.5, 0.5, 0.8}, {0.35, 1, 0.55, 0.9}},
	vitals.TemperatureC: {{0.3, 1, 0.5, 0.8}, {0.3, 1, 0.5, 0.85}},
	vitals.WeightKg:     {otherGrowth, {0.1, 1, 0.6, 0.85}},
}

func growthOf(p *vitals.Parameter) (low, high growth) {
	if graded, found := growths[p]; found {
		return graded[0], graded[1]
	}
	return otherGrowth, otherGrowth
}

// boundedValue is a value that is compared with bounds.
func boundedValue(p *vitals.Parameter, value float64, at time.Time, t alerts.Thresholds) measuredValue {
	low, high := growthOf(p)
	return measuredValue{
		name: p.Label, group: p.Group, value: value, at: at, limits: t.Limits(p), lowest: p.Range.Min, highest: p.Range.Max, low: low, high: high,
	}
}

// changeValue is the gain of a parameter watched for changes.
func changeValue(p *vitals.Parameter, gain float64, at time.Time, t alerts.Thresholds) measuredValue {
	rule := t.Change(p)
	made := measuredValue{name: p.Label + " gain", group: p.Group, value: gain, at: at, limits: vitals.Limits{High: rule.Change, Critical: rule.CriticalChange}}
	_, made.high = growthOf(p)
	if rule.CriticalChange != nil {
		made.highest = changeRangeFactor * *rule.CriticalChange
	}
	return made
}

// depth returns how far a value lies beyond a critical bound, on the way to the end of the range; 0 if it does not.
func (v measuredValue) depth() (depth, bound float64) {
	from := func(g growth, past, span float64) float64 {
		if past >= span { // also if the bound is at or beyond the end
			return 1
		}
		return g.atBound + (1-g.atBound)*math.Pow(past/span, g.shape)
	}
	switch side, bound := v.limits.Breached(v.value); side {
	case vitals.Critical:
		return from(v.high, v.value-bound, v.highest-bound), bound
	case vitals.CriticalLow:
		return from(v.low, bound-v.value, bound-v.lowest), bound
	}
	return 0, 0
}

func (v measuredValue) critical() bool {
	depth, _ := v.depth()
	return depth > 0
}

// freshness falls with the age of a measurement: 1 in the first hour, linearly to 0.5 after a day and to 0.25 after a week.
func freshness(age time.Duration) float64 {
	way := func(from, to time.Duration, begin, end float64) float64 {
		return begin + (end-begin)*float64(age-from)/float64(to-from)
	}
	switch {
	case age <= freshFor:
		return 1
	case age <= halfFreshAfter:
		return way(freshFor, halfFreshAfter, 1, stillFresh)
	case age <= oldAfter:
		return way(halfFreshAfter, oldAfter, stillFresh, oldest)
	}
	return oldest
}

// danger is how dangerous one critical value is, 0 to 1.
type danger struct {
	share, bound float64
	of           measuredValue
}

// String names the value. It states the time and not the age, because the text is stored as long as the score stays.
func (d danger) String() string {
	verb := ", measured "
	if d.of.isReceipt {
		verb = ", received "
	}
	return d.of.name + " " + vitals.FormatNumber(d.of.value) + ", critical at " + vitals.FormatNumber(d.bound) + verb + validate.FormatInstant(d.of.at) + "."
}

// worstDanger returns the greatest danger among the latest values and the values of unanswered alerts. Alerts, too, use the bounds in
// force: they define what is dangerous for the patient now.
func worstDanger(c ScoreInput, latest []measuredValue, now time.Time) (worst danger) {
	weigh := func(p measuredValue) {
		depth, bound := p.depth()
		if share := depth * freshness(now.Sub(p.at)); share > worst.share {
			worst = danger{share, bound, p}
		}
	}
	for _, p := range latest {
		weigh(p)
	}
	for _, alert := range c.Unanswered {
		for _, v := range alert.Values() {
			reported := alertValue(v, alert.DangerAt(), c.Thresholds)
			reported.isReceipt = alert.UnprovenDevice != nil
			weigh(reported)
		}
		if alert.Type == alerts.TypeEarlyWarning {
			weigh(earlyWarningValue(alert))
		}
	}
	return worst
}

// alertValue is a value behind an alert with its limits; for a parameter watched for changes it is the change.
func alertValue(v alerts.ReportedValue, at time.Time, t alerts.Thresholds) measuredValue {
	if v.Parameter.Change != nil {
		return changeValue(v.Parameter, v.Value, at, t)
	}
	return boundedValue(v.Parameter, v.Value, at, t)
}

// earlyWarningValue is the score of an early warning, which is no value of a reading.
func earlyWarningValue(alert alerts.OpenAlert) measuredValue {
	return measuredValue{
		name: "Early warning score", group: alerts.TypeEarlyWarning, value: alert.Value, at: alert.MeasuredAt, limits: vitals.Limits{Critical: new(float64(alerts.EarlyWarningEmergency))},
		highest: alerts.EarlyWarningHighest, high: growth{atBound: 0.5, shape: 1},
	}
}

// withUndecided appends reported values that are neither confirmed nor discarded, unless a later value at least as reliable exists: SpO2
// 48, not yet a reading, is no better than 52, which is one. It also appends the score of an acknowledged early warning until all its
// values were measured again.
func (si ScoreInput) withUndecided(latest []measuredValue) []measuredValue {
	for _, alert := range si.Undecided {
		isEarlyWarning, current := alert.Type == alerts.TypeEarlyWarning, false
		for _, v := range alert.Reported {
			value, at := si.Latest.ResolvingValue(v.Parameter, alert.Origin)
			if !isEarlyWarning && (value == nil || at.Before(alert.MeasuredAt)) {
				latest = append(latest, answered(alertValue(v, alert.MeasuredAt, si.Thresholds)))
			}
			current = current || value == nil || !at.After(alert.MeasuredAt)
		}
		if isEarlyWarning && current {
			latest = append(latest, answered(earlyWarningValue(alert)))
		}
	}
	return latest
}

// answered returns a value about which a clinician acknowledged an alert.
func answered(p measuredValue) measuredValue {
	p.isAnswered = true
	return p
}

// undecidedAlerts are the acknowledged alerts about values that may still become a reading.
func (p PatientSnapshot) undecidedAlerts() (list []alerts.OpenAlert) {
	for _, alert := range p.Recent {
		if alert.Undecided != nil {
			list = append(list, *alert.Undecided)
		}
	}
	return list
}

// hasRecentCritical reports whether a latest value at or beyond a critical bound was measured within 24 hours, acknowledged or not.
func hasRecentCritical(latest []measuredValue, now time.Time) bool {
	return slices.ContainsFunc(latest, func(p measuredValue) bool {
		return p.critical() && !p.at.Before(now.Add(-halfFreshAfter))
	})
}

// alertSlack is how far a device's time may be ahead of the alert about its reading.
const alertSlack = 10 * time.Minute

// hasUnseenCritical reports whether a latest value of the last 24 hours is at or beyond a critical bound although no one was alerted to its
// type since it was measured, or has reviewed the patient since the bounds were set: the bound was set after it.
func (si ScoreInput) hasUnseenCritical(latest []measuredValue, now time.Time) bool {
	return slices.ContainsFunc(latest, func(p measuredValue) bool {
		isReviewed := !p.at.After(si.ReviewedAt) && !si.ReviewedAt.Before(si.BoundsSetAt)
		return !p.isAnswered && p.critical() && !p.at.Before(now.Add(-halfFreshAfter)) && p.at.After(si.AlertedAt[p.group].Add(alertSlack)) && !isReviewed
	})
}

// CriticalStatus is what is being done about a critical patient.
type CriticalStatus string

// A critical patient is unanswered, or handled and still critical; all others have no status.
const (
	Unanswered CriticalStatus = "unanswered"
	Handled    CriticalStatus = "handled"
)

// CriticalStatusFor derives the status from the score; the bands of scores do not overlap.
func CriticalStatusFor(score int) CriticalStatus {
	switch {
	case score >= lowestUnanswered:
		return Unanswered
	case score >= lowestCritical:
		return Handled
	}
	return ""
}

// readReported reads the values behind a critical alert: the sealed ones of a quarantined measurement, or those of the reading. A value
// that cannot be opened does not hide the alert.
func readReported(open alerts.OpenAlert, sealed string, values []any) []alerts.ReportedValue {
	if sealed != "" {
		plain, err := collections.OpenValue(sealed, collections.Alerts, "reported_values", open.ID)
		if err != nil {
			return nil
		}
		reported, _ := alerts.ParseReported(plain)
		return open.WithOwnChange(reported)
	}
	var reading vitals.Reading
	for i, value := range values {
		if value, measured := value.(float64); measured {
			*reading.ValuePtr(vitals.ThresholdParameters[i]) = &value
		}
	}
	return alerts.ReadingValues(&reading, open.Type)
}

// readUndecided reads an acknowledged alert about values that are not yet a reading; nil for any other.
func readUndecided(row string) *alerts.OpenAlert {
	words := strings.SplitN(row, " ", undecidedFields)
	if len(words) < undecidedFields {
		return nil
	}
	alert := alerts.OpenAlert{
		ID: words[0], Type: alerts.TypeImplausibleReading, Level: alerts.Critical, MeasuredAt: collections.ParseInstant(words[1]),
		Origin: vitals.Origin(words[2]), Parameter: words[3],
	}
	if alert.Parameter == alerts.TypeEarlyWarning {
		alert.Type = alerts.TypeEarlyWarning
	}
	alert.Value, _ = strconv.ParseFloat(words[4], 64)
	alert.Reported = readReported(alert, words[5], nil)
	return &alert
}
