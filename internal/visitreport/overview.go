package visitreport

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/internal/vitalsummary"
)

// Two mean blood pressures differ from these amounts in mmHg. Means are compared from minReadings
// readings; a weekly mean decides control from minReadings readings on minDays days. Source:
// docs/decisions/observations.md, "Report for a visit".
const (
	systolicDiffers  = 5.0
	diastolicDiffers = 3.0
	minReadings      = 3
	minDays          = 3
)

// isEnough reports whether a mean decides that a value is controlled or not.
func isEnough(g vitalsummary.Group) bool { return g.Readings >= minReadings && g.Days >= minDays }

// Overview is the summary of the readings: a headline and its support.
type Overview struct {
	Urgent   bool // a critical value was measured in the last seven days
	Headline string
	Text     string
}

// overview returns the summary at the top of the report. It compares numbers and makes no diagnosis.
func (r *Report) overview() (f Overview) {
	var words []string
	add := func(sentence string) {
		if sentence != "" {
			words = append(words, sentence)
		}
	}
	subject := r.subject()
	f.Headline = r.control(subject)
	switch {
	case f.Headline == "" && subject == vitals.BloodPressure:
		f.Headline = r.headline()
	case f.Headline == "":
		f.Headline = r.tooFew(subject)
	case subject == vitals.BloodPressure:
		add(r.headline())
	}
	add(r.means())
	critical := r.criticalReadings(7)
	f.Urgent = len(critical) > 0
	add(r.worst(critical))
	add(r.outOfBounds())
	add(r.weight())
	add(r.eveningDifference())
	add(r.daysWithoutReading())
	f.Text = strings.Join(words, " ")
	return f
}

// tooFew is the headline about a subject that has not enough readings to judge.
func (r *Report) tooFew(subject vitals.Kind) string {
	if len(r.points) == 0 {
		return r.headline()
	}
	what := subscript(subject.Definition().Main().Label)
	week, recent := r.group(7, subject.Definition().Main().Group)
	switch {
	case !recent:
		return "No " + lowerFirst(what) + " in the last 7 days."
	case subject == vitals.BloodGlucose:
		return fmt.Sprintf("%s: too few readings to judge.", what)
	}
	return fmt.Sprintf("%s: too few readings to judge, on %d of the last 7 days.", what, week.Days)
}

// lowerFirst writes a label within a sentence; an abbreviation stays as it is.
func lowerFirst(label string) string {
	if len(label) > 1 && label[1] >= 'a' && label[1] <= 'z' && label != "SpO₂" {
		return strings.ToLower(label[:1]) + label[1:]
	}
	return label
}

// longest names the longest period of the summary: 90 days, or all days of the report's own period.
func (r *Report) longest() string {
	if r.isOfPeriod() {
		return "all days"
	}
	return strconv.Itoa(MaxDays)
}

func (r *Report) longestDays() string { return strings.TrimSuffix(r.longest(), " days") + " days" }

func (r *Report) pressure(days int) (g vitalsummary.Group, ok bool) {
	return r.group(days, vitals.Systolic.Group)
}

func (r *Report) group(days int, name string) (g vitalsummary.Group, ok bool) {
	for _, period := range r.summary.Periods {
		if period.Days != days {
			continue
		}
		for _, g := range period.Groups {
			if g.Name == name {
				return g, g.Readings > 0
			}
		}
	}
	return g, false
}

func (r *Report) headline() string {
	if len(r.points) == 0 {
		return fmt.Sprintf("No readings in these %d days.", r.request.Days)
	}
	week, recent := r.pressure(7)
	long, before := r.pressure(90)
	switch {
	case !before:
		return "No blood pressure was measured."
	case !recent:
		return "No blood pressure in the last 7 days."
	case week.Readings < minReadings || long.Readings < 2*minReadings:
		return "Too few blood pressure readings to compare."
	}
	systolic := *week.All.Mean(vitals.Systolic) - *long.All.Mean(vitals.Systolic)
	diastolic := *week.All.Mean(vitals.Diastolic) - *long.All.Mean(vitals.Diastolic)
	switch higher, lower := systolic >= systolicDiffers || diastolic >= diastolicDiffers, systolic <= -systolicDiffers || diastolic <= -diastolicDiffers; {
	case higher && lower:
		return "Blood pressure of the last 7 days differs from that of " + r.longest() + "."
	case higher:
		return "Blood pressure is higher in the last 7 days."
	case lower:
		return "Blood pressure is lower in the last 7 days."
	}
	return "Blood pressure of the last 7 days is as that of " + r.longest() + "."
}

