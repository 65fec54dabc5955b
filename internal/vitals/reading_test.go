package vitals

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

func TestKinds(t *testing.T) {
	for _, kind := range Kinds {
		if !kind.Valid() {
			t.Errorf("%s is not valid", kind)
		}
	}
	for _, kind := range []Kind{"", "temperature", "Weight"} {
		if kind.Valid() {
			t.Errorf("%q is valid", kind)
		}
	}
}

func pressure(systolic, diastolic float64) Reading {
	return Reading{Kind: BloodPressure}.With(Systolic, systolic).With(Diastolic, diastolic)
}

func TestSameValues(t *testing.T) {
	base := pressure(128, 82)
	same := pressure(128, 82)
	same.MeasuredAt, same.DeviceID = time.Unix(1, 0), "DEV-1"
	same.OriginalValue, same.OriginalUnit = new(17.1), "kPa"
	if !base.SameValues(same) {
		t.Error("time, device and original unit are no values")
	}
	others := map[string]Reading{
		"systolic": pressure(129, 82),
		"kind":     Reading{Kind: Weight}.With(WeightKg, 128),
		"empty":    {Kind: BloodPressure},
	}
	withPulse, withFlag, withMeal, withComparator := base, base, base, base
	withPulse = withPulse.With(Pulse, 71)
	withFlag.SetQualifier(IrregularHeartbeat, No)
	withMeal.SetQualifier(MealContext, MealFasting)
	withComparator.SetQualifier(Comparator, ComparatorAbove)
	others["pulse"], others["flag"], others["meal"], others["comparator"] = withPulse, withFlag, withMeal, withComparator
	for name, other := range others {
		if base.SameValues(other) {
			t.Errorf("%s: %s equals %s", name, base.ValuesKey(), other.ValuesKey())
		}
	}
}

func TestValuesKey(t *testing.T) {
	full := pressure(128, 82.5).With(Pulse, 71).WithQualifier(IrregularHeartbeat, Yes)
	if got, want := full.ValuesKey(), "blood_pressure systolic=128 diastolic=82.5 pulse=71 irregular_heartbeat=true"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	glucose := Reading{Kind: BloodGlucose}.With(GlucoseMgDL, 600.0).WithQualifier(Comparator, ">").WithQualifier(MealContext, MealAfter)
	if got, want := glucose.ValuesKey(), "blood_glucose glucose_mg_dl=600 meal_context=after_meal comparator=>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReadingDoesNotPrint(t *testing.T) {
	reading := pressure(128, 82)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("stored", "reading", reading)
	_, logged, _ := strings.Cut(log.String(), "level") // the digits of the time before it may equal the reading's
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", reading, reading, reading, &reading), logged} {
		if strings.Contains(text, "128") || strings.Contains(text, "0x") || !strings.Contains(text, "[reading]") {
			t.Errorf("printed %s", text)
		}
	}
}

// errorText returns the names of the rejected fields.
func errorText(c *validate.Checks) string {
	return strings.Join(slices.Sorted(maps.Keys(c.Fields)), " ")
}

func TestCheckReading(t *testing.T) {
	low := pressure(80, 80)
	for _, tc := range []struct {
		name    string
		reading Reading
		want    string
	}{
		{"pressure", pressure(128, 82), ""},
		{"weight", Reading{Kind: Weight}.With(WeightKg, 500.0), ""},
		{"oximetry", Reading{Kind: PulseOximetry}.With(SpO2, 97.0).With(Pulse, 60.0).With(PerfusionIndex, 0.0), ""},
		{"glucose", Reading{Kind: BloodGlucose}.With(GlucoseMgDL, 20.0).WithQualifier(Comparator, "<").WithQualifier(MealContext, MealRandom), ""},
		{"no kind", Reading{}, "observation_type"},
		{"nothing measured", Reading{Kind: BloodPressure}, "diastolic systolic"},
		{"not lower", low, "diastolic"},
		{"out of range", pressure(301, 29), "diastolic systolic"},
		{"not a number", Reading{Kind: Weight}.With(WeightKg, math.NaN()), "weight_kg"},
		{
			"foreign values",
			Reading{Kind: Weight}.With(WeightKg, 80.0).With(Pulse, 60.0).WithQualifier(IrregularHeartbeat, Yes).WithQualifier(MealContext, MealFasting).WithQualifier(Comparator, "<"),
			"comparator irregular_heartbeat meal_context pulse",
		},
		{"foreign words", Reading{Kind: BloodGlucose}.With(GlucoseMgDL, 90.0).WithQualifier(MealContext, "pre_meal").WithQualifier(Comparator, "="), "comparator meal_context"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := validate.NewChecks()
			tc.reading.Check(c)
			if got := errorText(c); got != tc.want {
				t.Errorf("complained about %q, want %q", got, tc.want)
			}
			var invalid *fault.Error
			if err := c.Err(); tc.want != "" && (!errors.As(err, &invalid) || invalid.Kind != fault.Invalid) {
				t.Errorf("got %v, want a validation fault", err)
			}
		})
	}
}
