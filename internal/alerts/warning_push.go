package alerts

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// WarningPush is the practice's choice of the warnings that are pushed; "" pushes each. Source: docs/decisions/notifications.md, "Pages for
// warnings".
type WarningPush string

// The choices.
const (
	PushTrend WarningPush = "trend"
	PushEach  WarningPush = "each"
	PushNever WarningPush = "never"
)

// PushRule is why an alert was pushed, or why not; "" for an alert without a decision, which is pushed.
type PushRule string

// The rules that push, and those that leave an alert to the list, the app and the digest.
const (
	PushedCritical   PushRule = "critical"
	PushedEach       PushRule = "each"       // the practice pushes each warning
	PushedKind       PushRule = "kind"       // a change of weight, an irregular heartbeat, or a question about a reading
	PushedMean       PushRule = "mean"       // the mean crossed the bound
	PushedMidway     PushRule = "midway"     // halfway to the critical bound
	PushedRepeated   PushRule = "repeated"   // several of the last readings
	PushedWorse      PushRule = "worse"      // worse than the last one pushed, or than what was snoozed
	PushedSnoozeEnd  PushRule = "snooze_end" // it was still present when the snooze ended
	ListedByTrend    PushRule = "trend"
	ListedNever      PushRule = "never" // the practice pushes no warning
	ListedSnoozed    PushRule = "snoozed"
	ListedSuperseded PushRule = "ended" // later readings had ended it when it was raised
)

// listedRules are the rules that do not push.
var listedRules = []PushRule{ListedByTrend, ListedNever, ListedSnoozed, ListedSuperseded}

// Pushes reports whether the rule pushes the alert.
func (r PushRule) Pushes() bool { return !slices.Contains(listedRules, r) }

// PushDecision is whether an alert is pushed, and why. Reason has values and is stored encrypted.
type PushDecision struct {
	Rule   PushRule
	Reason string
}

// The numbers of the rule. Source: docs/decisions/notifications.md, "Pages for warnings".
const (
	meanReadings    = 7
	meanAtLeast     = 3
	meanWithin      = 14 * 24 * time.Hour
	meanBackInside  = 0.02
	quietAfterPush  = 7 * 24 * time.Hour
	repeatedAmong   = 5
	repeatedAtLeast = 3
	worseShare      = 0.25
	// PushReadings bounds the readings that a decision looks at; PushesConsidered bounds the pushes.
	PushReadings, PushesConsidered = 67, 50
)

// PushHistory is what a decision depends on: a patient's readings of an alert type that count, latest measurement first and with the one
// that raised the alert, and what was pushed about the type, latest push first.
type PushHistory struct {
	Parameters []*vitals.Parameter // forLevel the alert type
	Readings   []PushReading
	Pushed     []Pushed
}

// PushReading is a reading's values in the order of the parameters; nil for one that was not measured.
type PushReading struct {
	ObservationID string
	MeasuredAt    time.Time
	Values        []*float64
}

// Pushed is an alert that was pushed, with the values of its reading. Parameter is its worst parameter, and Beyond how far its value was above
// the bound; negative below it.
type Pushed struct {
	PushReading
	Parameter string
	Beyond    float64
}

// HasPushTrend reports whether warnings of a type are judged by the trend of their parameters: those that bounds raise.
func HasPushTrend(alertType string) bool {
	return slices.ContainsFunc(PushParameters(alertType), func(p *vitals.Parameter) bool { return p.Change == nil })
}

// PushParameters returns the parameters that raise alerts of a type.
func PushParameters(alertType string) (list []*vitals.Parameter) {
	for _, p := range vitals.ThresholdParameters {
		if p.Group == alertType {
			list = append(list, p)
		}
	}
	return list
}

// DecidePush decides whether a raised alert is pushed. r are the values that raised it; history is needed only for a warning that
// [Draft.NeedsPushHistory]. It is pure.
func (p WarningPush) DecidePush(d Draft, r vitals.Reading, t Thresholds, history PushHistory) PushDecision {
	switch {
	case d.Informative || d.Finding.Level != Critical && d.Finding.Level != Warning:
		return PushDecision{}
	case d.Finding.Level == Warning && p == PushNever:
		return PushDecision{ListedNever, "Not pushed: this practice pushes no warnings."}
	case d.Snoozed:
		return PushDecision{ListedSnoozed, "Not pushed: alerts of this kind are snoozed."}
	case d.Superseded:
		return PushDecision{ListedSuperseded, "Not pushed: a newer reading had arrived."}
	case d.Finding.Level == Critical:
		return PushDecision{Rule: PushedCritical}
	case p != PushTrend:
		return PushDecision{Rule: PushedEach}
	case isOverTarget(d.Finding.Parameter):
		return history.decideTarget(d, r, t)
	case !HasPushTrend(d.Finding.Type):
		return PushDecision{PushedKind, "Pushed: alerts of this kind always are."}
	case d.WorseThanNotified:
		return PushDecision{PushedWorse, "Pushed: worse than the value that was snoozed."}
	case d.ResolvedByLater:
		return PushDecision{ListedSuperseded, "Not pushed: later readings were in range."}
	}
	return history.decide(r, t)
}

