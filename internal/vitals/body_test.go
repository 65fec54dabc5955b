package vitals

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
)

// read decodes raw and reads it as the kind's body.
func read(t testing.TB, kind Kind, raw string) (Reading, *validate.Checks) {
	t.Helper()
	var b Body
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		t.Fatal(err)
	}
	c := validate.NewChecks()
	return kind.Definition().Read(c, b), c
}

func TestBodies(t *testing.T) {
	for _, tc := range []struct {
		kind Kind
		raw  string
		want string // ValuesKey without the kind
	}{
		{BloodPressure, `{"systolic":128,"diastolic":82}`, "systolic=128 diastolic=82"},
		{BloodPressure, `{"systolic":60,"diastolic":30,"pulse":30,"irregular_heartbeat":true}`, "systolic=60 diastolic=30 pulse=30 irregular_heartbeat=true"},
		{BloodPressure, `{"systolic":3e2,"diastolic":200.0,"pulse":null}`, "systolic=300 diastolic=200"},
		{BloodPressure, `{"systolic":128.675,"diastolic":82.005,"other":1}`, "systolic=128.68 diastolic=82.01"},
		{Weight, `{"weight_kg":20}`, "weight_kg=20"},
		{Weight, `{"weight_kg":80.125}`, "weight_kg=80.13"},
		{Weight, `{"weight_lbs":165,"weight_kg":null}`, "weight_kg=74.84"},
		{Weight, `{"weight_lbs":1102.31}`, "weight_kg=500"},  // 499.9994
		{Weight, `{"weight_lbs":44.082}`, "weight_kg=20"},    // 19.99526 is rounded before the range is checked
		{Weight, `{"weight_lbs":1102.322}`, "weight_kg=500"}, // 500.0048
		{PulseOximetry, `{"spo2":97}`, "spo2=97"},
		{PulseOximetry, `{"spo2":50,"pulse":250,"perfusion_index":20}`, "pulse=250 spo2=50 perfusion_index=20"},
		{PulseOximetry, `{"spo2":100,"perfusion_index":-0.0}`, "spo2=100 perfusion_index=0"},
		{BodyTemperature, `{"temperature_c":38.055}`, "temperature_c=38.06"},
		{BodyTemperature, `{"temperature_f":113,"temperature_c":null}`, "temperature_c=45"},
		{BloodGlucose, `{"glucose_mg_dl":20,"comparator":"<"}`, "glucose_mg_dl=20 comparator=<"},
		{BloodGlucose, `{"glucose_mg_dl":101.5,"meal_context":"bedtime"}`, "glucose_mg_dl=101.5 meal_context=bedtime"},
		{BloodGlucose, `{"glucose_mmol_l":5.6,"meal_marker":"pre_meal"}`, "glucose_mg_dl=101 meal_context=before_meal"},
		{BloodGlucose, `{"glucose_mmol_l":1.1,"meal_marker":"post_meal","meal_context":"after_meal"}`, "glucose_mg_dl=20 meal_context=after_meal"},
		{BloodGlucose, `{"glucose_mmol_l":33.3,"meal_context":null,"comparator":null}`, "glucose_mg_dl=600"},
	} {
		t.Run(tc.raw, func(t *testing.T) {
			reading, c := read(t, tc.kind, tc.raw)
			reading.Check(c)
			if err := c.Err(); err != nil {
				t.Fatal(err)
			}
			if got, want := reading.ValuesKey(), string(tc.kind)+" "+tc.want; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestOriginalValueIsStored(t *testing.T) {
	for _, tc := range []struct {
		kind Kind
		raw  string
		unit string
	}{
		{Weight, `{"weight_lbs":165.123456}`, "lbs"},
		{BloodGlucose, `{"glucose_mmol_l":5.6789}`, "mmol/L"},
		{Weight, `{"weight_kg":80.129}`, ""},
		{BloodGlucose, `{"glucose_mg_dl":90}`, ""},
	} {
		reading, _ := read(t, tc.kind, tc.raw)
		if reading.OriginalUnit != tc.unit || (reading.OriginalValue == nil) != (tc.unit == "") {
			t.Errorf("%s: kept unit %q", tc.raw, reading.OriginalUnit)
		}
	}
	reading, _ := read(t, Weight, `{"weight_lbs":165.123456}`)
	if *reading.OriginalValue != 165.123456 {
		t.Errorf("kept %v pounds", *reading.OriginalValue)
	}
}

func TestBodyErrors(t *testing.T) {
	for _, tc := range []struct {
		kind Kind
		raw  string
		want string // "field: message" joined with " | ", or several names
	}{
		{BloodPressure, `{}`, "diastolic: This field is required. | systolic: This field is required."},
		{
			BloodPressure, `{"systolic":59.99,"diastolic":200.01,"pulse":251}`,
			"diastolic: Must be between 30 and 200 mmHg. | pulse: Must be between 30 and 250 bpm. | systolic: Must be between 60 and 300 mmHg.",
		},
		{BloodPressure, `{"systolic":300.004,"diastolic":82}`, "systolic: Must be between 60 and 300 mmHg."},
		{BloodPressure, `{"systolic":59.996,"diastolic":40}`, "systolic: Must be between 60 and 300 mmHg."},
		{BloodPressure, `{"systolic":80,"diastolic":80}`, "diastolic: Must be lower than systolic."},
		{BloodPressure, `{"systolic":80.001,"diastolic":80.004}`, "diastolic: Must be lower than systolic."},
		{BloodPressure, `{"systolic":80,"diastolic":120}`, "diastolic: Must be lower than systolic."},
		{
			BloodPressure, `{"systolic":"128","diastolic":true,"pulse":[71],"irregular_heartbeat":"no"}`,
			"diastolic: A valid number is required. | irregular_heartbeat: Must be true or false. | pulse: A valid number is required. | systolic: A valid number is required.",
		},
		{BloodPressure, `{"systolic":1e400,"diastolic":"NaN"}`, "diastolic: A valid number is required. | systolic: A valid number is required."},
		{BloodPressure, `{"systolic":1e300,"diastolic":null}`, "diastolic: This field may not be null. | systolic: Must be between 60 and 300 mmHg."},
		{Weight, `{}`, "weight_kg: This field is required."},
		{Weight, `{"weight_kg":80,"weight_lbs":176}`, "weight_lbs: Send either weight_kg or weight_lbs, not both."},
		{Weight, `{"weight_kg":"80","weight_lbs":176}`, "weight_lbs: Send either weight_kg or weight_lbs, not both."},
		{Weight, `{"weight_kg":500.01}`, "weight_kg: Must be between 20 and 500 kg."},
		{Weight, `{"weight_kg":19.999}`, "weight_kg: Must be between 20 and 500 kg."},
		{Weight, `{"weight_lbs":44.08}`, "weight_lbs: Must be between 20 and 500 kg."}, // 19.99435 kg
		{Weight, `{"weight_lbs":1e308}`, "weight_lbs: Must be between 20 and 500 kg."},
		{Weight, `{"weight_lbs":-165}`, "weight_lbs: Must be between 20 and 500 kg."},
		{Weight, `{"weight_lbs":"165"}`, "weight_lbs: A valid number is required."},
		{PulseOximetry, `{"spo2":100.1,"perfusion_index":-0.1}`, "perfusion_index: Must be between 0 and 20 %. | spo2: Must be between 50 and 100 %."},
		{PulseOximetry, `{"pulse":29}`, "pulse: Must be between 30 and 250 bpm. | spo2: This field is required."},
		{BodyTemperature, `{}`, "temperature_c: This field is required."},
		{BodyTemperature, `{"temperature_c":98.6}`, "temperature_c: Must be between 25 and 45 °C."},
		{BodyTemperature, `{"temperature_f":37}`, "temperature_f: Must be between 77 and 113 °F."},
		{BodyTemperature, `{"temperature_f":98.6,"temperature_c":37}`, "temperature_f: Send either temperature_c or temperature_f, not both."},
		{BloodGlucose, `{}`, "glucose_mg_dl: This field is required."},
		{BloodGlucose, `{"glucose_mg_dl":90,"glucose_mmol_l":5}`, "glucose_mmol_l: Send either glucose_mg_dl or glucose_mmol_l, not both."},
		{BloodGlucose, `{"glucose_mg_dl":19.9}`, "glucose_mg_dl: Must be between 20 and 600 mg/dL."},
		{BloodGlucose, `{"glucose_mmol_l":1.09}`, "glucose_mmol_l: Must be between 1.1 and 33.3 mmol/L."}, // though it rounds to 20 mg/dL
		{BloodGlucose, `{"glucose_mmol_l":33.31}`, "glucose_mmol_l: Must be between 1.1 and 33.3 mmol/L."},
		{BloodGlucose, `{"glucose_mg_dl":90,"meal_context":"lunch"}`, "meal_context: Must be one of: fasting, before_meal, after_meal, bedtime, random."},
		{BloodGlucose, `{"glucose_mg_dl":90,"meal_context":"fasting","meal_marker":"pre_meal"}`, "meal_marker: Must agree with meal_context."},
		{BloodGlucose, `{"glucose_mg_dl":90,"comparator":">=","meal_marker":1}`, "comparator: Must be one of: <, >. | meal_marker: Not a valid string."},
	} {
		t.Run(tc.raw, func(t *testing.T) {
			_, c := read(t, tc.kind, tc.raw)
			var got []string
			for name := range strings.FieldsSeq(errorText(c)) {
				got = append(got, name+": "+strings.Join(c.Fields[name], " "))
			}
			if text := strings.Join(got, " | "); text != tc.want {
				t.Errorf("got  %s\nwant %s", text, tc.want)
			}
		})
	}
}

func TestEnvelope(t *testing.T) {
	now := time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	const patient = "0190d3a2-5b1c-7def-8000-0123456789ab"
	for _, tc := range []struct {
		name, raw, want string
		device          string
		at              time.Time
	}{
		{
			name: "all", raw: `{"patient_id":"` + strings.ToUpper(patient) + `","device_id":" DEV-1 ","measured_at":"2026-01-15T08:45:00.1234567-05:00"}`,
			device: "DEV-1", at: now.Add(123456 * time.Microsecond),
		},
		{name: "least", raw: `{"patient_id":"` + patient + `","measured_at":"2026-01-15 13:45:00"}`, at: now},
		{name: "edge of the future", raw: `{"patient_id":"` + patient + `","device_id":null,"measured_at":"2026-01-15T13:50:00Z"}`, at: now.Add(5 * time.Minute)},
		{name: "future", raw: `{"patient_id":"` + patient + `","measured_at":"2026-01-15T13:50:00.001Z"}`, want: "measured_at"},
		{name: "empty", raw: `{}`, want: "measured_at patient_id"},
		{name: "wrong", raw: `{"patient_id":"7","device_id":"` + strings.Repeat("x", 129) + `","measured_at":1768484700}`, want: "device_id measured_at patient_id"},
		{name: "blank device", raw: `{"patient_id":"` + patient + `","device_id":" ","measured_at":"2026-01-15T13:45:00Z"}`, want: "device_id"},
		{name: "control", raw: `{"patient_id":"` + patient + `","device_id":"a\u0000b","measured_at":"2026-01-15T13:45:00Z"}`, want: "device_id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sent Envelope
			if err := validate.DecodeObject([]byte(tc.raw), &sent); err != nil {
				t.Fatal(err)
			}
			c := validate.NewChecks()
			id, device, at := sent.Read(c, now, 5*time.Minute)
			if got := errorText(c); got != tc.want {
				t.Fatalf("complained about %q, want %q", got, tc.want)
			}
			if tc.want == "" && (id != patient || device != tc.device || !at.Equal(tc.at) || at.Location() != time.UTC) {
				t.Errorf("got %q %q %v", id, device, at)
			}
		})
	}
}

// For any JSON, a body is rejected or gives a valid reading.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"systolic":128.675,"diastolic":82,"pulse":71,"irregular_heartbeat":false}`,
		`{"weight_lbs":165.3}`, `{"weight_kg":80.129}`, `{"spo2":97,"pulse":60,"perfusion_index":0.005}`,
		`{"glucose_mmol_l":16.7,"meal_marker":"post_meal"}`, `{"glucose_mg_dl":600,"comparator":">"}`,
		`{"systolic":1e400,"diastolic":-0}`, `{"systolic":"NaN"}`, `{"spo2":[]}`, `[]`, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var sent map[string]any
		if validate.DecodeObject(raw, &sent) != nil {
			return
		}
		for _, kind := range Kinds {
			reading, c := read(t, kind, string(raw))
			if c.Err() != nil {
				continue
			}
			if reading.Check(c); c.Err() != nil || reading.Kind != kind {
				t.Errorf("%s accepted as %s: %v", raw, reading.ValuesKey(), c.Err())
			}
		}
	})
}
