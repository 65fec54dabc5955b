package vitals

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestRoundHalfUp(t *testing.T) {
	for _, tc := range []struct {
		value    float64
		decimals int
		want     float64
	}{
		{2.675, 2, 2.68}, // 2.67 in binary arithmetic
		{1.005, 2, 1.01}, // 1 in binary arithmetic
		{128.125, 2, 128.13},
		{71.994999999999, 2, 71.99},
		{99.995, 2, 100},
		{128, 2, 128},
		{128.5, 0, 129},
		{0.5, 0, 1},
		{0.45, 1, 0.5},
		{math.Copysign(0, -1), 2, 0},
		{5e-324, 2, 0},
		{1e308, 2, 1e308},
		{math.Inf(1), 2, math.Inf(1)},
	} {
		if got := RoundHalfUp(tc.value, tc.decimals); got != tc.want || math.Signbit(got) != math.Signbit(tc.want) {
			t.Errorf("RoundHalfUp(%v, %d) = %v, want %v", tc.value, tc.decimals, got, tc.want)
		}
	}
	if got := RoundHalfUp(math.NaN(), 2); !math.IsNaN(got) {
		t.Errorf("NaN became %v", got)
	}
}

// Compares with rounding of whole thousandths in integers.
func TestRoundHalfUpAgainstIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thousandths := rapid.Int64Range(0, 10_000_000).Draw(t, "thousandths")
		want := float64((thousandths+5)/10) / 100
		if got := RoundHalfUp(float64(thousandths)/1000, 2); got != want {
			t.Fatalf("%d thousandths: %v, want %v", thousandths, got, want)
		}
	})
}

func TestConversions(t *testing.T) {
	for _, tc := range []struct {
		name      string
		got, want float64
	}{
		{"5.6 mmol/L", MgDLFromMmolL(5.6), 101},
		{"16.7 mmol/L", MgDLFromMmolL(16.7), 301},
		{"lowest mmol/L", MgDLFromMmolL(GlucoseMgDL.Units[0].Range.Min), GlucoseMgDL.Range.Min},
		{"highest mmol/L", MgDLFromMmolL(GlucoseMgDL.Units[0].Range.Max), GlucoseMgDL.Range.Max},
		{"101 mg/dL", MmolLFromMgDL(101), 5.6},
		{"lowest mg/dL", MmolLFromMgDL(GlucoseMgDL.Range.Min), GlucoseMgDL.Units[0].Range.Min},
		{"highest mg/dL", MmolLFromMgDL(GlucoseMgDL.Range.Max), GlucoseMgDL.Units[0].Range.Max},
		{"98.6 °F", CelsiusFromFahrenheit(98.6), 37},
		{"100.5 °F, 38.0555… °C", CelsiusFromFahrenheit(100.5), 38.06},
		{"38.05 °C, 100.49 °F", FahrenheitFromCelsius(38.05), 100.5},
		{"lowest °F", CelsiusFromFahrenheit(77), TemperatureC.Range.Min},
		{"-40", FahrenheitFromCelsius(-40), -40},
		{"165 lb", KgFromPounds(165), 74.84},
		{"1 lb", KgFromPounds(1), 0.45},
		{"88.5 kg, 195.109 lb", PoundsFromKg(88.5), 195.1},
		{"a loss of 1.6 kg", PoundsFromKg(-1.6), -3.5},
		{"185.4 lb", KgFromPounds(185.4), 84.1},
		{"exactly half, 226796.185 kg", KgFromPounds(500_000), 226_796.19},
		{"too large for a float", MgDLFromMmolL(1e308), math.Inf(1)},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, tc.got, tc.want)
		}
	}
}

func TestPoundsStayWithinHalfACentigram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tenths := rapid.IntRange(0, 20_000).Draw(t, "tenths of a pound")
		// kg x 10^9, exactly: tenths x 45359237; rounded to 10^7 = 0.01 kg.
		want := float64((int64(tenths)*45_359_237+5_000_000)/10_000_000) / 100
		if got := KgFromPounds(float64(tenths) / 10); got != want {
			t.Fatalf("%d tenths: %v, want %v", tenths, got, want)
		}
	})
}

func TestGlucoseUnitsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mmolL := float64(rapid.IntRange(11, 333).Draw(t, "tenths of mmol/L")) / 10
		mgDL := MgDLFromMmolL(mmolL)
		if !GlucoseMgDL.Range.Contains(mgDL) || mgDL != math.Trunc(mgDL) {
			t.Fatalf("%v mmol/L became %v mg/dL", mmolL, mgDL)
		}
		if back := MmolLFromMgDL(mgDL); back != mmolL {
			t.Fatalf("%v mmol/L came back as %v", mmolL, back)
		}
	})
}

// A valid reading is valid after unit conversion, and equal when it is sent again in the stored unit.
func FuzzConversion(f *testing.F) {
	for _, value := range []float64{44.09, 44.0925, 165, 1102.31, 1102.32, 1.1, 33.3, 5.6, 0, -1, 1e308, 5e-324, 33.304, 1.0999} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value float64) {
		number := strconv.FormatFloat(value, 'g', -1, 64)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return // no JSON
		}
		for _, kind := range Definitions {
			for _, unit := range kind.Main().Units {
				first, c := read(t, kind.Kind, fmt.Sprintf(`{%q:%s}`, unit.Field, number))
				if c.Err() != nil {
					continue
				}
				kept := *first.Value(kind.Main())
				if *first.OriginalValue != value || first.OriginalUnit != unit.Name {
					t.Fatalf("%v %s is kept as %v %s", value, unit.Name, *first.OriginalValue, first.OriginalUnit)
				}
				wantSameReading(t, first, fmt.Sprintf(`{%q:%v}`, kind.Main().Column, kept))
				if unit.Back == nil {
					continue
				}
				if _, c := read(t, kind.Kind, fmt.Sprintf(`{%q:%v}`, unit.Field, unit.Back(kept))); c.Err() != nil {
					t.Fatalf("%v %s as shown is refused: %v", value, unit.Name, c.Err())
				}
			}
		}
	})
}

func wantSameReading(t *testing.T, first Reading, body string) {
	t.Helper()
	second, c := read(t, first.Kind, body)
	first.Check(c)
	if err := c.Err(); err != nil {
		t.Fatalf("%s is no longer valid: %v", first.ValuesKey(), err)
	}
	if !first.SameValues(second) {
		t.Fatalf("%s became %s", first.ValuesKey(), second.ValuesKey())
	}
}

func BenchmarkKgFromPounds(b *testing.B) {
	for b.Loop() {
		KgFromPounds(185.4)
	}
}

func ExampleKgFromPounds() {
	fmt.Println(KgFromPounds(185.4), "kg")
	// Output: 84.1 kg
}
