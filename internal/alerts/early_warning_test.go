package alerts_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var scoredAt = time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)

func scored(p *vitals.Parameter, value float64, ago time.Duration) alerts.ScoredValue {
	return alerts.ScoredValue{Parameter: p, Value: value, At: scoredAt.Add(-ago), ObservationID: fmt.Sprint(p.Name, ago)}
}

// pointsOf returns the points of one value, measured from the sum with three values that score 5 together.
func pointsOf(t *testing.T, rules alerts.EarlyWarningRules, p *vitals.Parameter, value float64) int {
	t.Helper()
	history, base := []alerts.ScoredValue{scored(p, value, 0)}, 0
	twoPoints := map[*vitals.Parameter]float64{vitals.Systolic: 95, vitals.Pulse: 115, vitals.TemperatureC: 39.5, vitals.SpO2: 84}
	for other, value := range twoPoints {
		if other != p && (other != vitals.SpO2 || rules.Scale2) {
			history, base = append(history, scored(other, value, 0)), base+2
		}
	}
	run, lasts := rules.Run(history, scoredAt)
	if base < 4 || !lasts && base >= 5 {
		t.Fatalf("the base is %d", base)
	}
	if !lasts {
		return 0
	}
	return run.Worst.Sum - base
}

// Every cell of the chart. Source: Royal College of Physicians, NEWS2, 2017, chart 1.
func TestNEWS2Chart(t *testing.T) {
	for _, row := range []struct {
		of     *vitals.Parameter
		scale2 bool
		points map[int][]float64
	}{
		{vitals.SpO2, false, map[int][]float64{3: {50, 91, 91.4}, 2: {91.5, 92, 93}, 1: {94, 95}, 0: {96, 100}}},
		{vitals.SpO2, true, map[int][]float64{3: {50, 83}, 2: {84, 85}, 1: {86, 87}, 0: {88, 92, 93, 97, 100}}},
		{vitals.Systolic, true, map[int][]float64{3: {60, 90, 220, 300}, 2: {91, 100}, 1: {101, 110}, 0: {111, 219}}},
		{vitals.Pulse, true, map[int][]float64{3: {30, 40, 131, 250}, 2: {111, 130}, 1: {41, 50, 91, 110}, 0: {51, 90}}},
		{vitals.TemperatureC, true, map[int][]float64{3: {25, 35, 35.04}, 1: {35.05, 35.1, 36, 38.05, 38.1, 39}, 0: {36.1, 38, 38.04}, 2: {39.1, 42}}},
	} {
		for want, values := range row.points {
			for _, value := range values {
				if got := pointsOf(t, alerts.EarlyWarningRules{Scale2: row.scale2}, row.of, value); got != want {
					t.Errorf("%s %v, scale 2 %t: %d points, want %d", row.of.Name, value, row.scale2, got, want)
				}
			}
		}
	}
}

// A run ends with fresh values of all its parts, at least as reliable; values that grow old end nothing.
func TestEarlyWarningRun(t *testing.T) {
	const minute = time.Minute
	ill := []alerts.ScoredValue{scored(vitals.SpO2, 93, 50*minute), scored(vitals.Systolic, 95, 49*minute), scored(vitals.Pulse, 100, 49*minute)}
	typed := func(v alerts.ScoredValue) alerts.ScoredValue { v.Typed = true; return v }
	for name, test := range map[string]struct {
		then  []alerts.ScoredValue
		lasts bool
	}{
		"nothing more":            {nil, true},
		"one part is better":      {[]alerts.ScoredValue{scored(vitals.SpO2, 97, 20*minute)}, false},
		"the last part, the rest": {[]alerts.ScoredValue{scored(vitals.TemperatureC, 37, 20*minute)}, true},
		"better as typed":         {[]alerts.ScoredValue{typed(scored(vitals.SpO2, 97, 20*minute))}, true},
	} {
		if _, lasts := (alerts.EarlyWarningRules{}).Run(append(slices.Clone(ill), test.then...), scoredAt); lasts != test.lasts {
			t.Errorf("%s: lasts %t", name, lasts)
		}
	}
	old := []alerts.ScoredValue{scored(vitals.SpO2, 93, 150*minute), scored(vitals.Systolic, 95, 149*minute), scored(vitals.Pulse, 100, 149*minute)}
	run, lasts := (alerts.EarlyWarningRules{}).Run(append(old, scored(vitals.SpO2, 98, 0)), scoredAt)
	if !lasts || run.Worst.Level != "" {
		t.Errorf("only the saturation is fresh: lasts %t, worst %+v", lasts, run.Worst)
	}
}

// The result depends on the times of measurement only.
func TestEarlyWarningOfAnyHistory(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 1))
	ranges := map[*vitals.Parameter][2]float64{vitals.SpO2: {80, 99}, vitals.Systolic: {70, 230}, vitals.Pulse: {35, 140}, vitals.TemperatureC: {34, 40}}
	for range 500 {
		var history []alerts.ScoredValue
		for ago := 20 * time.Hour; ago > 0; ago -= time.Duration(1+random.IntN(90)) * time.Minute {
			p := alerts.EarlyWarningParameters[random.IntN(4)]
			history = append(history, scored(p, ranges[p][0]+random.Float64()*(ranges[p][1]-ranges[p][0]), ago))
		}
		run, lasts := (alerts.EarlyWarningRules{}).Run(history, scoredAt)
		if worst := run.Worst; lasts && worst.Level != "" {
			f, bound := worst.Finding(), map[alerts.Level]float64{alerts.Critical: 7, alerts.Warning: 5}
			if (f.Level == alerts.Critical) != (worst.Sum >= 7) || f.Threshold != bound[f.Level] || len(f.Message) > 500 {
				t.Fatalf("%+v", f)
			}
			for _, v := range worst.Values {
				if scoredAt.Sub(v.At) > time.Hour || worst.At.Sub(v.At) > time.Hour {
					t.Fatalf("a value of %s in a score of %s", v.At, worst.At)
				}
			}
			if !(alerts.EarlyWarningRules{}).CallsFor(worst.Level, history, worst.At) {
				t.Fatalf("nobody is called at %s", worst.At)
			}
		}
	}
}
