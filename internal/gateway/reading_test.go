package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// measurements are changes to the worked example and the resulting reading or errors.
var measurements = []struct {
	name    string
	changes change
	want    string // ValuesKey, with the original value's unit after a slash
	wrong   string // errors
}{
	{
		name: "bp alias, no unit", changes: change{"measurement_type": "bp", "unit": nil},
		want: "blood_pressure systolic=128 diastolic=82 pulse=71 irregular_heartbeat=false",
	},
	{
		name: "any case", changes: change{"measurement_type": "Blood_Pressure", "unit": "MMHG"},
		want: "blood_pressure systolic=128 diastolic=82 pulse=71 irregular_heartbeat=false",
	},
	{
		name: "null unit, least values", changes: change{"unit": raw("null"), "values": change{"systolic": 128.675, "diastolic": 82, "pulse": raw("null")}},
		want: "blood_pressure systolic=128.68 diastolic=82",
	},
	{name: "kPa", changes: change{"unit": "kPa"}, wrong: "unit: Must be one of: mmHg."},
	{name: "unit of the wrong type", changes: change{"unit": 1}, wrong: "unit: Not a valid string."},
	{name: "diastolic first", changes: change{"values": change{"systolic": 82, "diastolic": 128}}, wrong: "values.diastolic: Must be lower than systolic."},
	{name: "no systolic", changes: change{"values": change{"diastolic": 82}}, wrong: "values.systolic: This field is required."},
	{name: "no values", changes: change{"values": change{}}, wrong: "values.diastolic: This field is required. | values.systolic: This field is required."},
	{
		name: "text", changes: change{"values": change{"systolic": "128", "diastolic": "NaN"}},
		wrong: "values.diastolic: A valid number is required. | values.systolic: A valid number is required.",
	},
	{name: "huge", changes: change{"values": change{"systolic": 1e300, "diastolic": 82}}, wrong: "values.systolic: Must be between 60 and 300 mmHg."},

	{name: "kg", changes: weight("weight", 80.125, "kg"), want: "weight weight_kg=80.13"},
	{name: "kg in capitals", changes: weight("body_weight", 80, "KG"), want: "weight weight_kg=80"},
	{name: "lb", changes: weight("weight", 185.4, "Lb"), want: "weight weight_kg=84.1/lb"},
	{name: "lbs", changes: weight("weight", 165, " LBS "), want: "weight weight_kg=74.84/lbs"},
	{name: "weight without unit", changes: weight("weight", 80, nil), wrong: "unit: This field is required."},
	{name: "weight without unit, out of any range", changes: weight("weight", 80_000, nil), wrong: "unit: This field is required."},
	{name: "weight with null unit", changes: weight("weight", 80, raw("null")), wrong: "unit: This field may not be null."},
	{name: "weight with blank unit", changes: weight("weight", 80, " "), wrong: "unit: This field may not be blank."},
	{name: "stone", changes: weight("weight", 12, "st"), wrong: "unit: Must be one of: kg, lb, lbs."},
	{name: "no unit and no number", changes: weight("weight", "80", nil), wrong: "unit: This field is required. | values.weight: A valid number is required."},
	{name: "no weight", changes: weight("weight", raw("null"), "lb"), wrong: "values.weight: This field is required."},
	{name: "kg sent as lb", changes: weight("weight", 40, "lb"), wrong: "values.weight: Must be between 20 and 500 kg."},
	{name: "too heavy", changes: weight("weight", 500.01, "kg"), wrong: "values.weight: Must be between 20 and 500 kg."},
	{
		name: "the API's field names", changes: change{"measurement_type": "weight", "unit": "kg", "values": change{"weight_kg": 80}},
		want: "weight weight_kg=80",
	},

	{
		name: "oximetry", changes: oximetry("pulse_oximetry", change{"spo2": 97, "pulse": 60, "perfusion_index": 4.25}, "%"),
		want: "pulse_oximetry pulse=60 spo2=97 perfusion_index=4.25",
	},
	{name: "pulse_rate", changes: oximetry("pulse_ox", change{"spo2": 97, "pulse_rate": 60}, nil), want: "pulse_oximetry pulse=60 spo2=97"},
	{name: "pulse_rate with a null pulse", changes: oximetry("spo2", change{"spo2": 97, "pulse_rate": 60, "pulse": raw("null")}, nil), want: "pulse_oximetry pulse=60 spo2=97"},
	{name: "both agree", changes: oximetry("oximetry", change{"spo2": 97, "pulse_rate": 60, "pulse": 60}, nil), want: "pulse_oximetry pulse=60 spo2=97"},
	{name: "both differ", changes: oximetry("oximetry", change{"spo2": 97, "pulse_rate": 60, "pulse": 61}, nil), wrong: "values.pulse_rate: Must agree with pulse."},
	{
		name: "pulse_rate out of range", changes: oximetry("spo2", change{"spo2": 49.9, "pulse_rate": 251}, nil),
		wrong: "values.pulse_rate: Must be between 30 and 250 bpm. | values.spo2: Must be between 50 and 100 %.",
	},
	{name: "fraction", changes: oximetry("spo2", change{"spo2": 0.97}, "1"), wrong: "unit: Must be one of: %. | values.spo2: Must be between 50 and 100 %."},

	{name: "mg/dL", changes: sugar(101, "MG/DL", nil), want: "blood_glucose glucose_mg_dl=101"},
	{name: "mmol/L", changes: sugar(16.7, "mmol/l", change{"meal_marker": "post_meal"}), want: "blood_glucose glucose_mg_dl=301 meal_context=after_meal/mmol/L"},
	{name: "meal context", changes: sugar(5.6, "mmol/L", change{"meal_context": "fasting"}), want: "blood_glucose glucose_mg_dl=101 meal_context=fasting/mmol/L"},
	{name: "HI", changes: sugar("HI", "mg/dL", change{"meal_marker": "pre_meal"}), want: "blood_glucose glucose_mg_dl=600 meal_context=before_meal comparator=>"},
	{name: "LO", changes: sugar("LO", "mmol/L", nil), want: "blood_glucose glucose_mg_dl=20 comparator=<"},
	{name: "Lo", changes: sugar("Lo", "mg/dL", nil), want: "blood_glucose glucose_mg_dl=20 comparator=<"},
	{name: "HI without unit", changes: sugar("HI", nil, nil), wrong: "unit: This field is required."},
	{name: "High", changes: sugar(" High ", "mg/dL", nil), want: "blood_glucose glucose_mg_dl=600 comparator=>"},
	{name: "low", changes: sugar("low", "mg/dL", nil), want: "blood_glucose glucose_mg_dl=20 comparator=<"},
	{name: "higher", changes: sugar("HIGHER", "mg/dL", nil), wrong: "values.glucose: A valid number is required."},
	{name: "text", changes: sugar("101", "mg/dL", nil), wrong: "values.glucose: A valid number is required."},
	{name: "Fahrenheit", changes: thermometer("temperature", 100.5, "degf"), want: "body_temperature temperature_c=38.06/degF"},
	{name: "UCUM's Fahrenheit", changes: thermometer("body_temperature", 98.6, "[degF]"), want: "body_temperature temperature_c=37/[degF]"},
	{name: "Celsius", changes: thermometer("Temperature", 38.055, "cel"), want: "body_temperature temperature_c=38.06"},
	{name: "temperature without unit", changes: thermometer("temperature", 98.6, nil), wrong: "unit: This field is required."},
	{name: "Fahrenheit as Celsius", changes: thermometer("temperature", 98.6, "C"), wrong: "values.temperature: Must be between 25 and 45 °C."},
	{name: "Celsius as Fahrenheit", changes: thermometer("temperature", 37, "°F"), wrong: "values.temperature: Must be between 77 and 113 °F."},
	{name: "Kelvin", changes: thermometer("temperature", 310, "K"), wrong: "unit: Must be one of: °C, Cel, C, degC, °F, [degF], F, degF."},

	{name: "no glucose", changes: sugar(nil, "mg/dL", nil), wrong: "values.glucose: This field is required."},
	{name: "null glucose", changes: sugar(raw("null"), "mg/dL", nil), wrong: "values.glucose: This field may not be null."},
	{name: "glucose without unit", changes: sugar(5.6, nil, nil), wrong: "unit: This field is required."},
	{name: "glucose in g/L", changes: sugar(1.01, "g/L", nil), wrong: "unit: Must be one of: mg/dL, mmol/L."},
	{name: "mmol/L sent as mg/dL", changes: sugar(5.6, "mg/dL", nil), wrong: "values.glucose: Must be between 20 and 600 mg/dL."},
	{name: "mg/dL sent as mmol/L", changes: sugar(101, "mmol/L", nil), wrong: "values.glucose: Must be between 1.1 and 33.3 mmol/L."},
	{name: "lunch", changes: sugar(101, "mg/dL", change{"meal_marker": "lunch"}), want: "blood_glucose glucose_mg_dl=101"},
}

