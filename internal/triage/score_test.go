package triage_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var now = time.Date(2026, time.January, 15, 13, 45, 0, 0, time.UTC)

const day = 24 * time.Hour

// defaults are the practice's starting values. Source: docs/decisions/alerts.md, "Default thresholds".
var defaults = alerts.InForce(practice, nil)

var practice = func() alerts.Bounds {
	bounds, err := alerts.ParseBounds(`{
		"blood_pressure": {"systolic_critical_low": 80, "systolic_low": 90, "systolic_high": 140, "systolic_critical": 180,
			"diastolic_critical_low": 40, "diastolic_low": 60, "diastolic_high": 90, "diastolic_critical": 120},
		"pulse": {"critical_low": 40, "low": 50, "high": 110, "critical": 130},
		"pulse_oximetry": {"critical_low": 88, "low": 92},
		"blood_glucose": {"critical_low": 54, "low": 70, "high": 250, "critical": 300},
		"weight": {"change_threshold_kg": 2.3, "change_window_days": 7}}`)
	if err != nil {
		panic(err)
	}
	return bounds
}()

func pressure(systolic, diastolic float64) vitals.Reading {
	return vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: now.Add(-time.Hour)}.With(vitals.Systolic, systolic).With(vitals.Diastolic, diastolic)
}

func pressureAndPulse(systolic, diastolic, pulse float64) vitals.Reading {
	return pressure(systolic, diastolic).With(vitals.Pulse, pulse)
}

func oximetry(spo2 float64) vitals.Reading {
	return vitals.Reading{Kind: vitals.PulseOximetry, MeasuredAt: now.Add(-time.Hour)}.With(vitals.SpO2, spo2)
}

func weighing(kg float64) vitals.Reading {
	return vitals.Reading{Kind: vitals.Weight, MeasuredAt: now.Add(-time.Hour)}.With(vitals.WeightKg, kg)
}

func old(r vitals.Reading, age time.Duration) vitals.Reading {
	r.MeasuredAt = now.Add(-age)
	return r
}

// patient has the readings and was reviewed just now.
func patient(readings ...vitals.Reading) triage.ScoreInput {
	c := triage.ScoreInput{Thresholds: defaults, ReviewedAt: now}
	for _, r := range readings {
		c.Latest = c.Latest.With(r, vitals.OriginDevice)
	}
	return c
}

