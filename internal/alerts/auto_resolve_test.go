package alerts_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

func TestAutoResolve(t *testing.T) {
	const hour = time.Hour
	raised := func(alertType string, level alerts.Level, ago time.Duration, normal int) alerts.Open {
		return alerts.Open{ID: "a", Type: alertType, Level: level, MeasuredAt: now.Add(-ago), CreatedAt: now.Add(-ago), NormalReadings: normal}
	}
	counts := func(normal int, resolved bool) *alerts.Progress {
		return &alerts.Progress{NormalReadings: normal, Resolved: resolved}
	}
	created := func(a alerts.Open, ago time.Duration) alerts.Open { a.CreatedAt = now.Add(-ago); return a }
	normal, high := bloodPressure(120, 80), bloodPressure(150, 80)
	tests := []struct {
		name    string
		alert   alerts.Open
		reading vitals.Reading
		want    *alerts.Progress // nil: untouched
	}{
		{"one normal reading resolves a warning", raised("blood_pressure", alerts.Warning, hour, 0), normal, counts(1, true)},
		{"one does not resolve a critical alert", raised("blood_pressure", alerts.Critical, hour, 0), normal, counts(1, false)},
		{"two do", raised("blood_pressure", alerts.Critical, hour, 1), normal, counts(2, true)},
		{"a breach breaks the run", raised("blood_pressure", alerts.Critical, hour, 1), high, counts(0, false)},
		{"a breach without a run changes nothing", raised("blood_pressure", alerts.Critical, hour, 0), high, nil},
		{"a reading of another parameter says nothing", raised("pulse", alerts.Warning, hour, 0), normal, nil},
		{"pulse in the same reading does", raised("pulse", alerts.Warning, hour, 0), withPulse(normal, 70), counts(1, true)},
		{"pulse of another device does", raised("pulse", alerts.Warning, hour, 0), withPulse(oximetry(97), 70), counts(1, true)},
		{"a reading of another kind does not", raised("blood_pressure", alerts.Warning, hour, 0), oximetry(97), nil},
		{"a reading of the same moment does not", raised("blood_pressure", alerts.Warning, 0, 0), normal, nil},
		{"an earlier-measured one does not", raised("blood_pressure", alerts.Warning, -hour, 0), normal, nil},
		{"an alert 24 hours old still", raised("blood_pressure", alerts.Warning, 24*hour, 0), normal, counts(1, true)},
		{"an older one waits for a person", raised("blood_pressure", alerts.Warning, 24*hour+1, 0), normal, nil},
		{"age goes by storing, not by measuring", created(raised("blood_pressure", alerts.Warning, 72*hour, 0), hour), normal, counts(1, true)},
		{"weight without comparison says nothing", raised("weight", alerts.Warning, hour, 0), weight(80), nil},
		{"battery alerts are not about readings", raised("device_battery", alerts.Critical, hour, 0), normal, nil},
		{"a missed reading is over when data comes", raised("missed_reading", alerts.NoData, hour, 0), weight(80), counts(0, true)},
		{"however late", raised("missed_reading", alerts.NoData, 90*24*hour, 0), normal, counts(0, true)},
		{"a silent device that speaks", alerts.Open{ID: "a", Type: "no_reading_24h", DeviceID: "D1"}, from("D1", normal), counts(0, true)},
		{"is not another device", alerts.Open{ID: "a", Type: "no_reading_24h", DeviceID: "D1"}, from("D2", normal), nil},
	}
	needed := alerts.NormalReadingsNeeded{Warning: 1, Critical: 2}
	thresholds := alerts.InForce(defaults, nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var want []alerts.Progress
			if test.want != nil {
				test.want.Alert = test.alert
				want = []alerts.Progress{*test.want}
			}
			findings := alerts.Evaluate(test.reading, thresholds, nil, now)
			if diff := cmp.Diff(want, alerts.AutoResolve([]alerts.Open{test.alert}, test.reading, findings, now, needed)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func from(device string, r vitals.Reading) vitals.Reading {
	r.DeviceID = device
	return r
}

func TestFromReading(t *testing.T) {
	for alertType, want := range map[string]bool{
		"blood_pressure": true, "pulse": true, "weight": true, "pulse_oximetry": true,
		"blood_glucose": true, "device_info": false, "missed_reading": false, "device_battery": false, "": false,
	} {
		if got := alerts.FromReading(alertType); got != want {
			t.Errorf("%q: %t", alertType, got)
		}
	}
}
