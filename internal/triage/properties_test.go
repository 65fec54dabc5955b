package triage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// ill is a random patient: readings of any age, values possibly confirmed outside the range; open alerts of every type, also late ones;
// escalations, recent alerts, own bounds.
type ill struct {
	*rand.Rand
	own       alerts.Bounds
	readings  []vitals.Reading
	origins   []vitals.Origin // of the readings
	weighings []alerts.BaselineValue
	open      []concern
	recent    []triage.RecentAlert
	stat      bool
	urgent    bool
	reviewed  time.Time
}

// concern is an open alert with the values behind it, or the change.
type concern struct {
	alert    alerts.OpenAlert
	reported []alerts.ReportedValue
	change   float64
	// undecided: acknowledged, neither confirmed nor discarded.
	undecided bool
}

// ownBounds are wider, narrower, without a critical one, or off.
var ownBounds = func() (list []alerts.Bounds) {
	for _, text := range []string{
		"", `{"blood_pressure":{"systolic_high":150,"systolic_critical":200,"systolic_critical_low":null}}`, `{"pulse_oximetry":{"low":88,"critical_low":84}}`,
		`{"blood_pressure":null}`, `{"pulse":{"high":100,"critical":105},"weight":{"change_threshold_kg":1,"change_window_days":3}}`,
		`{"blood_glucose":{"critical":600,"critical_low":20}}`, `{"blood_pressure":{"systolic_high":null,"diastolic_critical":null}}`,
	} {
		bounds, err := alerts.ParseBounds(text)
		if err != nil {
			panic(err)
		}
		list = append(list, bounds)
	}
	return list
}()

func (p *ill) chance(percent int) bool { return p.IntN(100) < percent }

// age prefers the times at which something changes.
func (p *ill) age() time.Duration {
	switch p.IntN(4) {
	case 0:
		at := []time.Duration{0, time.Hour, 24 * time.Hour, 7 * day, 30 * day}[p.IntN(5)]
		return max(0, at+time.Duration(p.IntN(5)-2)*time.Second)
	case 1:
		return time.Duration(p.Int64N(int64(400 * day)))
	}
	return time.Duration(p.Int64N(int64(10 * day)))
}

// value is any value that a device may report.
func (p *ill) value(of *vitals.Parameter) float64 {
	span := of.Range.Max - of.Range.Min
	value := of.Range.Min - 0.1*span + 1.2*span*p.Float64()
	if p.chance(50) {
		return float64(int(value))
	}
	return value
}

func chanceOf(seed uint64) *ill {
	p := &ill{Rand: rand.New(rand.NewPCG(seed, 18))}
	p.own = ownBounds[p.IntN(len(ownBounds))]
	for _, kind := range vitals.Kinds {
		for p.chance(50) { // another one, which may be older, and typed or not
			p.readings = append(p.readings, p.reading(kind))
			p.origins = append(p.origins, p.origin())
		}
	}
	for range p.IntN(4) {
		p.weighings = append(p.weighings, alerts.BaselineValue{Parameter: vitals.WeightKg, Value: 75 + 10*p.Float64(), MeasuredAt: now.Add(-p.age())})
	}
	for range p.IntN(3) {
		p.open = append(p.open, p.concern())
	}
	for range p.IntN(12) {
		level := []alerts.Level{alerts.Critical, alerts.Warning, alerts.NoData, alerts.Normal}[p.IntN(4)]
		p.recent = append(p.recent, triage.RecentAlert{Type: "blood_pressure", Level: level, CreatedAt: now.Add(-time.Duration(p.Int64N(int64(8 * day))))})
	}
	p.stat, p.urgent = p.chance(8), p.chance(20)
	p.reviewed = now.Add(-p.age())
	return p
}

func (p *ill) reading(kind vitals.Kind) vitals.Reading {
	r := vitals.Reading{Kind: kind, MeasuredAt: now.Add(-p.age())}
	for _, of := range kind.Definition().All {
		switch {
		case of == vitals.WeightKg:
			r = r.With(of, 75+20*p.Float64())
		case slices.Contains(kind.Definition().Required, of) || p.chance(50):
			r = r.With(of, p.value(of))
		}
	}
	return r
}

func (p *ill) origin() vitals.Origin {
	return []vitals.Origin{"", vitals.OriginDevice, vitals.OriginStaff, vitals.OriginPatient, vitals.OriginPatient}[p.IntN(5)]
}