// The examples of docs/decisions/triage.md, "Risk-score formula".
func TestScoreExamples(t *testing.T) {
	type points = map[string]float64
	tests := []struct {
		name    string
		c       triage.ScoreInput
		change  func(*triage.ScoreInput)
		value   int
		level   triage.RiskLevel
		factors points
	}{
		{"calm, reviewed a day ago", patient(pressureAndPulse(124, 78, 70)), func(c *triage.ScoreInput) {
			c.ReviewedAt = now.Add(-24 * time.Hour)
		}, 2, triage.RiskNormal, points{"review": 2.1}},
		{"one unacknowledged warning", patient(pressure(150, 85)), func(c *triage.ScoreInput) {
			c.Alerts, c.UnacknowledgedWarning = triage.AlertCounts{Warning: 1}, true
			c.ReviewedAt = now.Add(-48 * time.Hour)
		}, 62, triage.RiskWarning, points{"vitals": 24.4, "alerts": 4.2, "review": 4.3, "floor": 51, "danger": 11}},
		{"33 without the floor", patient(pressure(150, 85)), func(c *triage.ScoreInput) {
			c.Alerts, c.ReviewedAt = triage.AlertCounts{Warning: 1}, now.Add(-48*time.Hour)
		}, 33, triage.RiskNormal, points{"vitals": 24.4, "alerts": 4.2, "review": 4.3}},
		{"acknowledged just now", patient(pressure(150, 85)), func(c *triage.ScoreInput) {
			c.Alerts = triage.AlertCounts{Warning: 1}
		}, 29, triage.RiskNormal, points{"vitals": 24.4, "alerts": 4.2}},
		{"low saturation", patient(oximetry(90)), func(c *triage.ScoreInput) {
			c.Alerts, c.UnacknowledgedWarning = triage.AlertCounts{Warning: 1}, true
			c.ReviewedAt = now.Add(-10 * time.Hour)
		}, 66, triage.RiskWarning, points{"vitals": 40, "alerts": 4.2, "review": 0.9, "floor": 51, "danger": 15}},
		{"45 without the floor", patient(oximetry(90)), func(c *triage.ScoreInput) {
			c.Alerts, c.ReviewedAt = triage.AlertCounts{Warning: 1}, now.Add(-10*time.Hour)
		}, 45, triage.RiskNormal, points{"vitals": 40, "alerts": 4.2, "review": 0.9}},
		{"everything at once", patient(pressureAndPulse(190, 125, 115)), func(c *triage.ScoreInput) {
			c.Alerts = triage.AlertCounts{Critical: 1, Warning: 1}
			c.Unanswered, c.UnacknowledgedWarning, c.StatEscalation = []alerts.OpenAlert{{Type: "blood_pressure", Level: alerts.Critical}}, true, true
			c.ReviewedAt = now.Add(-72 * time.Hour)
		}, 89, triage.RiskCritical, points{"vitals": 55, "alerts": 12.5, "review": 6.4, "floor": 86, "danger": 3}},
		{"critical, acknowledged and closed just now", patient(pressure(190, 125)), func(c *triage.ScoreInput) {
			c.Alerts = triage.AlertCounts{Critical: 1}
		}, 78, triage.RiskCritical, points{"vitals": 50, "alerts": 8.3, "floor": 76, "danger": 2}},
		{"while the stat escalation is open", patient(pressure(190, 125)), func(c *triage.ScoreInput) {
			c.Alerts, c.StatEscalation = triage.AlertCounts{Critical: 1}, true
		}, 89, triage.RiskCritical, points{"vitals": 50, "alerts": 8.3, "floor": 86, "danger": 3}},
		{"closed, two days ago", patient(old(pressure(190, 125), 2*day)), func(c *triage.ScoreInput) {
			c.Alerts = triage.AlertCounts{Critical: 1}
		}, 58, triage.RiskWarning, points{"vitals": 50, "alerts": 8.3}},
		{"closed, two days ago, many alerts, never reviewed", patient(old(pressure(190, 125), 2*day)), func(c *triage.ScoreInput) {
			c.Alerts, c.ReviewedAt = triage.AlertCounts{Critical: 9}, now.Add(-30*day)
		}, 75, triage.RiskWarning, points{"vitals": 50, "alerts": 25}},
		{"warnings only, as many as can be", patient(pressure(178, 118), oximetry(91)), func(c *triage.ScoreInput) {
			c.Alerts, c.ReviewedAt = triage.AlertCounts{Warning: 90}, now.Add(-30*day)
			c.UnacknowledgedWarning = true
		}, 75, triage.RiskWarning, points{"vitals": 42.5, "alerts": 25, "review": 15, "floor": 51, "danger": 24}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.change(&test.c)
			score := triage.ComputeScore(test.c, now)
			if score.Value != test.value || score.Level != test.level {
				t.Errorf("%d %s, want %d %s", score.Value, score.Level, test.value, test.level)
			}
			if diff := cmp.Diff(test.factors, pointsOf(score)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func pointsOf(score triage.Score) map[string]float64 {
	points := map[string]float64{}
	for _, factor := range score.Factors {
		points[factor.Factor] = factor.Points
	}
	return points
}

func TestScoreVitals(t *testing.T) {
	gained := patient(weighing(83))
	gained.Baseline = []alerts.BaselineValue{{Parameter: vitals.WeightKg, Value: 80, MeasuredAt: now.Add(-2 * day)}, {Parameter: vitals.WeightKg, Value: 83, MeasuredAt: now.Add(-time.Hour)}}
	lost := gained
	lost.Baseline = []alerts.BaselineValue{{Parameter: vitals.WeightKg, Value: 90, MeasuredAt: now.Add(-2 * day)}}
	noCritical := patient(pressure(175, 80))
	noCritical.Thresholds = alerts.InForce(practice, alerts.Bounds{"blood_pressure": {"systolic_critical": nil}})
	tests := []struct {
		name   string
		c      triage.ScoreInput
		points float64
		detail string
	}{
		{"inside the bounds", patient(pressure(139.99, 80)), 0, ""},
		{"at a warning bound", patient(pressure(140, 80)), 20, "Systolic 140 is out of bounds."},
		{"just under critical", patient(pressure(179, 80)), 37.1, "Systolic 179 is out of bounds."},
		{"at a critical bound", patient(pressure(180, 80)), 50, "Systolic 180 is out of bounds."},
		{"at a lower warning bound", patient(pressure(90, 70)), 35, "Systolic 90 is out of bounds."},
		{"between the lower bounds", patient(pressure(85, 70)), 40, "Systolic 85 is out of bounds."},
		{"at a lower critical bound", patient(pressure(80, 70)), 50, "Systolic 80 is out of bounds."},
		{"warning without a critical bound", noCritical, 20, "Systolic 175 is out of bounds."},
		{"both pressures are one kind", patient(pressure(140, 90)), 20, "Systolic 140 is out of bounds."},
		{"two kinds", patient(pressureAndPulse(140, 90, 110)), 32.5, "Pulse 110 is out of bounds. 2 kinds of value in all."},
		{"four count no more than three", patient(pressureAndPulse(140, 90, 110), oximetry(92), glucose(250)), 45, "SpO2 92 is out of bounds. 4 kinds of value in all."},
		{"the worst gives the points", patient(pressure(140, 120)), 50, "Diastolic 120 is out of bounds."},
		{"a reading seven days old", patient(old(pressure(180, 80), 7*day)), 50, "Systolic 180 is out of bounds."},
		{"a reading older than that", patient(old(pressure(180, 80), 7*day+1)), 0, ""},
		{
			"a later reading without pulse leaves the pulse", patient(old(pressureAndPulse(120, 80, 130), 2*day), pressure(120, 80)),
			50, "Pulse 130 is out of bounds.",
		},
		{"weight gain", gained, 33.8, "Weight gain 3 is out of bounds."},
		{"weight loss is no deviation", lost, 0, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			score := triage.ComputeScore(test.c, now)
			var got triage.Factor
			for _, factor := range score.Factors {
				if factor.Factor == "vitals" {
					got = factor
				}
			}
			if got.Points != test.points || got.Detail != test.detail {
				t.Errorf("%v %q, want %v %q", got.Points, got.Detail, test.points, test.detail)
			}
		})
	}
}

func TestScoreWithoutData(t *testing.T) {
	silent := func(age time.Duration) triage.ScoreInput {
		c := patient(old(pressure(190, 125), age))
		c.ReviewedAt, c.Alerts = now.Add(-400*day), triage.AlertCounts{NoData: 9}
		return c
	}
	if score := triage.ComputeScore(silent(30*day+1), now); score.Value != 0 || score.Level != triage.RiskNoData || score.Factors == nil || len(score.Factors) != 0 {
		t.Errorf("no reading in 30 days: %+v", score)
	}
	if score := triage.ComputeScore(silent(30*day), now); score.Value != 34 {
		t.Errorf("a reading 30 days old: %d", score.Value)
	}
	for what, test := range map[string]struct {
		open func(*triage.ScoreInput)
		want int
	}{
		"a warning":                             {func(c *triage.ScoreInput) { c.UnacknowledgedWarning = true }, 62},
		"an urgent escalation":                  {func(c *triage.ScoreInput) { c.UrgentEscalation = true }, 62},
		"a stat escalation":                     {func(c *triage.ScoreInput) { c.StatEscalation, c.Latest = true, triage.Latest{} }, 86},
		"a stat escalation, an old crisis":      {func(c *triage.ScoreInput) { c.StatEscalation = true }, 87},
		"a critical alert about no known value": {func(c *triage.ScoreInput) { c.Latest, c.Unanswered = triage.Latest{}, []alerts.OpenAlert{{}} }, 86},
	} {
		c := silent(31 * day)
		test.open(&c)
		if score := triage.ComputeScore(c, now); score.Value != test.want {
			t.Errorf("%s without data: %d, want %d", what, score.Value, test.want)
		}
	}
	if score := triage.ComputeScore(triage.ScoreInput{Thresholds: defaults, ReviewedAt: now}, now); score.Value != 0 {
		t.Errorf("a newborn record: %d", score.Value)
	}
	if score := triage.ComputeScore(patient(pressure(120, 80)), now); score.Value != 1 || score.Level != triage.RiskNormal {
		t.Errorf("nothing open, but data: %d %s", score.Value, score.Level)
	}
}

func TestLevelOf(t *testing.T) {
	for score, want := range map[int]triage.RiskLevel{
		0: triage.RiskNoData, 1: triage.RiskNormal, 50: triage.RiskNormal, 51: triage.RiskWarning,
		75: triage.RiskWarning, 76: triage.RiskCritical, 100: triage.RiskCritical,
	} {
		if got := triage.RiskLevelFor(score); got != want {
			t.Errorf("%d is %s, want %s", score, got, want)
		}
	}
}

func circumstances(t *rapid.T) triage.ScoreInput {
	value := func(label string, r vitals.Range) *float64 {
		if !rapid.Bool().Draw(t, "has "+label) {
			return nil
		}
		return new(rapid.Float64Range(r.Min, r.Max).Draw(t, label))
	}
	age := func(label string) time.Time {
		return now.Add(-time.Duration(rapid.Int64Range(0, int64(40*day)).Draw(t, label)))
	}
	count := func(label string) int { return rapid.IntRange(0, 20).Draw(t, label) }
	c := triage.ScoreInput{
		Thresholds: defaults, ReviewedAt: age("reviewed"), AlertedAt: alertedAt(now), // of every critical value
		Alerts:                triage.AlertCounts{Critical: count("critical"), Warning: count("warning"), NoData: count("no data")},
		UnacknowledgedWarning: rapid.Bool().Draw(t, "open warning"),
		StatEscalation:        rapid.Bool().Draw(t, "stat"), UrgentEscalation: rapid.Bool().Draw(t, "urgent"),
	}
	if rapid.Bool().Draw(t, "open critical") {
		c.Unanswered = []alerts.OpenAlert{{
			Type: "pulse", Parameter: "pulse", Level: alerts.Critical,
			Value: rapid.Float64Range(10, 40).Draw(t, "open pulse"), MeasuredAt: age("open at"),
		}}
	}
	if systolic := value("systolic", vitals.Systolic.Range); systolic != nil {
		r := vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: age("bp")}.With(vitals.Systolic, *systolic).With(vitals.Diastolic, 80)
		*r.ValuePtr(vitals.Pulse) = value("pulse", vitals.Pulse.Range)
		c.Latest = c.Latest.With(r, vitals.OriginDevice)
	}
	if spo2 := value("spo2", vitals.SpO2.Range); spo2 != nil {
		c.Latest = c.Latest.With(vitals.Reading{Kind: vitals.PulseOximetry, MeasuredAt: age("ox")}.With(vitals.SpO2, *spo2), vitals.OriginDevice)
	}
	if glucose := value("glucose", vitals.GlucoseMgDL.Range); glucose != nil {
		c.Latest = c.Latest.With(vitals.Reading{Kind: vitals.BloodGlucose, MeasuredAt: age("glucose at")}.With(vitals.GlucoseMgDL, *glucose), vitals.OriginDevice)
	}
	return c
}

func TestScoreProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := circumstances(t)
		score := triage.ComputeScore(c, now)
		if score.Value < 0 || score.Value > 100 || score.Level != triage.RiskLevelFor(score.Value) {
			t.Fatalf("score %d, level %s", score.Value, score.Level)
		}
		open := len(c.Unanswered) > 0 || c.StatEscalation
		if unanswered := triage.CriticalStatusFor(score.Value) == triage.Unanswered; unanswered != open {
			t.Fatalf("score %d, unanswered %t, is %t", score.Value, unanswered, open)
		}
		if score.Value == 0 {
			if len(score.Factors) != 0 || open || c.UnacknowledgedWarning || c.UrgentEscalation {
				t.Fatalf("no data, yet %+v", c)
			}
			return
		}
		if warned := c.UnacknowledgedWarning || c.UrgentEscalation; warned && score.Value < 51 {
			t.Fatalf("score %d with a warning open", score.Value)
		}
		// The score is the rounded sum of its factors, or its floor plus danger.
		var sum, floor, danger float64
		for _, factor := range score.Factors {
			switch factor.Factor {
			case "floor":
				floor = factor.Points
			case "danger":
				danger = factor.Points
			default:
				sum += factor.Points
			}
		}
		shown := max(1, int(sum+0.5+1e-9))
		if floor > 0 {
			shown = int(floor + danger)
		}
		if score.Value != shown || floor == 0 && danger > 0 || floor == 51 && danger != min(24, float64(int(sum/3+0.5+1e-9))) || floor == 0 && shown > 75 {
			t.Fatalf("score %d from %+v", score.Value, score.Factors)
		}
	})
}

