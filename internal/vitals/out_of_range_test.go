package vitals_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Only a measurement without errors except its ranges is read, with all its values.
func TestReadOutOfRange(t *testing.T) {
	for _, test := range []struct {
		kind    vitals.Kind
		body    string
		outside []*vitals.Parameter
		value   float64 // of the first of them
	}{
		{vitals.BloodPressure, `{"systolic":104,"diastolic":58,"pulse":28}`, []*vitals.Parameter{vitals.Pulse}, 28},
		{vitals.BloodPressure, `{"systolic":55,"diastolic":20,"pulse":300}`, []*vitals.Parameter{vitals.Systolic, vitals.Diastolic, vitals.Pulse}, 55},
		{vitals.BloodPressure, `{"systolic":300.004,"diastolic":90}`, []*vitals.Parameter{vitals.Systolic}, 300},
		{vitals.BloodPressure, `{"systolic":-5,"diastolic":90}`, []*vitals.Parameter{vitals.Systolic}, -5},
		{vitals.Weight, `{"weight_lbs":1200}`, []*vitals.Parameter{vitals.WeightKg}, 544.31},
		{vitals.BloodGlucose, `{"glucose_mmol_l":33.31}`, []*vitals.Parameter{vitals.GlucoseMgDL}, 600},
		{vitals.BloodPressure, `{"systolic":104,"diastolic":58,"pulse":60}`, nil, 0},
		{vitals.BloodPressure, `{"systolic":104,"diastolic":120}`, nil, 0}, // contradictory, and in range
		{vitals.BloodPressure, `{"systolic":104,"pulse":28}`, nil, 0},
		{vitals.BloodPressure, `{"systolic":"104","diastolic":58,"pulse":28}`, nil, 0},
		{vitals.BloodPressure, `{"systolic":1e9,"diastolic":58}`, nil, 0},
		{vitals.BloodGlucose, `{"glucose_mg_dl":650,"glucose_mmol_l":36}`, nil, 0},
	} {
		var body vitals.Body
		if err := json.Unmarshal([]byte(test.body), &body); err != nil {
			t.Fatal(err)
		}
		r, outside, ok := test.kind.Definition().ReadOutOfRange(body)
		if ok != (test.outside != nil) || ok && (!slices.Equal(outside, test.outside) || *r.Value(outside[0]) != test.value) {
			t.Errorf("%s: %t %v", test.body, ok, outside)
		}
		if again, same := r.OutOfRange(); ok && test.value != 300 && test.value != 600 && (!same || !slices.Equal(again, outside)) {
			t.Errorf("%s as a record: %v", test.body, again)
		}
	}
}
