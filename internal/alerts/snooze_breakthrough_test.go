package alerts_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// found returns the finding of a reading for an alert type.
func found(t *testing.T, r vitals.Reading, in alerts.Thresholds, baseline []alerts.BaselineValue, alertType string) alerts.Finding {
	t.Helper()
	for _, f := range alerts.Evaluate(r, in, baseline) {
		if f.Type == alertType {
			return f
		}
	}
	t.Fatalf("no finding for %s", alertType)
	return alerts.Finding{}
}

func snoozeOf(alertType string, known ...alerts.WorstValue) []alerts.Snooze {
	return []alerts.Snooze{{Type: alertType, IncludeCritical: true, EndsAt: now.Add(time.Hour), Baseline: known}}
}

// A tenth of the way to the end of the range, for every kind; the range of a change ends at three times the critical one.
func TestBreakthroughByKind(t *testing.T) {
	in := alerts.InForce(defaults, nil)
	earlier := []alerts.BaselineValue{{Parameter: vitals.WeightKg, Value: 80, MeasuredAt: now.Add(-24 * time.Hour)}}
	for name, test := range map[string]struct {
		kind          string
		known         alerts.WorstValue
		quiet, breaks vitals.Reading
		far           vitals.Reading
	}{
		"pulse": {
			"pulse",
			alerts.WorstValue{Parameter: "pulse", High: true, Value: 135},
			withPulse(bloodPressure(120, 80), 146), withPulse(bloodPressure(120, 80), 147),
			withPulse(bloodPressure(120, 80), 40),
		},
		"SpO2":              {"pulse_oximetry", alerts.WorstValue{Parameter: "spo2", Value: 86}, oximetry(82.3), oximetry(82.2), oximetry(60)},
		"glucose, high":     {"blood_glucose", alerts.WorstValue{Parameter: "glucose", High: true, Value: 320}, bloodGlucose(349), bloodGlucose(350), bloodGlucose(54)},
		"glucose, low":      {"blood_glucose", alerts.WorstValue{Parameter: "glucose", Value: 50}, bloodGlucose(46.7), bloodGlucose(46.6), bloodGlucose(300)},
		"weight, by a gain": {"weight", alerts.WorstValue{Parameter: "weight_change", High: true, Value: 5}, weight(85.91), weight(85.92), weight(95)},
	} {
		for what, c := range map[string]struct {
			reading vitals.Reading
			breaks  bool
		}{"quiet": {test.quiet, false}, "breaks": {test.breaks, true}, "far": {test.far, true}} {
			f := found(t, c.reading, in, earlier, test.kind)
			if f.Level != alerts.Critical {
				t.Fatalf("%s, %s: %s", name, what, f.Level)
			}
			quiet, breaks := alerts.SuppressedBy(snoozeOf(test.kind, test.known), f, c.reading, in, now)
			if breaks != c.breaks || quiet == breaks {
				t.Errorf("%s, %s: quiet %t, breaks %t", name, what, quiet, breaks)
			}
		}
	}
}

// A worse value is never suppressed where a milder one is notified, for any baseline, and nothing breaks through
// without a covering snooze.
func TestWorseIsNeverSuppressedMore(t *testing.T) {
	in, random := alerts.InForce(defaults, nil), rand.New(rand.NewPCG(9, 9))
	notified := 0
	for range 10_000 {
		var known []alerts.WorstValue
		for range random.IntN(3) {
			known = append(known, alerts.WorstValue{
				Parameter: []string{"systolic", "diastolic"}[random.IntN(2)], High: random.IntN(2) == 0, Value: float64(60 + random.IntN(200)),
			})
		}
		better := bloodPressure(float64(60+random.IntN(240)), float64(30+random.IntN(170)))
		worse := better
		change := float64(random.IntN(30))
		if s := *better.Value(vitals.Systolic); s >= 180 {
			worse = worse.With(vitals.Systolic, min(s+change, 300))
		} else if s <= 80 {
			worse = worse.With(vitals.Systolic, max(s-change, 60))
		}
		if d := *better.Value(vitals.Diastolic); d >= 120 {
			worse = worse.With(vitals.Diastolic, min(d+change, 200))
		} else if d <= 40 {
			worse = worse.With(vitals.Diastolic, max(d-change, 30))
		}
		says := func(r vitals.Reading, snoozes []alerts.Snooze) (quiet, breaks bool) {
			return alerts.SuppressedBy(snoozes, found(t, r, in, nil, "blood_pressure"), r, in, now)
		}
		_, breaks := says(better, snoozeOf("blood_pressure", known...))
		if quiet, still := says(worse, snoozeOf("blood_pressure", known...)); breaks && (quiet || !still) {
			t.Fatalf("%s is notified and %s is not, with baseline %v", better.ValuesKey(), worse.ValuesKey(), known)
		}
		if breaks {
			notified++
		}
		if quiet, breaks := says(better, snoozeOf("pulse", known...)); quiet || breaks {
			t.Fatal("another kind's snooze has an effect")
		}
	}
	if notified < 1000 {
		t.Errorf("only %d were notified", notified)
	}
}

// A damaged list has no values.
func TestParseWorstValues(t *testing.T) {
	known := []alerts.WorstValue{{Parameter: "systolic", High: true, Value: 188}}
	raw, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	if got := alerts.ParseWorstValues(string(raw)); len(got) != 1 || got[0] != known[0] {
		t.Errorf("%v", got)
	}
	for _, stored := range []string{"", "null", "[]", "{", `"x"`} {
		if got := alerts.ParseWorstValues(stored); len(got) != 0 {
			t.Errorf("%q: %v", stored, got)
		}
	}
}