// The further a value is beyond its bounds, on either side, the higher the score, for any other input.
func TestScoreRisesWithDeviation(t *testing.T) {
	for name, vital := range map[string]struct {
		middle, lowest, highest float64
		read                    func(value float64) vitals.Reading
	}{
		"systolic":  {120, 60, 300, func(v float64) vitals.Reading { return pressure(v, 80) }},
		"diastolic": {75, 30, 200, func(v float64) vitals.Reading { return pressure(120, v) }},
		"pulse":     {80, 30, 250, func(v float64) vitals.Reading { return pressureAndPulse(120, 80, v) }},
		"SpO2":      {97, 50, 97, oximetry},
		"glucose": {120, 20, 600, func(v float64) vitals.Reading {
			return vitals.Reading{Kind: vitals.BloodGlucose, MeasuredAt: now.Add(-time.Hour)}.With(vitals.GlucoseMgDL, v)
		}},
		"weight gain": {80, 80, 120, weighing},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := circumstances(t)
				c.Baseline = []alerts.BaselineValue{{Parameter: vitals.WeightKg, Value: 80, MeasuredAt: now.Add(-2 * day)}}
				end := rapid.SampledFrom([]float64{vital.lowest, vital.highest}).Draw(t, "end")
				near, far := rapid.Float64Range(0, 1).Draw(t, "near"), rapid.Float64Range(0, 1).Draw(t, "far")
				score := func(way float64) int {
					c := c
					c.Latest = triage.Latest{}
					c.Latest = c.Latest.With(vital.read(vital.middle+way*(end-vital.middle)), vitals.OriginDevice)
					return triage.ComputeScore(c, now).Value
				}
				near, far = min(near, far), max(near, far)
				if a, b := score(near), score(far); a > b || a < 0 || b > 100 {
					t.Fatalf("%v of the way to %v scores %d, %v only %d", near, end, a, far, b)
				}
			})
		})
	}
}