// raw is a JSON literal.
type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func weight(kind string, value, unit any) change {
	return change{"measurement_type": kind, "values": change{"weight": value}, "unit": unit}
}

func thermometer(kind string, value, unit any) change {
	return change{"measurement_type": kind, "values": change{"temperature": value}, "unit": unit}
}

func oximetry(kind string, values change, unit any) change {
	return change{"measurement_type": kind, "values": values, "unit": unit}
}

func sugar(value, unit any, meal change) change {
	values := change{}
	if value != nil {
		values["glucose"] = value
	}
	for name, word := range meal {
		values[name] = word
	}
	return change{"measurement_type": "glucose", "values": values, "unit": unit}
}

func TestReadings(t *testing.T) {
	for _, tc := range measurements {
		t.Run(tc.name, func(t *testing.T) {
			body := with(t, vectorBody, tc.changes)
			if got := strings.Join(fieldErrors(t, body), " | "); got != tc.wrong {
				t.Fatalf("got  %s\nwant %s", got, tc.wrong)
			}
			if tc.wrong != "" {
				return
			}
			reading := parse(t, body).Reading
			got := reading.ValuesKey()
			if reading.OriginalValue != nil {
				got += "/" + reading.OriginalUnit
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestEveryKindHasUnits(t *testing.T) {
	words := map[string]vitals.Kind{}
	for _, kind := range vitals.Definitions {
		units, _ := kind.Units()
		for _, word := range append([]string{string(kind.Kind)}, kind.Words...) {
			if known, ok := kindOf(word); !ok || known != kind || words[word] != "" || len(units) == 0 || word != strings.ToLower(word) {
				t.Errorf("%s: %s in %v", word, kind.Kind, units)
			}
			words[word] = kind.Kind
		}
	}
	if len(words) < 10 {
		t.Errorf("only %v", words)
	}
}

// sent returns alternating names and values.
func sent(members ...any) (v Values) {
	for i := 0; i < len(members); i += 2 {
		v.Add(members[i].(string), members[i+1])
	}
	return v
}

func TestMeasurementEqualsWorkedExample(t *testing.T) {
	body, err := Measurement{
		DeviceID: "DEV-1001", PatientID: "GW-77", MeasurementType: "blood_pressure",
		Values: sent("systolic", 128.0, "diastolic", 82.0, "pulse", 71.0, "irregular_heartbeat", false),
		Unit:   "mmHg", Timestamp: time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC),
		DeviceModel: "BP-7", BatteryLevel: new(84), SignalStrength: new(-71), HubID: "HUB-9",
	}.Body()
	if err != nil || string(body) != vectorBody {
		t.Errorf("%s, %v", body, err)
	}
}

func TestMeasurementMakesEveryEvent(t *testing.T) {
	at := now.Add(-time.Minute)
	for _, m := range []Measurement{
		{DeviceID: "D", PatientID: "P", MeasurementType: "weight", Values: sent("weight", 165.0), Unit: "lb", Timestamp: at},
		{DeviceID: "D", PatientID: "P", MeasurementType: "spo2", Values: sent("spo2", 97.0, "perfusion_index", 0.0), Timestamp: at},
		{DeviceID: "D", PatientID: "P", MeasurementType: "glucose", Values: sent("glucose", "HI", "meal_marker", "pre_meal"), Unit: "mg/dL", Timestamp: at},
		{EventType: DeviceBatteryLow, DeviceID: "D", BatteryLevel: new(0), Timestamp: at},
		{EventType: HubHeartbeat, HubID: "H", Timestamp: at},
	} {
		body, err := m.Body()
		if err != nil {
			t.Fatal(err)
		}
		event := parse(t, string(body))
		if event.IsUnsupported() || m.EventType != "" && event.Type != m.EventType || m.BatteryLevel != nil && *event.BatteryLevel != 0 {
			t.Errorf("%s: misread", body)
		}
	}
	if _, err := (Measurement{Values: sent("glucose", func() {})}).Body(); err == nil {
		t.Error("a function has no JSON")
	}
}

// The patient is the one that Parse returns too: member names are exact.
func TestPatientIdentifier(t *testing.T) {
	for body, want := range map[string]string{
		`{"patient_id":"gw-1"}`:                                        "gw-1",
		`{"patient_id":"gw-1","timestamp":"never"}`:                    "gw-1",
		`{"PATIENT_ID":"gw-2"}`:                                        "",
		`{"patient_id":"gw-1","PATIENT_ID":"gw-2"}`:                    "gw-1",
		`{"patient_id":"gw-1","patient_id":"gw-2"}`:                    "",
		`{"patient_id":"gw\u202e-1"}`:                                  "gw-1",
		`{"patient_id":7}`:                                             "",
		`{"patient_id":null}`:                                          "",
		`["gw-1"]`:                                                     "",
		`[{"patient_id":"gw-1"},{"patient_id":"gw-2"}]`:                "gw-1",
		`{"patient_id":"gw-1"`:                                         "",
		`{"patient_id":"` + strings.Repeat("é", maxPatientID) + `"}`:   strings.Repeat("é", maxPatientID),
		`{"patient_id":"` + strings.Repeat("é", maxPatientID+1) + `"}`: "",
	} {
		if got := PatientIdentifier([]byte(body)); got != want {
			t.Errorf("%.60s names %q, want %q", body, got, want)
		}
	}
}
