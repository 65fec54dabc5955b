package alerts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// defaults are the practice's starting values. Source: docs/decisions/alerts.md, "Default thresholds".
var defaults = parse(`{
	"blood_pressure": {"systolic_critical_low": 80, "systolic_low": 90, "systolic_high": 140, "systolic_critical": 180,
		"diastolic_critical_low": 40, "diastolic_low": 60, "diastolic_high": 90, "diastolic_critical": 120},
	"pulse": {"critical_low": 40, "low": 50, "high": 110, "critical": 130},
	"pulse_oximetry": {"critical_low": 88, "low": 92},
	"blood_glucose": {"critical_low": 54, "low": 70, "high": 250, "critical": 300},
	"body_temperature": {"critical_low": 35, "low": 36, "high": 38, "critical": 39.1},
	"weight": {"change_threshold_kg": 2.3, "change_window_days": 7}
}`)

func parse(stored string) alerts.Bounds {
	bounds, err := alerts.ParseBounds(stored)
	if err != nil {
		panic(err)
	}
	return bounds
}

// limits takes bounds in ascending order; 0 is none.
func limits(criticalLow, low, high, critical float64) vitals.Limits {
	optional := func(value float64) *float64 {
		if value == 0 {
			return nil
		}
		return &value
	}
	return vitals.Limits{CriticalLow: optional(criticalLow), Low: optional(low), High: optional(high), Critical: optional(critical)}
}

func TestInForceWithoutOwnBounds(t *testing.T) {
	want := map[*vitals.Parameter]vitals.Limits{
		vitals.Systolic: limits(80, 90, 140, 180), vitals.Diastolic: limits(40, 60, 90, 120), vitals.Pulse: limits(40, 50, 110, 130),
		vitals.SpO2: limits(88, 92, 0, 0), vitals.GlucoseMgDL: limits(54, 70, 250, 300),
		vitals.TemperatureC: limits(35, 36, 38, 39.1),
	}
	rule := alerts.ChangeRule{Change: new(2.3), CriticalChange: new(4.6), WindowDays: 7}
	for name, own := range map[string]alerts.Bounds{"none": nil, "empty": parse(""), "null": parse("null"), "empty group": parse(`{"pulse":{}}`)} {
		got := alerts.InForce(defaults, own)
		for _, p := range vitals.Parameters {
			if diff := cmp.Diff(want[p], got.Limits(p)); diff != "" {
				t.Errorf("%s: %s: %s", name, p.Name, diff)
			}
		}
		if diff := cmp.Diff(rule, got.Change(vitals.WeightKg)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestInForceWithOwnBounds(t *testing.T) {
	tests := []struct {
		name, own string
		got       func(alerts.Thresholds) vitals.Limits
		want      vitals.Limits
	}{
		{"one bound replaced, the rest inherited", `{"blood_pressure":{"systolic_high":135}}`, systolic, limits(80, 90, 135, 180)},
		{"the other parameter of the group stays", `{"blood_pressure":{"systolic_high":135}}`, diastolic, limits(40, 60, 90, 120)},
		{"a null bound is removed", `{"blood_pressure":{"systolic_critical":null}}`, systolic, limits(80, 90, 140, 0)},
		{"a null group is off", `{"blood_pressure":null}`, systolic, vitals.Limits{}},
		{"a null group leaves other groups on", `{"blood_pressure":null}`, pulse, limits(40, 50, 110, 130)},
		// Source: docs/decisions/alerts.md, "Extra threshold fields".
		{"an own low at the inherited critical low gives way", `{"blood_pressure":{"systolic_low":80}}`, systolic, limits(80, 0, 140, 180)},
		{"an own low under the inherited critical low gives way", `{"blood_pressure":{"systolic_low":79}}`, systolic, limits(80, 0, 140, 180)},
		{"an own high at the inherited critical gives way", `{"blood_pressure":{"systolic_high":180}}`, systolic, limits(80, 90, 0, 180)},
		{"an own low over the inherited critical gives way", `{"blood_pressure":{"systolic_low":200}}`, systolic, limits(80, 0, 0, 180)},
		{"an own critical under the inherited high drops it", `{"pulse":{"critical":100}}`, pulse, limits(40, 50, 0, 100)},
		{"an own critical under every inherited bound drops them all", `{"pulse":{"critical":40}}`, pulse, limits(0, 0, 0, 40)},
		{"an own low over the inherited high drops that too", `{"blood_glucose":{"low":260}}`, glucose, limits(54, 260, 0, 300)},
		{"inherited bounds do not compete with each other", `{"pulse":{"low":null}}`, pulse, limits(40, 0, 110, 130)},
		{"own bounds never drop each other", `{"pulse":{"low":90,"high":80}}`, pulse, limits(40, 90, 80, 130)},
		{"an upper bound where the practice has none", `{"pulse_oximetry":{"low":90}}`, spo2, limits(88, 90, 0, 0)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got(alerts.InForce(defaults, parse(test.own)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func systolic(t alerts.Thresholds) vitals.Limits  { return t.Limits(vitals.Systolic) }
func diastolic(t alerts.Thresholds) vitals.Limits { return t.Limits(vitals.Diastolic) }
func pulse(t alerts.Thresholds) vitals.Limits     { return t.Limits(vitals.Pulse) }
func spo2(t alerts.Thresholds) vitals.Limits      { return t.Limits(vitals.SpO2) }
func glucose(t alerts.Thresholds) vitals.Limits   { return t.Limits(vitals.GlucoseMgDL) }

func TestWeightRuleInForce(t *testing.T) {
	rule := func(change, critical float64, days int) alerts.ChangeRule {
		l := limits(change, critical, 0, 0)
		return alerts.ChangeRule{Change: l.CriticalLow, CriticalChange: l.Low, WindowDays: days}
	}
	tests := []struct {
		name, defaults, own string
		want                alerts.ChangeRule
	}{
		{"critical is twice the change in force", ``, `{"weight":{"change_threshold_kg":1.5}}`, rule(1.5, 3, 7)},
		{"own window", ``, `{"weight":{"change_window_days":3}}`, rule(2.3, 4.6, 3)},
		{"own critical", ``, `{"weight":{"critical_change_kg":3}}`, rule(2.3, 3, 7)},
		{"critical removed", ``, `{"weight":{"critical_change_kg":null}}`, rule(2.3, 0, 7)},
		{"change removed: nothing to double", ``, `{"weight":{"change_threshold_kg":null}}`, rule(0, 0, 7)},
		{"change removed, critical kept", ``, `{"weight":{"change_threshold_kg":null,"critical_change_kg":5}}`, rule(0, 5, 7)},
		{"group off", ``, `{"weight":null}`, rule(0, 0, 7)},
		{"inherited critical", `{"weight":{"change_threshold_kg":2,"critical_change_kg":3}}`, `{"weight":{"change_threshold_kg":2.5}}`, rule(2.5, 3, 7)},
		{
			"inherited critical out of order gives way to twice the change", `{"weight":{"change_threshold_kg":2,"critical_change_kg":3}}`,
			`{"weight":{"change_threshold_kg":3}}`, rule(3, 6, 7),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			practice := defaults
			if test.defaults != "" {
				practice = parse(test.defaults)
			}
			if diff := cmp.Diff(test.want, alerts.InForce(practice, parse(test.own)).Change(vitals.WeightKg)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseBoundsRefusesDamage(t *testing.T) {
	for _, stored := range []string{`{`, `[]`, `{"pulse":{"low":"50"}}`} {
		if _, err := alerts.ParseBounds(stored); err == nil {
			t.Errorf("%s was read", stored)
		}
	}
}
