package routes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
)

// report returns the text of a patient's report, in one line.
func (c *clinic) report(t *testing.T, id string) (pages int, text string) {
	t.Helper()
	pages, text = readPDF(t, c.request(authz.ClinicalManager, "GET", "/patients/"+id+"/report/", nil))
	return pages, strings.Join(strings.Fields(text), " ")
}

func wantOrder(t *testing.T, text, first, then string) {
	t.Helper()
	if i, j := strings.Index(text, first), strings.Index(text, then); i < 0 || j < 0 || i > j {
		t.Errorf("%q does not precede %q:\n%s", first, then, text)
	}
}

// Diabetes: the glucose chart comes first, with the shares of readings by range, the means by meal and no empty blood pressure; a critical value
// is whole.
func TestVisitReportForDiabetes(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"E11.65", "I10"}})
	at := c.now.AddDate(0, 0, -20)
	store := func(value float64, meal string) {
		at = at.Add(12 * time.Hour)
		c.storedReading(id, "blood_glucose", at, dbx.Params{"glucose_mg_dl": value, "meal_context": meal})
	}
	for _, value := range []float64{110, 130, 150, 170} {
		store(value, "fasting")
	}
	for _, value := range []float64{180, 181, 240} {
		store(value, "after_meal")
	}
	for _, value := range []float64{70, 69, 53} {
		store(value, "before_meal")
	}
	c.request(authz.Nurse, "POST", "/ingestion/blood-glucose/", object{
		"patient_id": id, "glucose_mg_dl": 312, "measured_at": c.now.Add(-time.Hour).Format(time.RFC3339),
	}).want(201)
	pages, text := c.report(t, id)
	if pages != 1 {
		t.Errorf("%d pages", pages)
	}
	wantWords(t, text,
		"Glucose uncontrolled: 9.1 % below 54, the goal is less than 1 %.", "Glucose, mg/dL", "Share of 11 readings in 30 days",
		"54.5 %", "18.2 % (2)", "9.1 % (1)", "140 (4)", "200 (3)", "64 (3)", "312 (1)", "Glucose 312 mg/dL", "Fasting", "Before a meal", "After a meal")
	for _, wrong := range []string{"No blood pressure", "Blood pressure, mmHg", "Morning", "…"} {
		if strings.Contains(text, wrong) {
			t.Errorf("the report has %q", wrong)
		}
	}
	id = c.enroll(object{"icd10_codes": []string{"E11.9"}})
	for ago := range 10 {
		c.storedReading(id, "blood_glucose", c.now.AddDate(0, 0, -ago).Add(-time.Minute), dbx.Params{"glucose_mg_dl": 120.0})
	}
	_, text = c.report(t, id)
	wantWords(t, text, "Glucose controlled: 100 % in 70–180, 30 points above the goal of 70 %.")
}

// Heart failure: the weight chart comes first, with the target and the limits, and the means of blood pressure second.
func TestVisitReportForHeartFailure(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"I50.22", "I10"}})
	for ago := 20; ago >= 0; ago-- {
		c.storedReading(id, "weight", c.now.AddDate(0, 0, -ago).Add(-time.Minute), dbx.Params{"weight_kg": 85 + 0.2*float64(20-ago)})
		c.storedReading(id, "blood_pressure", c.now.AddDate(0, 0, -ago).Add(-2*time.Minute), dbx.Params{"systolic": 128.0, "diastolic": 76.0})
	}
	_, text := c.report(t, id)
	wantWords(t, text, "Weight: no target (dry) weight is set. Mean of 7 days 88.4 kg.")
	c.request(authz.Provider, "PUT", "/patients/"+id+"/vital-config/", object{
		"reason": "dry weight", "weight": object{"target_kg": 85, "over_target_kg": 2, "change_threshold_kg": 2, "critical_change_kg": 5},
	}).want(200)
	pages, text := c.report(t, id)
	if pages != 1 {
		t.Errorf("%d pages", pages)
	}
	wantWords(t, text, "Weight uncontrolled, 1.4 kg above the limit of 87 kg. Mean of 7 days 88.4 kg, target 85.", "Weight, kg", "target 85", "limit 87",
		"change of 2 in 7 days", "critical gain of 4", "2 over target")
	wantOrder(t, text, "limit 87", "128/76 – 21 21") // the means of blood pressure follow
}