// NeedsPushHistory reports whether the decision about the alert depends on the patient's earlier readings.
func (d Draft) NeedsPushHistory() bool {
	return d.Finding.Level == Warning && (HasPushTrend(d.Finding.Type) || isOverTarget(d.Finding.Parameter))
}

// decide judges each parameter that is out of range; the first that is to be pushed decides.
func (h PushHistory) decide(r vitals.Reading, t Thresholds) PushDecision {
	var reasons []string
	for i, p := range h.Parameters {
		value := r.Value(p)
		if value == nil {
			continue
		}
		limits := t.Limits(p).ForMeal(r.Qualifier(vitals.MealContext))
		b, out := breachedBound(p, *value, limits)
		if !out {
			continue
		}
		judged := trend{PushHistory: h, of: i, parameter: p, limits: limits, bound: b}.judge(*value, r.MeasuredAt)
		if judged.Rule.Pushes() {
			return PushDecision{judged.Rule, "Pushed: " + p.Label + " " + judged.Reason + "."}
		}
		reasons = append(reasons, p.Label+" "+judged.Reason)
	}
	if len(reasons) == 0 { // an average
		reasons = []string{"the values are in range"}
	}
	return PushDecision{ListedByTrend, "Not pushed: " + strings.Join(reasons, "; ") + "."}
}

// pushBound is the warning bound that a value meets, and the end of the warning range: the critical bound, or without one the end of the
// accepted range.
type pushBound struct {
	warning, critical float64
	isHigh            bool
}

func breachedBound(p *vitals.Parameter, value float64, limits vitals.Limits) (b pushBound, out bool) {
	switch {
	case limits.High != nil && value >= *limits.High:
		b = pushBound{*limits.High, p.Range.Max, true}
		if limits.Critical != nil {
			b.critical = *limits.Critical
		}
	case limits.Low != nil && value <= *limits.Low:
		b = pushBound{*limits.Low, p.Range.Min, false}
		if limits.CriticalLow != nil {
			b.critical = *limits.CriticalLow
		}
	default:
		return b, false
	}
	return b, true
}

// reaches reports whether a value is at or beyond a limit on the bound's side.
func (b pushBound) reaches(value, limit float64) bool {
	return b.isHigh && value >= limit || !b.isHigh && value <= limit
}

// isBackInside reports whether a mean is inside by enough to end a run of means beyond the bound.
func (b pushBound) isBackInside(mean float64) bool {
	if b.isHigh {
		return mean <= b.warning*(1-meanBackInside)
	}
	return mean >= b.warning*(1+meanBackInside)
}

// trend judges one parameter of the history against one bound.
type trend struct {
	PushHistory
	of        int // index of the parameter
	parameter *vitals.Parameter
	limits    vitals.Limits
	bound     pushBound
}

// judge decides about a value of the parameter that is out of range; the reason is without "Pushed" and the full stop.
func (t trend) judge(value float64, at time.Time) PushDecision {
	mean, n := t.meanAt(0)
	known := n >= meanAtLeast
	isOutside := known && t.bound.reaches(mean, t.bound.warning)
	last, pushed := t.lastPushed()
	quarter := worseShare * (t.bound.critical - t.bound.warning)
	midway := (t.bound.warning + t.bound.critical) / 2
	quiet := t.wasPushedSince(at.Add(-quietAfterPush))
	switch {
	case isOutside && !t.wasRunPushed():
		return PushDecision{PushedMean, fmt.Sprintf("%d-reading mean %s is at or beyond %s", n, show(mean), show(t.bound.warning))}
	case !isOutside && !quiet && t.bound.reaches(value, midway):
		return PushDecision{PushedMidway, fmt.Sprintf("%s is at or beyond %s, halfway to the critical limit", show(value), show(midway))}
	case !isOutside && !quiet && t.countOut() >= repeatedAtLeast:
		return PushDecision{PushedRepeated, fmt.Sprintf("out of range in %d of the last %d readings", t.countOut(), repeatedAmong)}
	case pushed && t.bound.reaches(value, last+quarter):
		return PushDecision{PushedWorse, fmt.Sprintf("%s is worse than %s, the last value pushed", show(value), show(last))}
	}
	return PushDecision{ListedByTrend, t.whyListed(mean, n, known, isOutside, quiet)}
}

