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
	raised := func(alertType string, level alerts.Level, ago time.Duration, normal int) alerts.OpenAlert {
		return alerts.OpenAlert{ID: "a", Type: alertType, Level: level, MeasuredAt: now.Add(-ago), CreatedAt: now.Add(-ago), NormalReadings: normal}
	}
	counts := func(normal int, resolved bool) *alerts.Progress {
		return &alerts.Progress{NormalReadings: normal, Resolved: resolved}
	}
	created := func(a alerts.OpenAlert, ago time.Duration) alerts.OpenAlert { a.CreatedAt = now.Add(-ago); return a }
	normal, high := bloodPressure(120, 80), bloodPressure(150, 80)
	tests := []struct {
		name    string
		alert   alerts.OpenAlert
		reading vitals.Reading
		want    *alerts.Progress // nil: untouched
	}{
		{"one normal reading resolves a warning", raised("blood_pressure", alerts.Warning, hour, 0), normal, counts(1, true)},
		{"one does not resolve a critical alert", raised("blood_pressure", alerts.Critical, hour, 0), normal, counts(1, false)},
		{"two do", raised("blood_pressure", alerts.Critical, hour, 1), normal, counts(2, true)},
		{"a breach breaks the run", raised("blood_pressure", alerts.Critical, hour, 1), high, counts(0, false)},
		{"a breach without a run changes nothing", raised("blood_pressure", alerts.Critical, hour, 0), high, nil},
		{"a reading of another parameter changes nothing", raised("pulse", alerts.Warning, hour, 0), normal, nil},
		{"pulse in the same reading does", raised("pulse", alerts.Warning, hour, 0), withPulse(normal, 70), counts(1, true)},
		{"pulse of another device does", raised("pulse", alerts.Warning, hour, 0), withPulse(oximetry(97), 70), counts(1, true)},
		{"a reading of another kind does not", raised("blood_pressure", alerts.Warning, hour, 0), oximetry(97), nil},
		{"a reading of the same moment does not", raised("blood_pressure", alerts.Warning, 0, 0), normal, nil},
		{"an earlier-measured one does not", raised("blood_pressure", alerts.Warning, -hour, 0), normal, nil},
		{"an alert 24 hours old still", raised("blood_pressure", alerts.Warning, 24*hour, 0), normal, counts(1, true)},
		{"an older one waits for a person", raised("blood_pressure", alerts.Warning, 24*hour+1, 0), normal, nil},
		{"age goes by storing, not by measuring", created(raised("blood_pressure", alerts.Warning, 72*hour, 0), hour), normal, counts(1, true)},
		{"weight without a baseline changes nothing", raised("weight", alerts.Warning, hour, 0), weight(80), nil},
		{"battery alerts are not about readings", raised("device_battery", alerts.Critical, hour, 0), normal, nil},
		{"a missed reading is over when data comes", raised("missed_reading", alerts.NoData, hour, 0), weight(80), counts(0, true)},
		{"however late", raised("missed_reading", alerts.NoData, 90*24*hour, 0), normal, counts(0, true)},
		{"a silent device that speaks", alerts.OpenAlert{ID: "a", Type: "no_reading_24h", DeviceID: "D1"}, from("D1", normal), counts(0, true)},
		{"is not another device", alerts.OpenAlert{ID: "a", Type: "no_reading_24h", DeviceID: "D1"}, from("D2", normal), nil},
	}
	needed := alerts.NormalReadingsRequired{Warning: 1, Critical: 2}
	thresholds := alerts.InForce(defaults, nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var want []alerts.Progress
			if test.want != nil {
				test.want.Alert = test.alert
				want = []alerts.Progress{*test.want}
			}
			r := alerts.EvaluatedReading{
				MeasuredAt: test.reading.MeasuredAt, DeviceID: test.reading.DeviceID, Findings: alerts.Evaluate(test.reading, thresholds, nil),
			}
			if diff := cmp.Diff(want, alerts.AutoResolve([]alerts.OpenAlert{test.alert}, r, nil, now, needed)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A typed reading resolves only an alert raised by a typed reading; any breach resets the count.
func TestResolvingByOrigin(t *testing.T) {
	thresholds, normal, high := alerts.InForce(defaults, nil), bloodPressure(120, 80), bloodPressure(150, 80)
	for _, raised := range append(vitals.Origins, "") {
		for _, origin := range vitals.Origins {
			alert := alerts.OpenAlert{
				ID: "a", Type: "blood_pressure", Level: alerts.Critical, MeasuredAt: now.Add(-time.Hour), CreatedAt: now.Add(-time.Hour), NormalReadings: 1,
				Origin: vitals.Origin(raised),
			}
			settle := func(r vitals.Reading) []alerts.Progress {
				return alerts.AutoResolve([]alerts.OpenAlert{alert}, alerts.EvaluatedReading{
					MeasuredAt: r.MeasuredAt, Origin: vitals.Origin(origin), Findings: alerts.Evaluate(r, thresholds, nil),
				}, nil, now, alerts.NormalReadingsRequired{Warning: 1, Critical: 2})
			}
			want := 1
			if origin == "patient" && raised != "patient" {
				want = 0
			}
			if got := settle(normal); len(got) != want || want == 1 && !got[0].Resolved {
				t.Errorf("%q after %q: %+v", origin, raised, got)
			}
			if got := settle(high); len(got) != 1 || got[0].NormalReadings != 0 {
				t.Errorf("a breach from %q after %q: %+v", origin, raised, got)
			}
		}
	}
	silent := alerts.OpenAlert{ID: "a", Type: alerts.TypeNoReading24h, DeviceID: "D1"}
	for origin, want := range map[vitals.Origin]int{vitals.OriginDevice: 1, vitals.OriginPatient: 0} {
		r := alerts.EvaluatedReading{MeasuredAt: now, DeviceID: "D1", Origin: origin}
		if got := alerts.AutoResolve([]alerts.OpenAlert{silent}, r, nil, now, alerts.NormalReadingsRequired{}); len(got) != want {
			t.Errorf("a silent device and a reading by %s: %+v", origin, got)
		}
	}
}

// Normal readings are counted in order of measurement, in any order of arrival.
func TestResolvedBy(t *testing.T) {
	at := func(minutes int, origin vitals.Origin, level alerts.Level) alerts.EvaluatedReading {
		return alerts.EvaluatedReading{
			MeasuredAt: now.Add(time.Duration(minutes) * time.Minute), Origin: origin, Findings: []alerts.Finding{{Type: "blood_pressure", Level: level}},
		}
	}
	alert := alerts.OpenAlert{Type: "blood_pressure", Level: alerts.Critical, MeasuredAt: now, Origin: vitals.OriginDevice}
	for _, test := range []struct {
		name     string
		sequence []alerts.EvaluatedReading
		normal   int
		settled  bool
	}{
		{"nothing", nil, 0, false},
		{"before the alert, and at its moment", []alerts.EvaluatedReading{at(-1, "device", ""), at(0, "device", "")}, 0, false},
		{"one", []alerts.EvaluatedReading{at(1, "device", "")}, 1, false},
		{"two", []alerts.EvaluatedReading{at(1, "device", ""), at(2, "staff", "")}, 2, true},
		{"with a breach between", []alerts.EvaluatedReading{at(1, "device", ""), at(2, "device", alerts.Warning), at(3, "device", "")}, 1, false},
		{"enough before a breach", []alerts.EvaluatedReading{at(1, "device", ""), at(2, "import", ""), at(3, "device", alerts.Critical)}, 2, true},
		{"a patient's words between", []alerts.EvaluatedReading{at(1, "device", ""), at(2, "patient", ""), at(3, "machine", "")}, 2, true},
		{"a patient's words alone", []alerts.EvaluatedReading{at(1, "patient", ""), at(2, "patient", "")}, 0, false},
		{"a breach that a patient typed", []alerts.EvaluatedReading{at(1, "device", ""), at(2, "patient", alerts.Warning), at(3, "device", "")}, 1, false},
	} {
		if normal, resolved := alert.ResolvedBy(test.sequence, alerts.NormalReadingsRequired{Warning: 1, Critical: 2}); normal != test.normal || resolved != test.settled {
			t.Errorf("%s: %d %t", test.name, normal, resolved)
		}
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