func (p *ill) concern() concern {
	c := concern{alert: alerts.OpenAlert{MeasuredAt: now.Add(-p.age()), CreatedAt: now.Add(-p.age()), Origin: p.origin()}}
	switch p.IntN(8) {
	case 0:
		c.alert.Type, c.alert.Level = alerts.TypeDeviceBattery, alerts.Critical
	case 1:
		c.alert.Type, c.alert.Level = alerts.TypeNoReading24h, alerts.NoData
	case 2:
		questions := []string{alerts.TypeIrregularHeartbeat, alerts.TypeSuspectReading, alerts.TypeDeviceClock}
		c.alert.Type, c.alert.Level = questions[p.IntN(len(questions))], alerts.Warning
	case 3:
		c.alert.Type, c.change = string(vitals.Weight), 2+15*p.Float64()
	case 4:
		c.alert.Type, c.undecided = alerts.TypeImplausibleReading, p.chance(50)
		for _, of := range vitals.ThresholdParameters {
			if of.Change == nil && p.chance(30) {
				c.reported = append(c.reported, alerts.ReportedValue{Parameter: of, Value: p.value(of)})
			}
		}
	default:
		of := vitals.ThresholdParameters[p.IntN(len(vitals.ThresholdParameters)-1)]
		c.alert.Type = of.Group
		for _, other := range vitals.ThresholdParameters {
			if other.Group == of.Group {
				c.reported = append(c.reported, alerts.ReportedValue{Parameter: other, Value: p.value(other)})
			}
		}
	}
	return c
}

// judged is the alert that the rules would raise; ok is false if none.
func (c concern) judged(t alerts.Thresholds) (alert alerts.OpenAlert, ok bool) {
	alert = c.alert
	switch {
	case alert.Level != "":
		return alert, true
	case alert.Type == alerts.TypeImplausibleReading:
		alert.Level, alert.Reported = alerts.Critical, c.reported
		return alert, true
	}
	raised := func(parameter string, value float64, limits vitals.Limits) {
		level := alerts.Level("")
		switch {
		case limits.Critical != nil && value >= *limits.Critical, limits.CriticalLow != nil && value <= *limits.CriticalLow:
			level = alerts.Critical
		case limits.High != nil && value >= *limits.High, limits.Low != nil && value <= *limits.Low:
			level = alerts.Warning
		}
		if level == alerts.Critical && alert.Level != alerts.Critical || alert.Level == "" {
			alert.Level, alert.Parameter, alert.Value = level, parameter, value
		}
	}
	if alert.Type == string(vitals.Weight) {
		rule := t.Change(vitals.WeightKg)
		raised("weight", c.change, vitals.Limits{High: rule.Change, Critical: rule.CriticalChange})
	}
	for _, v := range c.reported {
		raised(v.Parameter.Name, v.Value, t.Limits(v.Parameter))
	}
	if alert.Level == alerts.Critical && c.reported != nil {
		alert.Reported = c.reported
	}
	return alert, alert.Level != ""
}

// place is the patient's row, with the alerts that the rules raise.
func (p *ill) place() triage.ComputedRow {
	t := alerts.InForce(practice, p.own)
	snapshot := triage.PatientSnapshot{Thresholds: t, Baseline: p.weighings, Recent: p.recent, LastReviewedAt: p.reviewed}
	for i, r := range p.readings {
		snapshot.Latest = snapshot.Latest.With(r, p.origins[i])
	}
	for _, c := range p.open {
		if alert, ok := c.judged(t); ok {
			raised := triage.RecentAlert{Type: alert.Type, Level: alert.Level, CreatedAt: alert.CreatedAt}
			if c.undecided {
				raised.Undecided = &alert
			} else {
				snapshot.Open = append(snapshot.Open, alert)
			}
			snapshot.Recent = append(slices.Clip(snapshot.Recent), raised)
		}
	}
	if p.stat {
		snapshot.Escalations = append(snapshot.Escalations, escalations.ActiveEscalation{Priority: escalations.Stat})
	}
	if p.urgent {
		snapshot.Escalations = append(snapshot.Escalations, escalations.ActiveEscalation{Priority: escalations.Urgent})
	}
	return snapshot.ComputeRow(now)
}