func (t trend) whyListed(mean float64, n int, known, isOutside, quiet bool) string {
	reason := fmt.Sprintf("%d-reading mean %s is within %s", n, show(mean), show(t.bound.warning))
	switch {
	case isOutside:
		return fmt.Sprintf("%d-reading mean %s is at or beyond %s, which was pushed before", n, show(mean), show(t.bound.warning))
	case !known:
		reason = fmt.Sprintf("has %d of the %d readings that a mean needs within 14 days", n, meanAtLeast)
	}
	if quiet {
		reason += ", and it was pushed within 7 days"
	}
	return reason
}

// show formats a mean or a bound with at most one decimal.
func show(value float64) string { return vitals.FormatNumber(vitals.RoundHalfUp(value, 1)) }

// value returns the parameter's value in a reading, nil if it was not measured.
func (t trend) value(r PushReading) *float64 { return r.Values[t.of] }

// meanAt returns the mean of the last readings from the i-th on, to one decimal as it is shown, and how many there are.
func (t trend) meanAt(i int) (mean float64, n int) {
	sum, since := 0.0, time.Time{}
	for _, r := range t.Readings[i:] {
		value := t.value(r)
		if value == nil {
			continue
		}
		if n == 0 {
			since = r.MeasuredAt.Add(-meanWithin)
		}
		if n == meanReadings || r.MeasuredAt.Before(since) {
			break
		}
		sum, n = sum+*value, n+1
	}
	if n == 0 {
		return 0, 0
	}
	return math.Floor(10*sum/float64(n)+0.5) / 10, n
}

// countOut counts the values out of range, on either side, among the last readings, however old: a patient who measures once a week has no mean.
func (t trend) countOut() (count int) {
	n := 0
	for _, r := range t.Readings {
		value := t.value(r)
		if value == nil {
			continue
		}
		if n == repeatedAmong {
			break
		}
		n++
		if _, out := breachedBound(t.parameter, *value, t.limits); out {
			count++
		}
	}
	return count
}

// isAbout reports whether a push was about this parameter and side: it was the worst, or its value was out of range too.
func (t trend) isAbout(p Pushed) bool {
	value := t.value(p.PushReading)
	wasWorst := p.Parameter == t.parameter.Name && p.Beyond != 0 && p.Beyond > 0 == t.bound.isHigh
	return value != nil && (wasWorst || t.bound.reaches(*value, t.bound.warning))
}

// lastPushed returns the value of the last push about the parameter and side.
func (t trend) lastPushed() (value float64, pushed bool) {
	for _, p := range t.Pushed {
		if t.isAbout(p) {
			return *t.value(p.PushReading), true
		}
	}
	return 0, false
}

// wasPushedSince reports whether a value measured after a time was pushed.
func (t trend) wasPushedSince(since time.Time) bool {
	return slices.ContainsFunc(t.Pushed, func(p Pushed) bool { return t.isAbout(p) && p.MeasuredAt.After(since) })
}

// wasRunPushed reports whether the current run of means beyond the bound was pushed already. It
// walks back from the latest reading; where the history is cut, an earlier push counts.
func (t trend) wasRunPushed() bool {
	whole := len(t.Readings)
	if whole >= PushReadings { // the means of the oldest ones lack readings
		whole -= meanReadings
	}
	for i, r := range t.Readings[:whole] {
		if t.value(r) == nil {
			continue
		}
		mean, n := t.meanAt(i)
		if n < meanAtLeast {
			continue
		}
		if t.bound.isBackInside(mean) {
			return false
		}
		if t.bound.reaches(mean, t.bound.warning) && slices.ContainsFunc(t.Pushed, func(p Pushed) bool {
			return p.ObservationID == r.ObservationID && t.isAbout(p)
		}) {
			return true
		}
	}
	return whole < len(t.Readings) && slices.ContainsFunc(t.Pushed, func(p Pushed) bool {
		return t.isAbout(p) && !p.MeasuredAt.After(t.Readings[whole].MeasuredAt)
	})
}