// Hypertension: the headline says controlled or not, and by how much. Without a diagnosis the kind with the most readings comes first.
func TestVisitReportSaysControlledOrNot(t *testing.T) {
	c := newIngestingClinic(t)
	for headline, values := range map[string][2]float64{
		"Blood pressure uncontrolled, 22 above the limit of 140 systolic. Mean of 7 days 162/72.":    {162, 72},
		"Blood pressure uncontrolled, 6 above the limit of 90 diastolic. Mean of 7 days 142/96.":     {142, 96},
		"Blood pressure uncontrolled, at the limit of 140 systolic. Mean of 7 days 140/80.":          {140, 80},
		"Blood pressure controlled, 10 below the limit of 90 diastolic. Mean of 7 days 128/80.":      {128, 80},
		"Blood pressure uncontrolled (low), 4 below the limit of 90 systolic. Mean of 7 days 86/70.": {86, 70},
	} {
		id := c.enroll(object{"icd10_codes": []string{"I10"}})
		for ago := range 6 {
			c.storedReading(id, "blood_pressure", c.now.AddDate(0, 0, -ago).Add(-time.Minute), dbx.Params{"systolic": values[0], "diastolic": values[1]})
		}
		_, text := c.report(t, id)
		wantWords(t, text, headline)
	}
	id := c.enroll(object{})
	for ago := range 6 {
		c.storedReading(id, "pulse_oximetry", c.now.AddDate(0, 0, -ago).Add(-time.Minute), dbx.Params{"spo2": 95.0, "pulse": 70.0})
	}
	c.storedReading(id, "blood_pressure", c.now.Add(-time.Hour), dbx.Params{"systolic": 130.0, "diastolic": 80.0})
	_, text := c.report(t, id)
	wantWords(t, text, "SpO₂ controlled, 3 % above the limit of 92 %. Mean of 7 days 95 %.", "SpO₂, %")
	if strings.Contains(text, "Blood pressure, mmHg") {
		t.Error("one blood pressure has a chart")
	}
}

// A critical weight gain is printed with its value.
func TestVisitReportWeightGain(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{})
	for _, kg := range []float64{80, 80, 80, 85.1} {
		c.now = c.now.Add(24 * time.Hour)
		c.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": id, "weight_kg": kg, "measured_at": c.now.Format(time.RFC3339)}).want(201)
	}
	_, text := c.report(t, id)
	wantWords(t, text, "Weight +5.1 kg")
}

// A glucose that the meter showed as HI or LO is printed as that, wherever the report prints it.
func TestVisitReportBeyondRange(t *testing.T) {
	for word, want := range map[string][]string{"HI": {"above 600 mg/dL", ">600 mg/dL"}, "LO": {"below 20 mg/dL", "<20 mg/dL"}} {
		w := newNightShift(t, 0)
		w.send("GL-1", "blood_glucose", "mg/dL", w.now.Add(-time.Hour), `"glucose":140`)
		w.send("GL-1", "blood_glucose", "mg/dL", w.now, `"glucose":"`+word+`"`)
		_, text := w.report(t, w.patient)
		wantWords(t, text, "One critical reading in the last 7 days, the last Glucose "+want[0]+" on", "The last Glucose, "+want[0]+" on", want[1])
		if n := strings.Count(text, want[0]); n < 3 { // in the list of critical readings too
			t.Errorf("%s is printed as %q %d times:\n%s", word, want[0], n, text)
		}
		for _, wrong := range []string{"Glucose 600", "Glucose, 600", "Glucose 20 ", "Glucose, 20 "} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s is printed as %q", word, wrong)
			}
		}
	}
}

// A mean is "controlled" or not from three readings on three days on.
func TestVisitReportNeedsDays(t *testing.T) {
	c := newIngestingClinic(t)
	for _, test := range []struct {
		name, kind string
		codes      []string
		values     dbx.Params
		hoursAgo   []int
		want       string
	}{
		{"a weight", "weight", []string{"I50.22"}, dbx.Params{"weight_kg": 80.0}, []int{1, 200, 300}, "Weight: too few readings to judge, on 1 of the last 7 days."},
		{"three weights of a day", "weight", []string{"I50.22"}, dbx.Params{"weight_kg": 80.0}, []int{1, 2, 3}, "Weight: too few readings to judge, on 1 of the last 7 days."},
		{"two days", "weight", []string{"I50.22"}, dbx.Params{"weight_kg": 80.0}, []int{1, 2, 26}, "Weight: too few readings to judge, on 2 of the last 7 days."},
		{"three days", "weight", []string{"I50.22"}, dbx.Params{"weight_kg": 80.0}, []int{1, 26, 50}, "Weight controlled, 3 kg below the limit of 83 kg."},
		{"old weights", "weight", []string{"I50.22"}, dbx.Params{"weight_kg": 80.0}, []int{200, 224, 248}, "No weight in the last 7 days."},
		{"a morning of pressures", "blood_pressure", []string{"I10"}, dbx.Params{"systolic": 128.0, "diastolic": 76.0}, []int{1, 2, 3}, "Too few blood pressure readings to compare."},
		{"saturations", "pulse_oximetry", []string{"J44.9"}, dbx.Params{"spo2": 95.0}, []int{1, 2, 26}, "SpO₂: too few readings to judge, on 2 of the last 7 days."},
	} {
		id := c.enroll(object{"icd10_codes": test.codes})
		c.request(authz.Provider, "PUT", "/patients/"+id+"/vital-config/", object{"reason": "dry weight", "weight": object{"target_kg": 81, "over_target_kg": 2}}).want(200)
		for _, ago := range test.hoursAgo {
			c.storedReading(id, test.kind, c.now.Add(-time.Duration(ago)*time.Hour), test.values)
		}
		_, text := c.report(t, id)
		if !strings.Contains(text, test.want) {
			t.Errorf("%s: no %q in\n%s", test.name, test.want, text)
		}
	}
}