func BenchmarkRate(b *testing.B) {
	c := patient(pressureAndPulse(150, 95, 115), oximetry(91))
	c.Alerts, c.UnacknowledgedWarning, c.ReviewedAt = triage.AlertCounts{Warning: 3}, true, now.Add(-48*time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		triage.ComputeScore(c, now)
	}
}

// Every unanswered warning about a reading sets the floor; alerts about devices and missing data do not.
func TestWarningAboutReadingSetsFloor(t *testing.T) {
	for _, alertType := range alerts.Types {
		open := []alerts.OpenAlert{{Type: alertType, Level: alerts.Warning, CreatedAt: now.Add(-time.Hour)}}
		for what, latest := range map[string]triage.Latest{"measured": triage.Latest{}.With(pressure(120, 80), vitals.OriginDevice), "nothing measured": {}} {
			score := triage.PatientSnapshot{Thresholds: defaults, LastReviewedAt: now, Open: open, Latest: latest}.ComputeRow(now).Score
			aboutReading := !slices.Contains(alerts.DeviceTypes, alertType)
			if (score.Level == triage.RiskWarning) != aboutReading || aboutReading && score.Value != 51 {
				t.Errorf("%s, %s: %d %s", alertType, what, score.Value, score.Level)
			}
		}
	}
}

// alertedAt returns that critical alerts of all types were raised at a time.
func alertedAt(at time.Time) map[string]time.Time {
	all := map[string]time.Time{}
	for _, alertType := range alerts.ReadingTypes {
		all[alertType] = at
	}
	return all
}
