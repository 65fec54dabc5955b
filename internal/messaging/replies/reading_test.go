package replies_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vigilhealth/vigil/internal/messaging/replies"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// form writes values as "kind field=value …", sorted; "" for none.
func form(v *replies.Values) string {
	if v == nil {
		return ""
	}
	var parts []string
	for _, m := range v.Body {
		parts = append(parts, m.Name+"="+string(m.Raw))
	}
	return strings.Join(append([]string{string(v.Kind)}, parts...), " ")
}

var (
	bp          = []vitals.Kind{vitals.BloodPressure}
	weight      = []vitals.Kind{vitals.Weight}
	glucose     = []vitals.Kind{vitals.BloodGlucose}
	temperature = []vitals.Kind{vitals.BodyTemperature}
	oxygen      = []vitals.Kind{vitals.PulseOximetry}
	several     = []vitals.Kind{vitals.BloodPressure, vitals.Weight, vitals.BloodGlucose}
)

var readings = []struct {
	asked []vitals.Kind
	last  float64 // last weight in kg, 0 for none
	text  string
	want  string
}{
	{bp, 0, "128/82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128/82.", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128 / 82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128\\82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128-82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128–82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128 82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128, 82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128\n82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128 over 82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128 OVER 82 pulse 70", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "128 sobre 82 pulso 70", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "bp 128 / 82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "BP: 128/82, HR: 70", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "128/82/70", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "128 82 70", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "128/82 70", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "128/82 p70", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "128/82 mmHg, 70 bpm", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "pulse 70, 128/82", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "sys 128 dia 82 pulse 70", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "Systolic 128 diastolic 82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "diastolic 82 systolic 128", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "My blood pressure is 128/82 this morning, thank you!", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "Hola, mi presión es 128/82, gracias", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "presion arterial: 128/82 pulso 70", "blood_pressure systolic=128 diastolic=82 pulse=70"},
	{bp, 0, "No chest pain. 128/82", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "128/82 👍", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "1️⃣2️⃣8️⃣/8️⃣2️⃣", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "１２８／８２", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "\u200f128\u200e/82\x00", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "١٢٨/٨٢", "blood_pressure systolic=128 diastolic=82"},
	{bp, 0, "188/121", "blood_pressure systolic=188 diastolic=121"},
	{bp, 0, "300/20", "blood_pressure systolic=300 diastolic=20"}, // implausible: the caller prompts
	{bp, 0, "12/8", "blood_pressure systolic=12 diastolic=8"},
	{bp, 0, "82/128", "blood_pressure systolic=82 diastolic=128"},
	{bp, 0, "1280/82", "blood_pressure systolic=1280 diastolic=82"},
	{weight, 0, "128/82", "blood_pressure systolic=128 diastolic=82"}, // the form is a pressure's
	{several, 0, "128/82", "blood_pressure systolic=128 diastolic=82"},
	{several, 0, "bp 128 82", "blood_pressure systolic=128 diastolic=82"},

	{bp, 0, "128", ""},
	{bp, 0, "pulse 70", ""},
	{bp, 0, "systolic 128", ""},
	{bp, 0, "128/82/70/60", ""},
	{bp, 0, "128/82 and 130/84", ""},
	{bp, 0, "128/82 130/84", ""},
	{bp, 0, "128/82 at 7:30", ""},
	{bp, 0, "11/30 128/82", ""},
	{bp, 0, "yesterday 128/82", ""},
	{bp, 0, "my husband 128/82", ""},
	{bp, 0, "128/82 is that high?", ""},
	{bp, 0, "was 128/82 last week", ""},
	{bp, 0, "it should be 128/82", ""},
	{bp, 0, "not 128/82", ""},
	{bp, 0, "128.5.1/82", ""},
	{bp, 0, "call 555-123-4567", ""},
	{bp, 0, "555-123-4567", ""},
	{bp, 0, "took 2 pills", ""},
	{bp, 0, "-128/82", ""},
	{bp, 0, "128/-82", ""},
	{bp, 0, "128e2/82", ""},
	{bp, 0, "ayer 128/82", ""},
	{bp, 0, "¿128/82 es alto?", ""},
	{bp, 0, "128/82?", ""},
	{bp, 0, "one twenty eight over eighty two", ""},
	{bp, 0, "128/82 weight 182 lb", ""},
	{bp, 0, "12345678901/82", ""},
	{bp, 0, "Room 128", ""},
	{bp, 0, "//", ""},
	{bp, 0, "128/", ""},
	{bp, 0, "/82", ""},
	{bp, 0, "above 128/82", ""},
	{bp, 0, "hm 128/82", ""},
	{nil, 0, "128/82", ""},
	{nil, 0, "98.6", ""},
	{nil, 0, "bp 128/82", ""},

	{weight, 0, "182 lb", "weight weight_lbs=182"},
	{weight, 0, "182lbs", "weight weight_lbs=182"},
	{weight, 0, "weight 182 lb", "weight weight_lbs=182"},
	{weight, 0, "I weigh 182.4 pounds today", "weight weight_lbs=182.4"},
	{weight, 0, "peso 182 libras", "weight weight_lbs=182"},
	{weight, 0, "82,5 kg", "weight weight_kg=82.5"},
	{weight, 0, "Peso: 82.5 kilos", "weight weight_kg=82.5"},
	{weight, 82.5, "182", "weight weight_lbs=182"},
	{weight, 82.5, "82", "weight weight_kg=82"},
	{weight, 82.5, "weight 181.9", "weight weight_lbs=181.9"},
	{weight, 82.5, "120", ""}, // neither pounds nor kilograms are near
	{weight, 0, "182", ""},
	{weight, 0, "1820 lb", "weight weight_lbs=1820"},
	{weight, 82.5, "182 184", ""},
	{weight, 82.5, "lost 3 lb", ""},
	{weight, 82.5, "3 lb less", ""},
	{weight, 82.5, "up 4 lbs", ""},
	{several, 82.5, "182", ""},
	{several, 82.5, "182 lb", "weight weight_lbs=182"},
	{several, 82.5, "weight 182", "weight weight_lbs=182"},

	{glucose, 0, "120", "blood_glucose glucose_mg_dl=120"},
	{glucose, 0, "azúcar 120", "blood_glucose glucose_mg_dl=120"},
	{glucose, 0, "Sugar is 120", "blood_glucose glucose_mg_dl=120"},
	{glucose, 0, "blood sugar 120 mg/dl", "blood_glucose glucose_mg_dl=120"},
	{glucose, 0, "glucosa 6,7 mmol/L", "blood_glucose glucose_mmol_l=6.7"},
	{glucose, 0, "fasting 98", "blood_glucose glucose_mg_dl=98 meal_context=\"fasting\""},
	{glucose, 0, "en ayunas 98", "blood_glucose glucose_mg_dl=98 meal_context=\"fasting\""},
	{glucose, 0, "45", "blood_glucose glucose_mg_dl=45"},
	{glucose, 0, "700", "blood_glucose glucose_mg_dl=700"},
	{several, 0, "sugar 120", "blood_glucose glucose_mg_dl=120"},
	{glucose, 0, "6.7", ""},
	{glucose, 0, "25", ""},
	{glucose, 0, "HI", ""},
	{glucose, 0, "hi", ""},
	{glucose, 0, "120 180", ""},
	{glucose, 0, "2 slices of bread", ""},
	{glucose, 0, "1,234", ""},
	{glucose, 0, "goal 120", ""},

	{temperature, 0, "98.6", "body_temperature temperature_f=98.6"},
	{temperature, 0, "98,6", "body_temperature temperature_f=98.6"},
	{temperature, 0, "37", "body_temperature temperature_c=37"},
	{temperature, 0, "temp 101.2 F", "body_temperature temperature_f=101.2"},
	{temperature, 0, "fiebre 38,5", "body_temperature temperature_c=38.5"},
	{temperature, 0, "temperatura 38.5°C", "body_temperature temperature_c=38.5"},
	{temperature, 0, "98.6ºF", "body_temperature temperature_f=98.6"},
	{temperature, 0, "986", "body_temperature temperature_f=986"}, // implausible in either unit: the caller prompts
	{temperature, 0, "98.6 37", ""},

	{oxygen, 0, "97", "pulse_oximetry spo2=97"},
	{oxygen, 0, "97%", "pulse_oximetry spo2=97"},
	{oxygen, 0, "oxygen 97 pulse 72", "pulse_oximetry spo2=97 pulse=72"},
	{oxygen, 0, "SpO2 97 %, HR 72", "pulse_oximetry spo2=97 pulse=72"},
	{oxygen, 0, "oxígeno 97 pulso 72", "pulse_oximetry spo2=97 pulse=72"},
	{oxygen, 0, "O2 97", "pulse_oximetry spo2=97"},
	{several, 0, "97%", ""},
	{oxygen, 0, "97/72", ""}, // oxygen and pulse, or a pressure
	{oxygen, 0, "97 72", ""},
	{append(oxygen, bp...), 0, "97/72", ""},
	{append(oxygen, bp...), 0, "128/82", "blood_pressure systolic=128 diastolic=82"},
	{oxygen, 0, "40", "pulse_oximetry spo2=40"},
}

func TestReadings(t *testing.T) {
	for _, c := range readings {
		if got := form(replies.Read(c.text, replies.Requested{Kinds: c.asked, LastWeightKg: c.last}).Values); got != c.want {
			t.Errorf("asked for %v, %q is read as %q, want %q", c.asked, c.text, got, c.want)
		}
	}
}

// TestDangerousTexts: a text that is no certain reading, and has a value of danger in it, is urgent for the person who reads it.
func TestDangerousTexts(t *testing.T) {
	for text, want := range map[string]bool{
		"188/121 at 7:30": true, "yesterday 128/82 now 192/124": true, "is 182/95 high?": true, "my husband 70/38": true, "128/82": false, "150/95 at 7:30": false,
		"it is 11/30 today": false, "sugar was 42 at noon": true, "sugar 400 after cake": true, "oxygen at 84 all day": true, "oxígeno de 84": true, "SpO2 97 all day": false,
		"took 2 pills at 8": false, "temperature up to 104 last night": true, "call 555-123-4567": false, "azúcar 45 anoche": true, "pulse was 32": true, "1,600 steps": false,
	} {
		if got := replies.Read(text, replies.Requested{}).IsDangerous; got != want {
			t.Errorf("%q: dangerous %v, want %v", text, got, want)
		}
	}
}

// TestValuesBeyondDevices: a value that no device shows is not quieter than a milder one, and the patient is to look again.
func TestValuesBeyondDevices(t *testing.T) {
	for text, want := range map[string]bool{
		"pulse 25": true, "pulse 29": true, "pulse 260": true, "hr 20": true, "my pulse is 25": true, "spo2 49": true, "oxygen 45": true, "oxygen is at 40 now": false, "glucose 601": true,
		"sugar 1000": true, "temp 46": true, "bp 310/150": true, "310/150": true, "bp 55/30": true, "bp 180/210": true, "my bp is 55/30": true, "pulso 25": true, "oxígeno 45": true,
		"oxygen 2 liters": false, "oxygen 2": false, "on oxygen 3L": false, "pulse after 20 minutes": false, "heart rate 20 minutes later": false, "bp check on 11/30": false, "bp visit 12/31": false,
		"11/30": false, "55/30": false, "temp 70": false, "temp 24": false, "pulse 5 times": false, "sugar 5000": false, "bp 82/128": false, "sugar 15": false, "sugar 5.5": false,
	} {
		if got := replies.Read(text, replies.Requested{}); got.IsDangerous != want || got.IsImplausible != want {
			t.Errorf("%q: dangerous %v, implausible %v, want %v", text, got.IsDangerous, got.IsImplausible, want)
		}
	}
}

// TestDangerousAnswers: an answer that is not certain, and critical in each way to read it, is not left lying.
func TestDangerousAnswers(t *testing.T) {
	for _, c := range []struct {
		asked []vitals.Kind
		text  string
		want  bool
	}{
		{glucose, "30", true},
		{glucose, "19", true},
		{glucose, "25", true},
		{glucose, "2.5", true},
		{glucose, "33", true},
		{glucose, "5.5", false},
		{glucose, "15", false},
		{glucose, "8", false},
		{glucose, "LO", true},
		{glucose, "lo", true},
		{glucose, "Low", true},
		{glucose, "HI", true},
		{glucose, "high", true},
		{glucose, "hi", false},
		{glucose, "Hi!", false},
		{glucose, "hi there", false},
		{nil, "sugar is LO", true},
		{nil, "meter shows LO", true},
		{nil, "meter shows LO and I feel shaky", true},
		{nil, "my sugar reads lo", true},
		{nil, "glucose meter says HI", true},
		{nil, "glucose HI", true},
		{nil, "mi azúcar sale LO", true},
		{nil, "el azúcar lo tengo bien", false},
		{nil, "LO", false},
		{nil, "HI", false},
		{nil, "hi, my sugar is 110", false},
		{nil, "HI my sugar is fine", false},
		{oxygen, "85/120", true},
		{oxygen, "86/60", true},
		{oxygen, "97/72", false},
		{append(oxygen, bp...), "85/60", true},
		{bp, "85/120", false},
		{bp, "210", true},
		{bp, "35", true},
		{bp, "70", false},
		{bp, "120", false},
		{append(bp, glucose...), "45", false},
		{several, "300", false},
		{several, "45", false},
		{several, "188 121", true},
		{several, "188-121", true},
		{several, "128 82", false},
		{nil, "30", false},
		{nil, "188 121", false},
	} {
		if got := replies.Read(c.text, replies.Requested{Kinds: c.asked}); got.IsDangerous != c.want {
			t.Errorf("asked for %v, %q: dangerous %v, want %v", c.asked, c.text, got.IsDangerous, c.want)
		}
	}
}

// TestRepliesDoNotPrint: what a patient measured never reaches a log.
func TestRepliesDoNotPrint(t *testing.T) {
	reply := replies.Read("188/121", replies.Requested{Kinds: bp})
	if text := fmt.Sprintf("%v %+v %s", reply, reply.Values, reply.Values); strings.Contains(text, "188") {
		t.Errorf("printed %q", text)
	}
}

func FuzzRead(f *testing.F) {
	for _, texts := range commands {
		for _, text := range texts {
			f.Add(text, 0.0)
		}
	}
	for _, texts := range emergencies {
		for _, text := range texts {
			f.Add(text, 82.5)
		}
	}
	for _, c := range readings {
		f.Add(c.text, c.last)
	}
	f.Add(strings.Repeat("😀", 1600), 0.0)
	f.Add(strings.Repeat("1/", 800), 0.0)
	f.Add(strings.Repeat("chest ", 270), 0.0)
	f.Fuzz(func(t *testing.T, text string, last float64) {
		for _, asked := range [][]vitals.Kind{nil, bp, weight, glucose, temperature, oxygen, several} {
			reply := replies.Read(text, replies.Requested{Kinds: asked, LastWeightKg: last})
			if asked == nil && reply.Values != nil {
				t.Errorf("a reading nobody asked for: %q", text)
			}
			if reply.Values != nil && (reply.Command != replies.None || len(reply.Values.Body) == 0) {
				t.Errorf("a reading without values, or beside a command: %q", text)
			}
			if marked := replies.Read("\u200e"+text, replies.Requested{Kinds: asked, LastWeightKg: last}); utf8.ValidString(text) && marked.Command != reply.Command {
				t.Errorf("an invisible mark changes %q from %q to %q", text, reply.Command, marked.Command)
			}
		}
	})
}
