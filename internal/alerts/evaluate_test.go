package alerts_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var now = time.Date(2026, time.January, 15, 13, 45, 0, 0, time.UTC)

func bloodPressure(systolic, diastolic float64) vitals.Reading {
	return vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: now}.With(vitals.Systolic, systolic).With(vitals.Diastolic, diastolic)
}

func withPulse(r vitals.Reading, pulse float64) vitals.Reading {
	return r.With(vitals.Pulse, pulse)
}

func oximetry(spo2 float64) vitals.Reading {
	return vitals.Reading{Kind: vitals.PulseOximetry, MeasuredAt: now}.With(vitals.SpO2, spo2)
}

func bloodGlucose(mgDL float64) vitals.Reading {
	return vitals.Reading{Kind: vitals.BloodGlucose, MeasuredAt: now}.With(vitals.GlucoseMgDL, mgDL)
}

func weight(kg float64) vitals.Reading {
	return vitals.Reading{Kind: vitals.Weight, MeasuredAt: now}.With(vitals.WeightKg, kg)
}

func well(alertType string) alerts.Finding { return alerts.Finding{Type: alertType} }

func breach(alertType string, level alerts.Level, parameter string, value, threshold float64, message string) alerts.Finding {
	return alerts.Finding{Type: alertType, Level: level, Parameter: parameter, Value: value, Threshold: threshold, Message: message}
}