// worse is a value further from the middle of the patient's normal range, on the same side.
func (p *ill) worse(of *vitals.Parameter, value float64) float64 {
	limits := alerts.InForce(practice, p.own).Limits(of)
	low, high := of.Range.Min, of.Range.Max
	for _, bound := range []*float64{limits.CriticalLow, limits.Low} {
		if bound != nil {
			low = *bound
		}
	}
	for _, bound := range []*float64{limits.Critical, limits.High} {
		if bound != nil {
			high = *bound
		}
	}
	further := 0.3 * (of.Range.Max - of.Range.Min) * p.Float64()
	if p.chance(30) {
		further = 1 // a nudge
	}
	if value >= (low+high)/2 {
		return value + further
	}
	return value - further
}

// changes are the ways to be worse off, each by one value or time; nil if not applicable.
func (p *ill) changes() map[string]func(*ill) {
	ways := map[string]func(*ill){}
	t := alerts.InForce(practice, p.own)
	for i, r := range p.readings {
		for _, of := range vitals.ThresholdParameters {
			value := r.Value(of)
			if value == nil {
				continue
			}
			worse := *value + 10*p.Float64()
			if of.Change == nil {
				worse = p.worse(of, *value)
			}
			ways[fmt.Sprintf("latest %s %v instead of %v", of.Name, worse, *value)] = func(q *ill) {
				q.readings[i] = q.readings[i].With(of, worse)
			}
		}
		if fresher, fits := p.fresher(i); fits {
			ways[fmt.Sprintf("%s of %s instead of %s", r.Kind, now.Sub(fresher), now.Sub(r.MeasuredAt))] = func(q *ill) {
				q.readings[i].MeasuredAt = fresher
				if r.Kind == vitals.Weight { // the same change, later
					for k := range q.weighings {
						q.weighings[k].MeasuredAt = q.weighings[k].MeasuredAt.Add(fresher.Sub(r.MeasuredAt))
					}
				}
			}
		}
	}
	for i, c := range p.open {
		for k, v := range c.reported {
			worse := p.worse(v.Parameter, v.Value)
			ways[fmt.Sprintf("alert %d of %s: %s %v instead of %v", i, c.alert.Type, v.Parameter.Name, worse, v.Value)] = func(q *ill) {
				q.open[i].reported[k].Value = worse
			}
		}
		if c.change != 0 {
			ways[fmt.Sprintf("alert %d of a greater change", i)] = func(q *ill) { q.open[i].change += 5 * p.Float64() }
		}
		if alert, raised := c.judged(t); raised && alert.Level == alerts.Critical {
			fresher := now.Add(-time.Duration(p.Float64() * float64(now.Sub(alert.MeasuredAt))))
			ways[fmt.Sprintf("alert %d of %s: %s old instead of %s", i, alert.Type, now.Sub(fresher), now.Sub(alert.MeasuredAt))] = func(q *ill) {
				q.open[i].alert.MeasuredAt = fresher
			}
		}
	}
	ways["one more open alert"] = func(q *ill) { q.open = append(q.open, p.concern()) }
	ways["a stat escalation"] = func(q *ill) { q.stat = true }
	ways["an urgent escalation"] = func(q *ill) { q.urgent = true }
	ways["reviewed longer ago"] = func(q *ill) { q.reviewed = q.reviewed.Add(-day) }
	return ways
}

// fresher is a later time for a latest reading with a critical value, before other kinds' values of the same parameter, which it would
// replace.
func (p *ill) fresher(i int) (time.Time, bool) {
	r, t := p.readings[i], alerts.InForce(practice, p.own)
	critical, several := r.Kind == vitals.Weight, false
	limit := now
	for _, of := range r.Kind.Definition().All {
		value := r.Value(of)
		if value == nil {
			continue
		}
		limits := t.Limits(of)
		critical = critical || limits.Critical != nil && *value >= *limits.Critical || limits.CriticalLow != nil && *value <= *limits.CriticalLow
		for k, other := range p.readings {
			several = several || k != i && of == vitals.WeightKg && other.Kind == vitals.Weight
			if k != i && other.Value(of) != nil && !other.MeasuredAt.Before(r.MeasuredAt) && other.MeasuredAt.Before(limit.Add(time.Second)) {
				limit = other.MeasuredAt.Add(-time.Second)
			}
		}
		for _, c := range p.open {
			overtaken := c.undecided && slices.ContainsFunc(c.reported, func(v alerts.ReportedValue) bool { return v.Parameter == of })
			if overtaken && !c.alert.MeasuredAt.Before(r.MeasuredAt) && c.alert.MeasuredAt.Before(limit.Add(time.Second)) {
				limit = c.alert.MeasuredAt.Add(-time.Second)
			}
		}
	}
	later := r.MeasuredAt.Add(time.Duration(p.Float64() * float64(limit.Sub(r.MeasuredAt))))
	if r.Kind == vitals.Weight { // one alone, by whole days: changes are counted in days of the calendar
		later = r.MeasuredAt.Add(later.Sub(r.MeasuredAt).Truncate(day))
	}
	return later, critical && !several && later.After(r.MeasuredAt)
}

