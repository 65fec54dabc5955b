package alerts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

func TestSimulation(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	from := now.AddDate(0, 0, -90)
	s := alerts.NewSimulation(from, now, newYork)
	if len(s.Days) != 91 || s.Days[0].Day != "2025-10-17" || s.Days[90].Day != "2026-01-15" {
		t.Fatalf("%d days from %s on", len(s.Days), s.Days[0].Day)
	}
	lenient := alerts.InForce(defaults, parse(`{"blood_pressure":{"systolic_high":160,"systolic_critical":200}}`))
	raised := func(level alerts.Level) []alerts.PastAlert {
		return []alerts.PastAlert{{Type: "blood_pressure", Parameter: "systolic", Level: level}}
	}
	measured := func(systolic float64, at time.Time) vitals.Reading {
		r := bloodPressure(systolic, 80)
		r.MeasuredAt = at
		return r
	}
	late := time.Date(2026, 1, 15, 3, 0, 0, 0, time.UTC)                            // still the 14th in New York
	s.Add("o1", "p", measured(150, now), lenient, nil, raised(alerts.Warning))      // normal now
	s.Add("o2", "p", measured(185, late), lenient, nil, raised(alerts.Critical))    // a warning now: missed
	s.Add("o3", "p", measured(205, now), lenient, nil, raised(alerts.Critical))     // critical still
	s.Add("o4", "p", measured(165, now), lenient, nil, nil)                         // new
	s.Add("o5", "p", measured(300, from.Add(-time.Microsecond)), lenient, nil, nil) // before the span
	off := alerts.InForce(defaults, parse(`{"blood_pressure":null}`))
	s.Add("o6", "p", measured(190, now), off, nil, raised(alerts.Critical)) // no alert

	if s.Readings != 5 || s.Actual != (alerts.Tally{Critical: 3, Warning: 1}) || s.Simulated != (alerts.Tally{Critical: 1, Warning: 2}) {
		t.Errorf("%d readings, actual %+v, simulated %+v", s.Readings, s.Actual, s.Simulated)
	}
	if day := s.Days[89]; day.Actual != (alerts.Tally{Critical: 1}) || day.Simulated != (alerts.Tally{Warning: 1}) {
		t.Errorf("the day before has %+v", day)
	}
	if got := fmt.Sprint(s.MissedCount, s.Missed[0].ObservationID, s.Missed[0].Simulated, s.Missed[1].ObservationID, s.Missed[1].Simulated); got != "2o2warningo6" {
		t.Errorf("missed: %s", got)
	}
	for range 200 {
		s.Add("o7", "p", measured(190, now), off, nil, raised(alerts.Critical))
	}
	if s.MissedCount != 202 || len(s.Missed) != 100 {
		t.Errorf("%d missed, %d named", s.MissedCount, len(s.Missed))
	}
}

// The thresholds in force raise the same alerts again.
func TestSimulationOfUnchangedThresholds(t *testing.T) {
	s := alerts.NewSimulation(now.AddDate(0, 0, -90), now, time.UTC)
	for systolic := 60.0; systolic <= 300; systolic++ {
		r := bloodPressure(systolic, 50)
		r.MeasuredAt = now.Add(-time.Duration(systolic) * time.Hour)
		var raised []alerts.PastAlert
		for _, finding := range alerts.Evaluate(r, alerts.InForce(defaults, nil), nil) {
			if finding.Breached() {
				raised = append(raised, alerts.PastAlert{Type: finding.Type, Level: finding.Level})
			}
		}
		s.Add("o", "p", r, alerts.InForce(defaults, nil), nil, raised)
	}
	if s.Actual != s.Simulated || s.MissedCount != 0 || s.Readings != 241 {
		t.Errorf("%d readings, actual %+v, simulated %+v, %d missed", s.Readings, s.Actual, s.Simulated, s.MissedCount)
	}
	for _, day := range s.Days {
		if day.Actual != day.Simulated {
			t.Errorf("%+v", day)
		}
	}
}
