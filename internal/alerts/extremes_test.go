package alerts_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// The extremes give the same result for every reading as the whole baseline, and are few.
func TestExtremes(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 9))
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	breaches := 0
	for range 50 {
		bounds, err := alerts.ParseBounds(`{"weight":{"change_threshold_kg":2,"critical_change_kg":5.5,"daily_change_kg":3,"change_window_days":3}}`)
		if err != nil {
			t.Fatal(err)
		}
		thresholds := alerts.InForce(alerts.Bounds{}, bounds).In(newYork)
		when := time.Date(2026, time.March, 4, 3, 0, 0, 0, time.UTC) // the clock changes on the eighth
		var readings []vitals.Reading
		var baseline []alerts.BaselineValue
		for range 200 {
			when = when.Add(time.Duration(random.IntN(3)) * 40 * time.Minute)
			value := 80 + float64(random.IntN(600))/100
			readings = append(readings, vitals.Reading{Kind: vitals.Weight, MeasuredAt: when}.With(vitals.WeightKg, value))
			baseline = append(baseline, alerts.BaselineValue{Parameter: vitals.WeightKg, Value: value, MeasuredAt: when})
		}
		random.Shuffle(len(baseline), func(i, j int) { baseline[i], baseline[j] = baseline[j], baseline[i] })
		deciding := alerts.NewExtremes(baseline)
		for _, r := range readings {
			few := deciding.DecidingValues(r, thresholds)
			got, want := alerts.Evaluate(r, thresholds, few), alerts.Evaluate(r, thresholds, baseline)
			if diff := cmp.Diff(want, got); diff != "" || len(few) > 4 {
				t.Fatalf("%s: of %d values: %s", r.MeasuredAt, len(few), diff)
			}
			if len(want) > 0 && want[0].Breached() {
				breaches++
			}
		}
	}
	if breaches < 1000 {
		t.Errorf("only %d of 10,000 readings breach", breaches)
	}
}