// A patient who is worse in one thing never ranks lower: 10,000 patients, each value of a latest reading or open alert made worse, each
// critical one newer, and more left open. A warning stays below a critical, a handled critical below an unanswered one.
func TestWorseNeverRanksLower(t *testing.T) {
	tried, bands := 0, map[string]int{}
	for seed := range uint64(10_000) {
		p := chanceOf(seed)
		before := p.place()
		bands[fmt.Sprint(before.Score.Level, " ", triage.CriticalStatusFor(before.Score.Value))]++
		for what, change := range p.changes() {
			q := chanceOf(seed)
			change(q)
			after := q.place()
			if tried++; after.Score.Value < before.Score.Value {
				t.Errorf("patient %d: %s lowers the score from %d to %d\nfrom %+v\nto %+v", seed, what, before.Score.Value, after.Score.Value, before.Score, after.Score)
			}
			if after.UnacknowledgedCritical < before.UnacknowledgedCritical {
				t.Errorf("patient %d: %s leaves fewer critical alerts, by which equals are ordered", seed, what)
			}
		}
		if t.Failed() {
			return
		}
	}
	for _, band := range []string{"critical unanswered", "critical handled", "warning ", "normal ", "no_data "} {
		if bands[band] < 100 {
			t.Errorf("only %d patients are %s", bands[band], band)
		}
	}
	t.Logf("%d changes of 10,000 patients: %v", tried, bands)
}

// Acknowledging an alert never raises a score, and an aging critical never rises in its band.
func TestAcknowledgingNeverRaisesScore(t *testing.T) {
	for seed := range uint64(10_000) {
		p := chanceOf(seed)
		before := p.place().Score
		for i := range p.open {
			q := chanceOf(seed)
			t0 := alerts.InForce(practice, q.own)
			if q.open[i].undecided { // acknowledged already
				continue
			}
			if alert, raised := q.open[i].judged(t0); raised { // it still counts as one of the week's
				q.recent = append(q.recent, triage.RecentAlert{Type: alert.Type, Level: alert.Level, CreatedAt: alert.CreatedAt})
			}
			q.open = slices.Delete(q.open, i, i+1)
			if after := q.place().Score; after.Value > before.Value {
				t.Fatalf("patient %d: answering alert %d raises the score from %d to %d", seed, i, before.Value, after.Value)
			}
		}
	}
}

// No typed reading takes a patient out of the critical bands that a device or staff caused.
func TestTypedReadingNeverLeavesCriticalBand(t *testing.T) {
	tried := 0
	for seed := range uint64(10_000) {
		p := chanceOf(seed)
		for i := range p.origins {
			if p.origins[i] == vitals.OriginPatient {
				p.origins[i] = vitals.OriginDevice
			}
		}
		before := p.place().Score
		if triage.CriticalStatusFor(before.Value) == "" {
			continue
		}
		tried++
		for range 1 + p.IntN(3) {
			typed := p.reading(vitals.Kinds[p.IntN(len(vitals.Kinds))])
			typed.MeasuredAt = now.Add(-time.Duration(p.IntN(60)) * time.Minute)
			p.readings, p.origins = append(p.readings, typed), append(p.origins, vitals.OriginPatient)
		}
		if after := p.place().Score; triage.CriticalStatusFor(after.Value) == "" || triage.CriticalStatusFor(before.Value) == triage.Unanswered && triage.CriticalStatusFor(after.Value) != triage.Unanswered {
			t.Errorf("patient %d: what was typed lowers the score from %d to %d\n%+v", seed, before.Value, after.Value, after)
		}
	}
	if tried < 1000 {
		t.Errorf("only %d patients were critical", tried)
	}
}
