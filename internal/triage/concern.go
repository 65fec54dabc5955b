package triage

import (
	"cmp"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// State classifies a value in a row of the triage list.
type State string

// The states of a value. Only a value compared with bounds is in range; a suspect one never is.
const (
	StateCritical State = "critical"
	StateWarning  State = "warning"
	StateUnsure   State = "unsure"
	StateInRange  State = "in_range"
	StateNoBounds State = "no_bounds"
	StateNoData   State = "no_data"
)

// severityRank orders states by how soon they need attention.
var severityRank = map[State]int{StateCritical: 5, StateWarning: 3, StateInRange: 2, StateNoBounds: 1, StateNoData: 0}

// Concern is what to look at first about a patient: one value with its bounds, its time and the reasons. The functions that raise alerts
// decide it.
// Source: docs/decisions/triage.md, "Row details".
type Concern struct {
	State State
	// Type is the alert type and Rule the parameter name of its alerts; both "" if nothing was ever measured.
	Type, Rule string
	// Values belong to one measurement, the one out of bounds first; none for an alert without a measurement.
	Values []alerts.ReportedValue
	// Change is the signed change that was evaluated instead of the value; nil for none.
	Change *float64
	// Limits are the bounds of the first value. For a change they are the values at which it goes out of bounds.
	Limits     vitals.Limits
	MeasuredAt time.Time
	Reasons    []Reason

	level     alerts.Level // of the alert or finding; "" for none
	threshold float64
	danger    float64 // 0 to 1, as in the score
	score     float64 // of an early warning
	open      bool    // an unacknowledged alert is about it
}

// Parameter returns the parameter that the row is about; nil for none.
func (c Concern) Parameter() *vitals.Parameter {
	if len(c.Values) == 0 {
		return nil
	}
	return c.Values[0].Parameter
}

// Concern returns what to look at first about the patient.
func (p PatientSnapshot) Concern(now time.Time) Concern {
	var found []Concern
	for _, alertType := range alerts.ReadingTypes {
		found = append(found, p.concernsOf(alertType, now)...)
	}
	for _, alert := range append(slices.Clone(p.Open), p.undecidedAlerts()...) {
		if c, doubtful := p.suspectConcern(alert, now); doubtful {
			found = append(found, c)
		}
		if alert.Type == alerts.TypeEarlyWarning {
			found = append(found, earlyWarningConcern(alert, now))
		}
	}
	first := Concern{State: StateNoData}
	if len(found) > 0 {
		first = slices.MinFunc(found, compareConcerns)
	}
	first.Reasons = p.reasons(first, found)
	return first
}

// compareConcerns orders concerns: most severe first, then most dangerous, then newest, then the main parameter of a kind before shared
// ones.
func compareConcerns(a, b Concern) int {
	return cmp.Or(cmp.Compare(b.severityRank(), a.severityRank()), cmp.Compare(b.danger, a.danger), b.MeasuredAt.Compare(a.MeasuredAt), cmp.Compare(a.sharedRank(), b.sharedRank()))
}

// sharedRank is 1 for a parameter that several kinds measure besides their own.
func (c Concern) sharedRank() int {
	if of := c.Parameter(); of != nil && of.Shared() {
		return 1
	}
	return 0
}

// severityRank of a suspect value is that of its alert, and less than that of a certain one.
func (c Concern) severityRank() int {
	if c.State != StateUnsure {
		return severityRank[c.State]
	}
	if c.level == alerts.Critical {
		return severityRank[StateCritical] - 1
	}
	return severityRank[StateWarning]
}

// concernsOf returns the concerns of one alert type: the latest values, and the most severe unacknowledged alert unless the latest values
// are as severe and newer.
func (p PatientSnapshot) concernsOf(alertType string, now time.Time) (found []Concern) {
	latest, ok := p.latestConcern(alertType, now)
	if ok {
		found = append(found, latest)
	}
	var gravest *Concern
	for _, alert := range p.Open {
		if alert.Type != alertType || alert.Level != alerts.Critical && alert.Level != alerts.Warning {
			continue
		}
		c := p.alertConcern(alert, now)
		if ok && latest.State == c.State && !latest.MeasuredAt.Before(c.MeasuredAt) {
			found[0].open = true
			continue
		}
		if gravest == nil || severityRank[c.State] > severityRank[gravest.State] || c.State == gravest.State && c.MeasuredAt.After(gravest.MeasuredAt) {
			gravest = &c
		}
	}
	if gravest != nil {
		found = append(found, *gravest)
	}
	return found
}

// latestConcern evaluates the latest values of a type. After the score's window only their age is shown.
func (p PatientSnapshot) latestConcern(alertType string, now time.Time) (c Concern, found bool) {
	finding, measured, judged := p.CurrentFinding(alertType)
	if !judged {
		return p.unevaluatedConcern(alertType, now)
	}
	c = Concern{
		Type: alertType, Rule: finding.Parameter, MeasuredAt: measured, State: StateInRange, level: finding.Level, threshold: finding.Threshold,
		Values: p.valuesMeasuredAt(alertType, measured, finding),
	}
	if len(c.Values) == 0 {
		return c, false
	}
	c.setLimits(p.Thresholds, finding, p.Baseline)
	c.Limits = c.Limits.ForMeal(p.Latest.mealAt(c.Values[0].Parameter, measured))
	switch {
	case measured.Before(now.Add(-vitalsWindow)):
		c.State, c.level = StateNoData, ""
	case finding.Level == alerts.Critical:
		c.State = StateCritical
	case finding.Level == alerts.Warning:
		c.State = StateWarning
	case c.Parameter().Change == nil && !p.hasBounds(c.Values):
		c.State = StateNoBounds
	}
	c.danger = p.dangerOf(c, now)
	return c, true
}

// unevaluatedConcern returns the latest values of a type that have no bounds.
func (p PatientSnapshot) unevaluatedConcern(alertType string, now time.Time) (c Concern, found bool) {
	for _, parameter := range vitals.ThresholdParameters {
		value, at := p.Latest.Value(parameter)
		if parameter.Group == alertType && value != nil {
			c = Concern{Type: alertType, MeasuredAt: at, State: StateNoBounds, Values: []alerts.ReportedValue{{Parameter: parameter, Value: *value}}}
			if at.Before(now.Add(-vitalsWindow)) {
				c.State = StateNoData
			}
			return c, true
		}
	}
	return c, false
}

// valuesMeasuredAt returns the values behind a finding about the latest readings, the worst first.
func (p PatientSnapshot) valuesMeasuredAt(alertType string, at time.Time, finding alerts.Finding) []alerts.ReportedValue {
	for _, raised := range []vitals.Origin{vitals.OriginPatient, vitals.OriginDevice} {
		var values []alerts.ReportedValue
		for _, parameter := range vitals.ThresholdParameters {
			if parameter.Group != alertType {
				continue
			}
			if value, measured := p.Latest.ResolvingValue(parameter, raised); value != nil && measured.Equal(at) {
				values = append(values, alerts.ReportedValue{Parameter: parameter, Value: *value})
			}
		}
		worst := slices.IndexFunc(values, func(v alerts.ReportedValue) bool { return v.Parameter.Name == finding.Parameter })
		if len(values) == 0 || finding.Breached() && values[0].Parameter.Change == nil && (worst < 0 || values[worst].Value != finding.Value) {
			continue
		}
		if worst > 0 {
			values[0], values[worst] = values[worst], values[0]
		}
		return values
	}
	return nil
}

// setLimits sets the bounds of the first value. For a parameter watched for changes they follow from the change that would be a breach.
func (c *Concern) setLimits(t alerts.Thresholds, finding alerts.Finding, baseline []alerts.BaselineValue) {
	first := c.Values[0]
	if first.Parameter.Change == nil {
		c.Limits = t.Limits(first.Parameter)
		return
	}
	limit := func(change, bound float64) *float64 { return new(vitals.RoundHundredths(first.Value - change + bound)) }
	if finding.Breached() {
		c.Change = new(finding.Value)
		if finding.Value < 0 {
			c.Limits.Low = limit(finding.Value, -finding.Threshold)
			return
		}
		c.Limits.High = limit(finding.Value, finding.Threshold)
		return
	}
	rule := t.Change(first.Parameter)
	if gain, _, found := alerts.GainAndLoss(first.Parameter, first.Value, c.MeasuredAt, rule, baseline); found && rule.Change != nil {
		c.Limits.High = limit(gain, *rule.Change)
	} else if rule.Target != nil && rule.Over != nil {
		c.Limits.High = new(vitals.RoundHundredths(*rule.Target + *rule.Over))
	}
}

// alertConcern is the concern of an unacknowledged alert about a reading.
func (p PatientSnapshot) alertConcern(alert alerts.OpenAlert, now time.Time) Concern {
	c := Concern{
		Type: alert.Type, Rule: alert.Parameter, MeasuredAt: alert.MeasuredAt, level: alert.Level, open: true,
		State: State(alert.Level),
	}
	for _, v := range alert.Values() {
		if v.Parameter.Change != nil {
			c.Change = new(v.Value)
			continue
		}
		c.Values = append(c.Values, v)
	}
	return p.withDanger(c, now)
}

// withDanger completes the concern of an alert: the value that the alert names comes first.
func (p PatientSnapshot) withDanger(c Concern, now time.Time) Concern {
	if named := slices.IndexFunc(c.Values, func(v alerts.ReportedValue) bool { return v.Parameter.Name == c.Rule }); named > 0 {
		c.Values[0], c.Values[named] = c.Values[named], c.Values[0]
	}
	if len(c.Values) > 0 {
		c.Limits = p.limitsOfAlert(c)
	}
	c.danger = p.dangerOf(c, now)
	return c
}

// limitsOfAlert returns the bounds of the first value of an alert. Without its reading, a warning that only the bound of fasting values
// explains was about a fasting value.
func (p PatientSnapshot) limitsOfAlert(c Concern) vitals.Limits {
	first := c.Values[0]
	limits := p.Thresholds.Limits(first.Parameter)
	if c.level == alerts.Warning && deviation(first.Value, limits) == 0 {
		return limits.ForMeal(vitals.MealFasting)
	}
	return limits.ForMeal(p.Latest.mealAt(first.Parameter, c.MeasuredAt))
}

// suspectConcern is the concern of an alert about an implausible or suspect value.
func (p PatientSnapshot) suspectConcern(alert alerts.OpenAlert, now time.Time) (c Concern, is bool) {
	c = Concern{State: StateUnsure, Type: alert.Type, Rule: alert.Parameter, MeasuredAt: alert.MeasuredAt, level: alert.Level, open: true}
	switch alert.Type {
	case alerts.TypeImplausibleReading:
		for _, v := range alert.Reported {
			if v.Parameter.Change == nil {
				c.Values = append(c.Values, v)
			}
		}
	case alerts.TypeSuspectReading:
		for _, parameter := range vitals.ThresholdParameters {
			if parameter.Name == alert.Parameter {
				c.Values = []alerts.ReportedValue{{Parameter: parameter, Value: alert.Value}}
			}
		}
	default:
		return c, false
	}
	return p.withDanger(c, now), true
}

// earlyWarningConcern is the concern of an early warning: its values belong to several measurements, so it has none.
func earlyWarningConcern(alert alerts.OpenAlert, now time.Time) Concern {
	c := Concern{
		State: State(alert.Level), Type: alert.Type, Rule: alert.Parameter, MeasuredAt: alert.MeasuredAt, level: alert.Level, open: true, score: alert.Value,
	}
	depth, _ := earlyWarningValue(alert).depth()
	c.danger = depth * freshness(now.Sub(alert.MeasuredAt))
	return c
}

// hasBounds reports whether any of the values has a bound.
func (p PatientSnapshot) hasBounds(values []alerts.ReportedValue) bool {
	return slices.ContainsFunc(values, func(v alerts.ReportedValue) bool { return p.Thresholds.Limits(v.Parameter) != vitals.Limits{} })
}

// dangerOf returns the danger of the values, as in the score; 0 unless the concern is critical.
func (p PatientSnapshot) dangerOf(c Concern, now time.Time) (share float64) {
	if c.level != alerts.Critical {
		return 0
	}
	values := c.Values
	if c.Change != nil {
		for _, parameter := range vitals.ChangeParameters {
			if parameter.Group == c.Type {
				values = []alerts.ReportedValue{{Parameter: parameter, Value: *c.Change}}
			}
		}
	}
	for _, v := range values {
		depth, _ := alertValue(v, c.MeasuredAt, p.Thresholds).depth()
		share = max(share, depth*freshness(now.Sub(c.MeasuredAt)))
	}
	return share
}