func (r *Report) means() string {
	week, recent := r.pressure(7)
	long, before := r.pressure(90)
	switch {
	case recent && before:
		return fmt.Sprintf("Blood pressure: mean of 7 days %s, of %s %s.", bothMeans(week.All), r.longestDays(), bothMeans(long.All))
	case before:
		return fmt.Sprintf("Blood pressure: mean of %s %s.", r.longestDays(), bothMeans(long.All))
	}
	return ""
}

// criticalReadings returns the readings of the last days at or beyond a critical bound in force, oldest first.
func (r *Report) criticalReadings(days int) (found []Point) {
	since := r.firstOf(days)
	for _, p := range r.points {
		if !p.Suspect && p.At.Format(time.DateOnly) >= since && r.levelOf(p) == levelCritical {
			found = append(found, p)
		}
	}
	return found
}

// firstOf returns the first date of the last days.
func (r *Report) firstOf(days int) string {
	year, month, day := r.end.In(r.zone).Date()
	return time.Date(year, month, day-days+1, 12, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

func (r *Report) worst(critical []Point) string {
	if len(critical) == 0 {
		return "No critical reading in the last 7 days."
	}
	text := fmt.Sprintf("%d critical readings in the last 7 days", len(critical))
	if len(critical) == 1 {
		text = "One critical reading in the last 7 days"
	}
	var highest *Point
	for i, p := range critical {
		if s := p.Reading.Value(vitals.Systolic); s != nil && (highest == nil || *s > *highest.Reading.Value(vitals.Systolic)) {
			highest = &critical[i]
		}
	}
	if highest == nil {
		last := critical[len(critical)-1]
		return text + ", the last " + r.readingText(last.Reading) + " on " + formatStamp(last.At) + "."
	}
	word := "the highest "
	if len(critical) == 1 {
		word = ""
	}
	return text + ", " + word + r.readingText(highest.Reading) + " on " + formatStamp(highest.At) + "."
}

// outOfBounds lists other parameters last measured out of bounds.
func (r *Report) outOfBounds() string {
	var words []string
	for _, p := range vitals.ThresholdParameters {
		last := r.last(p)
		if last == nil || p == vitals.Systolic || p == vitals.Diastolic || p == vitals.WeightKg {
			continue
		}
		value := *last.Reading.Value(p)
		if limit := map[level]string{levelWarning: "warning", levelCritical: "critical"}[levelIn(value, r.boundsAt(p, last.Reading))]; limit != "" {
			words = append(words, fmt.Sprintf("The last %s, %s on %s, is at or beyond the %s limit.", subscript(p.Label), r.request.Units.text(p, last.Reading), formatStamp(last.At), limit))
		}
	}
	return strings.Join(words, " ")
}

func (r *Report) weight() string {
	week, ok := r.group(7, vitals.WeightKg.Group)
	if !ok {
		return ""
	}
	p := vitals.WeightKg
	text := ""
	if change := week.All.Change(p); change != nil && week.Readings > 1 && math.Abs(*change) >= 0.05 {
		text = fmt.Sprintf("Weight %s %s in 7 days", formatSigned(r.request.Units.weightChange(*change)), r.request.Units.unit(p))
	}
	if target, last := r.bounds.Change(p).Target, r.last(p); target != nil && last != nil {
		if over := *last.Reading.Value(p) - *target; math.Abs(over) >= 0.05 {
			if text == "" {
				text = "Weight"
			} else {
				text += ","
			}
			text += fmt.Sprintf(" %s %s %s target", vitals.FormatNumber(r.request.Units.weightChange(math.Abs(over))), r.request.Units.unit(p), map[bool]string{true: "over", false: "under"}[over > 0])
		}
	}
	if text == "" {
		return ""
	}
	return text + "."
}

func (r *Report) eveningDifference() string {
	month, ok := r.pressure(30)
	if !ok || month.Morning.Readings < minReadings || month.Evening.Readings < minReadings {
		return ""
	}
	systolic := math.Round(*month.Evening.Mean(vitals.Systolic) - *month.Morning.Mean(vitals.Systolic))
	diastolic := math.Round(*month.Evening.Mean(vitals.Diastolic) - *month.Morning.Mean(vitals.Diastolic))
	switch {
	case systolic >= systolicDiffers:
		return fmt.Sprintf("Over 30 days evenings are %s/%s above mornings.", vitals.FormatNumber(systolic), vitals.FormatNumber(diastolic))
	case systolic <= -systolicDiffers:
		return fmt.Sprintf("Over 30 days mornings are %s/%s above evenings.", vitals.FormatNumber(-systolic), vitals.FormatNumber(-diastolic))
	}
	return ""
}

// daysWithoutReading states how long ago the last reading was, from two days on.
func (r *Report) daysWithoutReading() string {
	counted := slices.DeleteFunc(slices.Clone(r.points), func(p Point) bool { return p.Suspect })
	if len(counted) == 0 {
		return ""
	}
	last := counted[len(counted)-1].At
	if days := daysBetween(last, r.end.In(r.zone)); days > 1 {
		return fmt.Sprintf("The last reading was on %s, %d days ago.", formatStamp(last), days)
	}
	return ""
}

// last returns the newest counted reading of a parameter.
func (r *Report) last(p *vitals.Parameter) *Point {
	for i := range slices.Backward(r.points) {
		if !r.points[i].Suspect && r.points[i].Reading.Value(p) != nil {
			return &r.points[i]
		}
	}
	return nil
}

type level int

const (
	levelInRange level = iota
	levelWarning
	levelCritical
)

// levelOf returns the level of the worst value of a reading, by the bounds in force now.
func (r *Report) levelOf(p Point) (worst level) {
	for _, parameter := range vitals.Parameters {
		if value := p.Reading.Value(parameter); value != nil {
			worst = max(worst, levelIn(*value, r.boundsAt(parameter, p.Reading)))
		}
	}
	return worst
}

// boundsAt returns the bounds of a parameter in a reading: fasting glucose may have a bound of its own.
func (r *Report) boundsAt(p *vitals.Parameter, reading vitals.Reading) vitals.Limits {
	return r.bounds.Limits(p).ForMeal(reading.Qualifier(vitals.MealContext))
}

// levelIn compares a value with bounds, which are inclusive. Source: docs/decisions/alerts.md, "Default thresholds".
func levelIn(value float64, l vitals.Limits) level {
	switch side, _ := l.Breached(value); {
	case side.IsCritical():
		return levelCritical
	case side != "":
		return levelWarning
	}
	return levelInRange
}

func daysBetween(from, to time.Time) int {
	a, b := from.Format(time.DateOnly), to.Format(time.DateOnly)
	x, _ := time.Parse(time.DateOnly, a)
	y, _ := time.Parse(time.DateOnly, b)
	return int(y.Sub(x).Hours() / 24)
}

func bothMeans(v vitalsummary.Values) string {
	systolic, diastolic := v.Mean(vitals.Systolic), v.Mean(vitals.Diastolic)
	if systolic == nil || diastolic == nil {
		return "–"
	}
	return formatWhole(*systolic) + "/" + formatWhole(*diastolic)
}

// readingText renders a reading in one line.
func (r *Report) readingText(reading vitals.Reading) string {
	if systolic, diastolic := reading.Value(vitals.Systolic), reading.Value(vitals.Diastolic); systolic != nil && diastolic != nil {
		return formatWhole(*systolic) + "/" + formatWhole(*diastolic)
	}
	main := reading.Kind.Definition().Main()
	if reading.Value(main) != nil {
		return main.Label + " " + r.request.Units.text(main, reading)
	}
	return reading.Kind.Title()
}

func formatWhole(value float64) string {
	return vitals.FormatNumber(vitals.RoundHalfUp(value, 0))
}

func formatSigned(value float64) string {
	if value > 0 {
		return "+" + vitals.FormatNumber(math.Round(value*10)/10)
	}
	return "–" + vitals.FormatNumber(math.Round(-value*10)/10)
}

func formatStamp(at time.Time) string { return at.Format("Jan 2 15:04") }

func (r *Report) localStamp(at time.Time) string { return formatStamp(at.In(r.zone)) }