// Every bound is inclusive: a value at the bound breaches it, the next one inside does not.
func TestEvaluateBounds(t *testing.T) {
	const bp, beat, ox, glu = "blood_pressure", "pulse", "pulse_oximetry", "blood_glucose"
	normal := bloodPressure(120, 80)
	tests := []struct {
		name    string
		reading vitals.Reading
		want    []alerts.Finding
	}{
		{"all is well", withPulse(normal, 70), []alerts.Finding{well(bp), well(beat)}},
		{"no finding for a pulse not measured", normal, []alerts.Finding{well(bp)}},

		{"systolic under the warning", bloodPressure(139.99, 80), []alerts.Finding{well(bp)}},
		{"systolic at the warning", bloodPressure(140, 80), []alerts.Finding{
			breach(bp, alerts.Warning, "systolic", 140, 140, "Systolic 140 mmHg is at or above the warning limit 140."),
		}},
		{"systolic under the critical", bloodPressure(179.99, 80), []alerts.Finding{
			breach(bp, alerts.Warning, "systolic", 179.99, 140, "Systolic 179.99 mmHg is at or above the warning limit 140."),
		}},
		{"systolic at the critical", bloodPressure(180, 80), []alerts.Finding{
			breach(bp, alerts.Critical, "systolic", 180, 180, "Systolic 180 mmHg is at or above the critical limit 180."),
		}},
		{"systolic at the lower warning", bloodPressure(90, 61), []alerts.Finding{
			breach(bp, alerts.Warning, "systolic", 90, 90, "Systolic 90 mmHg is at or below the warning limit 90."),
		}},
		{"systolic over the lower warning", bloodPressure(90.01, 61), []alerts.Finding{well(bp)}},
		{"systolic at the lower critical", bloodPressure(80, 61), []alerts.Finding{
			breach(bp, alerts.Critical, "systolic", 80, 80, "Systolic 80 mmHg is at or below the critical limit 80."),
		}},

		{"diastolic at the warning", bloodPressure(120, 90), []alerts.Finding{
			breach(bp, alerts.Warning, "diastolic", 90, 90, "Diastolic 90 mmHg is at or above the warning limit 90."),
		}},
		{"diastolic at the critical", bloodPressure(130, 120), []alerts.Finding{
			breach(bp, alerts.Critical, "diastolic", 120, 120, "Diastolic 120 mmHg is at or above the critical limit 120."),
		}},
		{"diastolic at the lower warning", bloodPressure(120, 60), []alerts.Finding{
			breach(bp, alerts.Warning, "diastolic", 60, 60, "Diastolic 60 mmHg is at or below the warning limit 60."),
		}},
		{"diastolic at the lower critical", bloodPressure(120, 40), []alerts.Finding{
			breach(bp, alerts.Critical, "diastolic", 40, 40, "Diastolic 40 mmHg is at or below the critical limit 40."),
		}},

		{"pulse at the warning", withPulse(normal, 110), []alerts.Finding{
			well(bp),
			breach(beat, alerts.Warning, "pulse", 110, 110, "Pulse 110 bpm is at or above the warning limit 110."),
		}},
		{"pulse at the critical", withPulse(normal, 130), []alerts.Finding{
			well(bp),
			breach(beat, alerts.Critical, "pulse", 130, 130, "Pulse 130 bpm is at or above the critical limit 130."),
		}},
		{"pulse at the lower warning", withPulse(oximetry(97), 50), []alerts.Finding{
			well(ox),
			breach(beat, alerts.Warning, "pulse", 50, 50, "Pulse 50 bpm is at or below the warning limit 50."),
		}},
		{"pulse at the lower critical", withPulse(oximetry(97), 40), []alerts.Finding{
			well(ox),
			breach(beat, alerts.Critical, "pulse", 40, 40, "Pulse 40 bpm is at or below the critical limit 40."),
		}},

		{"saturation over the warning", oximetry(92.1), []alerts.Finding{well(ox)}},
		{"saturation at the warning", oximetry(92), []alerts.Finding{
			breach(ox, alerts.Warning, "spo2", 92, 92, "SpO2 92 % is at or below the warning limit 92."),
		}},
		{"saturation at the critical", oximetry(88), []alerts.Finding{
			breach(ox, alerts.Critical, "spo2", 88, 88, "SpO2 88 % is at or below the critical limit 88."),
		}},
		{"saturation has no upper bound", oximetry(100), []alerts.Finding{well(ox)}},

		{"glucose at the warning", bloodGlucose(250), []alerts.Finding{
			breach(glu, alerts.Warning, "glucose", 250, 250, "Glucose 250 mg/dL is at or above the warning limit 250."),
		}},
		{"glucose at the critical", bloodGlucose(300), []alerts.Finding{
			breach(glu, alerts.Critical, "glucose", 300, 300, "Glucose 300 mg/dL is at or above the critical limit 300."),
		}},
		{"glucose at the lower warning", bloodGlucose(70), []alerts.Finding{
			breach(glu, alerts.Warning, "glucose", 70, 70, "Glucose 70 mg/dL is at or below the warning limit 70."),
		}},
		{"glucose at the lower critical", bloodGlucose(54), []alerts.Finding{
			breach(glu, alerts.Critical, "glucose", 54, 54, "Glucose 54 mg/dL is at or below the critical limit 54."),
		}},

		{"both parameters, systolic when equal", bloodPressure(185, 125), []alerts.Finding{
			breach(bp, alerts.Critical, "systolic", 185, 180,
				"Systolic 185 mmHg is at or above the critical limit 180. Diastolic 125 mmHg is at or above the critical limit 120."),
		}},
		{"both parameters, the worse one first in value", bloodPressure(150, 125), []alerts.Finding{
			breach(bp, alerts.Critical, "diastolic", 125, 120,
				"Systolic 150 mmHg is at or above the warning limit 140. Diastolic 125 mmHg is at or above the critical limit 120."),
		}},
		{"pressure and pulse are two alerts", withPulse(bloodPressure(185, 80), 115), []alerts.Finding{
			breach(bp, alerts.Critical, "systolic", 185, 180, "Systolic 185 mmHg is at or above the critical limit 180."),
			breach(beat, alerts.Warning, "pulse", 115, 110, "Pulse 115 bpm is at or above the warning limit 110."),
		}},
	}
	thresholds := alerts.InForce(defaults, nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, alerts.Evaluate(test.reading, thresholds, nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEvaluateWithoutBounds(t *testing.T) {
	off := alerts.InForce(defaults, parse(`{"blood_pressure":null,"pulse":null,"pulse_oximetry":null,"blood_glucose":null,"weight":null}`))
	for _, r := range []vitals.Reading{withPulse(bloodPressure(300, 200), 250), oximetry(50), bloodGlucose(600), weight(500)} {
		for _, finding := range alerts.Evaluate(r, off, []alerts.BaselineValue{{Parameter: vitals.WeightKg, Value: 20, MeasuredAt: now.Add(-time.Hour)}}) {
			if finding.Breached() {
				t.Errorf("%s: %s", r.Kind, finding.Type)
			}
		}
	}
}

func TestWeightRule(t *testing.T) {
	const window = 7 * 24 * time.Hour
	at := func(ago time.Duration, kg float64) alerts.BaselineValue {
		return alerts.BaselineValue{Parameter: vitals.WeightKg, Value: kg, MeasuredAt: now.Add(-ago)}
	}
	gain := func(level alerts.Level, change, threshold float64, message string) alerts.Finding {
		return breach("weight", level, "weight_change", change, threshold, message)
	}
	calm := alerts.Finding{Type: "weight", Parameter: "weight"}
	tests := []struct {
		name    string
		kg      float64
		earlier []alerts.BaselineValue
		want    alerts.Finding
		nothing bool
		withOwn string
	}{
		{name: "no earlier weight", kg: 80, nothing: true},
		{name: "only one on the day before the window", kg: 90, earlier: []alerts.BaselineValue{at(window+13*time.Hour+45*time.Minute+time.Microsecond, 80)}, nothing: true},
		{name: "only one at the same moment", kg: 90, earlier: []alerts.BaselineValue{at(0, 80)}, nothing: true},
		{name: "only a later one", kg: 90, earlier: []alerts.BaselineValue{at(-time.Hour, 80)}, nothing: true},
		{name: "small change", kg: 82.29, earlier: []alerts.BaselineValue{at(time.Hour, 80)}, want: calm},
		{
			name: "gain at the bound, which binary fractions would miss", kg: 82.3, earlier: []alerts.BaselineValue{at(window, 80)},
			want: gain(alerts.Warning, 2.3, 2.3, "Weight gain of 2.3 kg within 7 days is at or above the warning limit 2.3 kg."),
		},
		{
			name: "gain under twice the change", kg: 84.59, earlier: []alerts.BaselineValue{at(time.Hour, 80)},
			want: gain(alerts.Warning, 4.59, 2.3, "Weight gain of 4.59 kg within 7 days is at or above the warning limit 2.3 kg."),
		},
		{
			name: "critical at twice the change", kg: 84.6, earlier: []alerts.BaselineValue{at(time.Hour, 80)},
			want: gain(alerts.Critical, 4.6, 4.6, "Weight gain of 4.6 kg within 7 days is at or above the critical limit 4.6 kg."),
		},
		{
			name: "critical doubles the patient's own change", kg: 83, earlier: []alerts.BaselineValue{at(time.Hour, 80)},
			withOwn: `{"weight":{"change_threshold_kg":1.5}}`,
			want:    gain(alerts.Critical, 3, 3, "Weight gain of 3 kg within 7 days is at or above the critical limit 3 kg."),
		},
		{
			name: "against the lowest", kg: 83, earlier: []alerts.BaselineValue{at(time.Hour, 82.9), at(2*time.Hour, 80), at(3*time.Hour, 82)},
			want: gain(alerts.Warning, 3, 2.3, "Weight gain of 3 kg within 7 days is at or above the warning limit 2.3 kg."),
		},
		{
			name: "loss at the bound, from the highest", kg: 77.7, earlier: []alerts.BaselineValue{at(time.Hour, 78), at(2*time.Hour, 80)},
			want: gain(alerts.Warning, -2.3, 2.3, "Weight loss of 2.3 kg within 7 days is at or above the warning limit 2.3 kg."),
		},
		{
			name: "loss is never critical", kg: 60, earlier: []alerts.BaselineValue{at(time.Hour, 80)},
			want: gain(alerts.Warning, -20, 2.3, "Weight loss of 20 kg within 7 days is at or above the warning limit 2.3 kg."),
		},
		{
			name: "gain goes before loss", kg: 85, earlier: []alerts.BaselineValue{at(time.Hour, 80), at(2*time.Hour, 90)},
			want: gain(alerts.Critical, 5, 4.6, "Weight gain of 5 kg within 7 days is at or above the critical limit 4.6 kg."),
		},
		{name: "own window", kg: 83, earlier: []alerts.BaselineValue{at(4*24*time.Hour, 80)}, withOwn: `{"weight":{"change_window_days":3}}`, nothing: true},
		{
			name: "critical removed", kg: 90, earlier: []alerts.BaselineValue{at(time.Hour, 80)}, withOwn: `{"weight":{"critical_change_kg":null}}`,
			want: gain(alerts.Warning, 10, 2.3, "Weight gain of 10 kg within 7 days is at or above the warning limit 2.3 kg."),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var want []alerts.Finding
			if !test.nothing {
				want = []alerts.Finding{test.want}
			}
			got := alerts.Evaluate(weight(test.kg), alerts.InForce(defaults, parse(test.withOwn)), test.earlier)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func BenchmarkEvaluate(b *testing.B) {
	thresholds, r := alerts.InForce(defaults, nil), withPulse(bloodPressure(185, 95), 115)
	b.ReportAllocs()
	for b.Loop() {
		alerts.Evaluate(r, thresholds, nil)
	}
}
