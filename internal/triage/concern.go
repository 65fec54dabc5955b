package triage

import (
	"cmp"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// State is what a row of the list says of a value at first sight.
type State string

// The states of a value. Only what was held against bounds is in range; what is in doubt never is.
const (
	StateCritical State = "critical"
	StateWarning  State = "warning"
	StateUnsure   State = "unsure"
	StateInRange  State = "in_range"
	StateNoBounds State = "no_bounds"
	StateNoData   State = "no_data"
)

// gravity is how much a state wants to be looked at before another.
var gravity = map[State]int{StateCritical: 5, StateWarning: 3, StateInRange: 2, StateNoBounds: 1, StateNoData: 0}

// Concern is what of a patient is to be looked at first: one value beside its bounds, when it was measured, and why it matters. It is decided
// by the functions that raise alerts. Source: docs/decisions/triage.md, "Row details".
type Concern struct {
	State State
	// Type is the alert type that the value is about, Rule the name by which an alert of it goes; both "" where nothing was ever measured.
	Type, Rule string
	// Values are those of one measurement, the one that is out of bounds first; of an alert that is no measurement, none.
	Values []alerts.Reported
	// Change is the signed change that was judged in place of the value; nil for none.
	Change *float64
	// Limits are the bounds of the first value. Where a change is judged they are what the value may be before it is out of bounds.
	Limits     vitals.Limits
	MeasuredAt time.Time
	Reasons    []Reason

	level     alerts.Level // of the alert or the finding; "" for none
	threshold float64
	share     float64 // its danger
	open      bool    // it is what an unacknowledged alert says
}

// Of is the parameter that the row is about; nil for none.
func (c Concern) Of() *vitals.Parameter {
	if len(c.Values) == 0 {
		return nil
	}
	return c.Values[0].Of
}

// Concern says what of the patient is to be looked at first.
func (p Picture) Concern(now time.Time) Concern {
	var found []Concern
	for _, alertType := range alerts.ReadingTypes {
		found = append(found, p.concerns(alertType, now)...)
	}
	for _, alert := range append(slices.Clone(p.Open), p.undecided()...) {
		if c, doubtful := p.doubtful(alert, now); doubtful {
			found = append(found, c)
		}
	}
	first := Concern{State: StateNoData}
	if len(found) > 0 {
		first = slices.MinFunc(found, before)
	}
	first.Reasons = p.reasons(first, found)
	return first
}

// before orders concerns: the gravest first, of equal ones the most dangerous, then the one measured last, and of one measurement what it was
// made for.
func before(a, b Concern) int {
	return cmp.Or(cmp.Compare(b.gravity(), a.gravity()), cmp.Compare(b.share, a.share), b.MeasuredAt.Compare(a.MeasuredAt), cmp.Compare(a.beside(), b.beside()))
}

// beside is 1 of what several kinds measure beside their own.
func (c Concern) beside() int {
	if of := c.Of(); of != nil && of.Shared() {
		return 1
	}
	return 0
}

// gravity of what is in doubt is that of its alert, and less than that of what is certain.
func (c Concern) gravity() int {
	if c.State != StateUnsure {
		return gravity[c.State]
	}
	if c.level == alerts.Critical {
		return gravity[StateCritical] - 1
	}
	return gravity[StateWarning]
}

// concerns are what is known of one type of alert: its latest values, or what an unacknowledged alert said that is graver, or as grave while
// the latest values have grown old.
func (p Picture) concerns(alertType string, now time.Time) (found []Concern) {
	latest, known := p.latestConcern(alertType, now)
	if known {
		found = append(found, latest)
	}
	var gravest *Concern
	for _, alert := range p.Open {
		if alert.Type != alertType || alert.Level != alerts.Critical && alert.Level != alerts.Warning {
			continue
		}
		c := p.alarmed(alert, now)
		if known && latest.State == c.State && !latest.MeasuredAt.Before(c.MeasuredAt) {
			found[0].open = true
			continue
		}
		if gravest == nil || gravity[c.State] > gravity[gravest.State] || c.State == gravest.State && c.MeasuredAt.After(gravest.MeasuredAt) {
			gravest = &c
		}
	}
	if gravest != nil {
		found = append(found, *gravest)
	}
	return found
}

// latestConcern judges the latest values of a type. They count for as long as they count for the score; then only their age is told.
func (p Picture) latestConcern(alertType string, now time.Time) (c Concern, known bool) {
	finding, measured, judged := p.Standing(alertType)
	if !judged {
		return p.unjudged(alertType, now)
	}
	c = Concern{
		Type: alertType, Rule: finding.Parameter, MeasuredAt: measured, State: StateInRange, level: finding.Level, threshold: finding.Threshold,
		Values: p.measured(alertType, measured, finding),
	}
	if len(c.Values) == 0 {
		return c, false
	}
	c.bound(p.Thresholds, finding, p.Weighings)
	switch {
	case measured.Before(now.Add(-vitalsWindow)):
		c.State, c.level = StateNoData, ""
	case finding.Level == alerts.Critical:
		c.State = StateCritical
	case finding.Level == alerts.Warning:
		c.State = StateWarning
	case c.Of().Change == nil && !p.bounded(c.Values):
		c.State = StateNoBounds
	}
	c.share = p.dangerOf(c, now)
	return c, true
}

// unjudged are the latest values of a type that there is nothing to hold against.
func (p Picture) unjudged(alertType string, now time.Time) (c Concern, known bool) {
	for _, parameter := range vitals.Watched {
		value, at := p.Latest.Value(parameter)
		if parameter.Group == alertType && value != nil {
			c = Concern{Type: alertType, MeasuredAt: at, State: StateNoBounds, Values: []alerts.Reported{{Of: parameter, Value: *value}}}
			if at.Before(now.Add(-vitalsWindow)) {
				c.State = StateNoData
			}
			return c, true
		}
	}
	return c, false
}

// measured are the values behind a finding about the latest readings, the worst first.
func (p Picture) measured(alertType string, at time.Time, finding alerts.Finding) []alerts.Reported {
	for _, raised := range []vitals.Origin{vitals.OriginPatient, vitals.OriginDevice} {
		var values []alerts.Reported
		for _, parameter := range vitals.Watched {
			if parameter.Group != alertType {
				continue
			}
			if value, measured := p.Latest.Settling(parameter, raised); value != nil && measured.Equal(at) {
				values = append(values, alerts.Reported{Of: parameter, Value: *value})
			}
		}
		worst := slices.IndexFunc(values, func(v alerts.Reported) bool { return v.Of.Name == finding.Parameter })
		if len(values) == 0 || finding.Breached() && values[0].Of.Change == nil && (worst < 0 || values[worst].Value != finding.Value) {
			continue
		}
		if worst > 0 {
			values[0], values[worst] = values[worst], values[0]
		}
		return values
	}
	return nil
}

// bound gives the bounds of the first value. What is watched for changes may be as much as makes no change that deserves attention.
func (c *Concern) bound(t alerts.Thresholds, finding alerts.Finding, weighings []alerts.Weighing) {
	first := c.Values[0]
	if first.Of.Change == nil {
		c.Limits = t.Of(first.Of)
		return
	}
	limit := func(change, bound float64) *float64 { return new(rounded(first.Value - change + bound)) }
	if finding.Breached() {
		c.Change = new(finding.Value)
		if finding.Value < 0 {
			c.Limits.Low = limit(finding.Value, -finding.Threshold)
			return
		}
		c.Limits.High = limit(finding.Value, finding.Threshold)
		return
	}
	rule := t.Change(first.Of)
	if gain, _, known := alerts.Gain(first.Of, first.Value, c.MeasuredAt, rule, weighings); known && rule.Change != nil {
		c.Limits.High = limit(gain, *rule.Change)
	} else if rule.Target != nil && rule.Over != nil {
		c.Limits.High = new(rounded(*rule.Target + *rule.Over))
	}
}

// alarmed is what an unacknowledged alert about a reading said.
func (p Picture) alarmed(alert alerts.Open, now time.Time) Concern {
	c := Concern{
		Type: alert.Type, Rule: alert.Parameter, MeasuredAt: alert.MeasuredAt, level: alert.Level, open: true,
		State: State(alert.Level),
	}
	for _, v := range alert.Values() {
		if v.Of.Change != nil {
			c.Change = new(v.Value)
			continue
		}
		c.Values = append(c.Values, v)
	}
	if named := slices.IndexFunc(c.Values, func(v alerts.Reported) bool { return v.Of.Name == alert.Parameter }); named > 0 {
		c.Values[0], c.Values[named] = c.Values[named], c.Values[0]
	}
	if len(c.Values) > 0 {
		c.Limits = p.Thresholds.Of(c.Values[0].Of)
	}
	c.share = p.dangerOf(c, now)
	return c
}

// doubtful is what an alert says about values that are no measurement, or may be somebody else's.
func (p Picture) doubtful(alert alerts.Open, now time.Time) (c Concern, is bool) {
	c = Concern{State: StateUnsure, Type: alert.Type, Rule: alert.Parameter, MeasuredAt: alert.MeasuredAt, level: alert.Level, open: true}
	switch alert.Type {
	case alerts.TypeImplausibleReading:
		for _, v := range alert.Reported {
			if v.Of.Change == nil {
				c.Values = append(c.Values, v)
			}
		}
		if named := slices.IndexFunc(c.Values, func(v alerts.Reported) bool { return v.Of.Name == alert.Parameter }); named > 0 {
			c.Values[0], c.Values[named] = c.Values[named], c.Values[0]
		}
	case alerts.TypeSuspectReading:
		for _, parameter := range vitals.Watched {
			if parameter.Name == alert.Parameter {
				c.Values = []alerts.Reported{{Of: parameter, Value: alert.Value}}
			}
		}
	default:
		return c, false
	}
	if len(c.Values) > 0 {
		c.Limits = p.Thresholds.Of(c.Values[0].Of)
	}
	c.share = p.dangerOf(c, now)
	return c, true
}

// bounded reports whether there is a bound for any of the values.
func (p Picture) bounded(values []alerts.Reported) bool {
	return slices.ContainsFunc(values, func(v alerts.Reported) bool { return p.Thresholds.Of(v.Of) != vitals.Limits{} })
}

// dangerOf is how dangerous what is shown is, as the score has it; 0 unless it is critical.
func (p Picture) dangerOf(c Concern, now time.Time) (share float64) {
	if c.level != alerts.Critical {
		return 0
	}
	values := c.Values
	if c.Change != nil {
		for _, parameter := range vitals.Changing {
			if parameter.Group == c.Type {
				values = []alerts.Reported{{Of: parameter, Value: *c.Change}}
			}
		}
	}
	for _, v := range values {
		depth, _ := judgedBy(v, c.MeasuredAt, p.Thresholds).depth()
		share = max(share, depth*freshness(now.Sub(c.MeasuredAt)))
	}
	return share
}
