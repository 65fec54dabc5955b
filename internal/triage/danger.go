package triage

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// How dangerous a critical value is. Source: docs/decisions/triage.md, "Critical bands".
const (
	depthAtBound   = 0.2 // at the critical bound; 1 at the end of what can be measured
	freshFor       = time.Hour
	halfFreshAfter = 24 * time.Hour
	stillFresh     = 0.5 // at halfFreshAfter
	oldAfter       = 7 * 24 * time.Hour
	oldest         = 0.25 // at oldAfter, and for ever
	// changeEnds is how many times the critical change is the end of the range of a change, which has none of its own.
	changeEnds = 3
)

// parameter is one value beside its limits.
type parameter struct {
	name   string
	value  float64
	at     time.Time
	limits vitals.Limits
	// The ends of what is taken for a measurement.
	lowest, highest float64
}

// bounded is a value that is held against bounds.
func bounded(p *vitals.Parameter, value float64, at time.Time, t alerts.Thresholds) parameter {
	return parameter{p.Label, value, at, t.Of(p), p.Range.Min, p.Range.Max}
}

// changed is the gain of what is watched for changes.
func changed(p *vitals.Parameter, gain float64, at time.Time, t alerts.Thresholds) parameter {
	rule := t.Change(p)
	made := parameter{name: p.Label + " gain", value: gain, at: at, limits: vitals.Limits{High: rule.Change, Critical: rule.CriticalChange}}
	if rule.CriticalChange != nil {
		made.highest = changeEnds * *rule.CriticalChange
	}
	return made
}

// depth says how far a value lies beyond a critical bound, on the way to the end of what can be measured; 0 for one that does not.
func (p parameter) depth() (depth, bound float64) {
	part := func(past, span float64) float64 {
		if past >= span { // also for a bound at the end itself, or behind it
			return 1
		}
		return past / span
	}
	switch l := p.limits; {
	case l.Critical != nil && p.value >= *l.Critical:
		return depthAtBound + (1-depthAtBound)*part(p.value-*l.Critical, p.highest-*l.Critical), *l.Critical
	case l.CriticalLow != nil && p.value <= *l.CriticalLow:
		return depthAtBound + (1-depthAtBound)*part(*l.CriticalLow-p.value, *l.CriticalLow-p.lowest), *l.CriticalLow
	}
	return 0, 0
}

func (p parameter) critical() bool {
	depth, _ := p.depth()
	return depth > 0
}

// freshness falls with the age of a measurement: 1 in the first hour, straight to a half after a day and to a quarter after a week.
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
	of           parameter
}

// String says which value it is. It names the time and not the age: the words are kept while the score stays.
func (d danger) String() string {
	return d.of.name + " " + number(d.of.value) + ", critical at " + number(d.bound) + ", measured " + validate.FormatInstant(d.of.at) + "."
}

// worstDanger is the greatest among the latest values and those behind the unanswered alerts. Of alerts, too, the bounds in force count:
// whoever changes them says what is dangerous for the patient.
func worstDanger(c Circumstances, latest []parameter, now time.Time) (worst danger) {
	weigh := func(p parameter) {
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
			weigh(judgedBy(v, alert.MeasuredAt, c.Thresholds))
		}
	}
	return worst
}

// judgedBy is a value behind an alert beside its limits; of what is watched for changes it is the change.
func judgedBy(v alerts.Reported, at time.Time, t alerts.Thresholds) parameter {
	if v.Of.Change != nil {
		return changed(v.Of, v.Value, at, t)
	}
	return bounded(v.Of, v.Value, at, t)
}

// undecided appends to the latest values those that were reported and about which nobody has decided, unless a later one was measured, at
// least as reliably: SpO2 48, which is no reading, is no better than 52, which is one.
func (c Circumstances) undecided(latest []parameter) []parameter {
	for _, alert := range c.Undecided {
		for _, v := range alert.Reported {
			if value, at := c.Latest.Settling(v.Of, alert.Origin); value == nil || at.Before(alert.MeasuredAt) {
				latest = append(latest, judgedBy(v, alert.MeasuredAt, c.Thresholds))
			}
		}
	}
	return latest
}

// undecided are the acknowledged alerts about values that may still become a reading.
func (p Picture) undecided() (list []alerts.Open) {
	for _, alert := range p.Recent {
		if alert.Undecided != nil {
			list = append(list, *alert.Undecided)
		}
	}
	return list
}

// currentWithin: a latest value lies at or beyond a critical bound and was measured within 24 hours, whoever has acknowledged it.
func stillCritical(latest []parameter, now time.Time) bool {
	return slices.ContainsFunc(latest, func(p parameter) bool {
		return p.critical() && !p.at.Before(now.Add(-halfFreshAfter))
	})
}

// Handling says what is being done about a critical patient.
type Handling string

// A critical patient is unanswered, or handled and still critical; all others are neither.
const (
	Unanswered Handling = "unanswered"
	Handled    Handling = "handled"
)

// HandlingOf follows from the score: its bands do not touch.
func HandlingOf(score int) Handling {
	switch {
	case score >= lowestUnanswered:
		return Unanswered
	case score >= lowestCritical:
		return Handled
	}
	return ""
}

// readReported reads the values behind a critical alert: sealed ones of what became no reading, or those of the reading. What cannot be
// opened hides no alert.
func readReported(open alerts.Open, sealed string, values []any) []alerts.Reported {
	if sealed != "" {
		plain, err := collections.OpenValue(sealed, collections.Alerts, "reported_values", open.ID)
		if err != nil {
			return nil
		}
		reported, _ := alerts.ReadReported(plain)
		return open.Claimed(reported)
	}
	var reading vitals.Reading
	for i, value := range values {
		if value, measured := value.(float64); measured {
			*reading.Slot(vitals.Watched[i]) = &value
		}
	}
	return alerts.ReportedBy(&reading, open.Type)
}

// readUndecided reads an acknowledged alert about values that are no reading yet; nil for any other.
func readUndecided(row string) *alerts.Open {
	words := strings.SplitN(row, " ", undecidedWords)
	if len(words) < undecidedWords {
		return nil
	}
	alert := alerts.Open{
		ID: words[0], Type: alerts.TypeImplausibleReading, Level: alerts.Critical, MeasuredAt: collections.ParseInstant(words[1]),
		Origin: vitals.Origin(words[2]), Parameter: words[3],
	}
	alert.Value, _ = strconv.ParseFloat(words[4], 64)
	alert.Reported = readReported(alert, words[5], nil)
	return &alert
}

// number writes a value as people do.
func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
