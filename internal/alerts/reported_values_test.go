package alerts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

func TestAlertValues(t *testing.T) {
	type list = []alerts.ReportedValue
	of := func(p *vitals.Parameter, value float64) alerts.ReportedValue {
		return alerts.ReportedValue{Parameter: p, Value: value}
	}
	cuff := vitals.Reading{Kind: vitals.BloodPressure}.With(vitals.Systolic, 181).With(vitals.Diastolic, 160).With(vitals.Pulse, 70)
	read := func(stored string) list {
		reported, err := alerts.ParseReported(stored)
		if err != nil {
			t.Errorf("%s: %v", stored, err)
		}
		return reported
	}
	for name, test := range map[string]struct{ got, want list }{
		"of a cuff":               {alerts.ReadingValues(&cuff, "blood_pressure"), list{of(vitals.Systolic, 181), of(vitals.Diastolic, 160)}},
		"of its pulse":            {alerts.ReadingValues(&cuff, "pulse"), list{of(vitals.Pulse, 70)}},
		"not measured":            {alerts.ReadingValues(&cuff, "blood_glucose"), nil},
		"a change is no value":    {alerts.ReadingValues(new(vitals.Reading{}.With(vitals.WeightKg, 80)), "weight"), nil},
		"nothing stored":          {read(""), nil},
		"stored null":             {read("null"), nil},
		"stored by field":         {read(`{"pulse":28,"diastolic":58,"systolic":104}`), list{of(vitals.Systolic, 104), of(vitals.Diastolic, 58), of(vitals.Pulse, 28)}},
		"stored in another unit":  {read(`{"glucose_mmol_l":40,"temperature_f":68}`), list{of(vitals.GlucoseMgDL, 721), of(vitals.TemperatureC, 20)}},
		"stored next":             {read(`{"weight_kg":700,"meal_context":"fasting","glucose":"LO","note":1}`), nil},
		"of an alert":             {alerts.OpenAlert{Type: "pulse", Parameter: "pulse", Value: 30}.Values(), list{of(vitals.Pulse, 30)}},
		"all of it":               {alerts.OpenAlert{Type: "blood_pressure", Parameter: "systolic", Value: 181, Reported: list{of(vitals.Diastolic, 160)}}.Values(), list{of(vitals.Diastolic, 160)}},
		"of a change by any rule": {alerts.OpenAlert{Type: "weight", Parameter: "weight_change", Value: 5}.Values(), list{of(vitals.WeightKg, 5)}},
		"of no parameter":         {alerts.OpenAlert{Type: "pulse", Value: 30}.Values(), nil},
		"of no reading":           {alerts.OpenAlert{Type: alerts.TypeImplausibleReading, Parameter: "pulse"}.Values(), nil},
		"of a device":             {alerts.OpenAlert{Type: alerts.TypeDeviceBattery, Value: 5}.Values(), nil},
	} {
		if diff := cmp.Diff(test.want, test.got, cmpopts.EquateComparable(&vitals.Parameter{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := alerts.ParseReported(`{`); err == nil {
		t.Error("half a text was read")
	}
}
