package vitals_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/vitals"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{88}, 88}, {[]float64{88, 62, 90}, 88}, {[]float64{90, 80, 86, 84}, 85}, {[]float64{62, 62, 88, 88, 88, 61, 90}, 88},
	} {
		before := append([]float64{}, test.values...)
		if got := vitals.Median(test.values); got != test.want {
			t.Errorf("of %v it is %v, want %v", before, got, test.want)
		}
		for i := range before {
			if test.values[i] != before[i] {
				t.Errorf("%v became %v", before, test.values)
			}
		}
	}
}

// The larger of both applies and includes its end, in spite of binary fractions.
func TestDistance(t *testing.T) {
	both := vitals.Tolerance{Percent: 10, Amount: 10}
	for _, test := range []struct {
		distance     vitals.Tolerance
		value, usual float64
		want         bool
	}{
		{both, 78, 88, false},
		{both, 77.99, 88, true},
		{both, 98, 88, false},
		{both, 98.01, 88, true},
		{both, 132, 120, false},
		{both, 132.01, 120, true},
		{both, 108, 120, false},
		{both, 107.99, 120, true},
		{both, 88.3 + 10, 88.3, false},
		{both, 70.1, 80.1, false},
		{vitals.Tolerance{Percent: 10}, 79.2, 88, false},
		{vitals.Tolerance{Percent: 10}, 79.19, 88, true},
		{vitals.Tolerance{Amount: 5.5}, 82.5, 88, false},
		{vitals.Tolerance{Amount: 5.5}, 82.49, 88, true},
		{vitals.Tolerance{}, 20, 500, false},
	} {
		if got := test.distance.IsExceeded(test.value, test.usual); got != test.want {
			t.Errorf("%+v: %v is too far from %v: %v", test.distance, test.value, test.usual, got)
		}
	}
}

func TestMistakenUnit(t *testing.T) {
	for _, test := range []struct {
		value, usual, meant float64
		unit                string
	}{
		{176.4, 80, 80.01, "lbs"}, {198.4, 80, 89.99, "lbs"}, {198.5, 80, 90.04, ""}, {154.3, 80, 69.99, ""}, {154.4, 80, 70.03, "lbs"}, {62, 88, 28.12, ""}, {330, 150, 149.69, "lbs"},
	} {
		unit, meant := vitals.WeightKg.MistakenUnit(test.value, test.usual, vitals.Tolerance{Percent: 10, Amount: 10})
		if (unit == nil) != (test.unit == "") || unit != nil && (unit.Name != test.unit || meant != test.meant) {
			t.Errorf("%v, usually %v: %v %v", test.value, test.usual, unit, meant)
		}
	}
}
