package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// slowAlerts keeps the alerts about changes over weeks.
func (c *clinic) slowAlerts(patient string) []string {
	return slices.DeleteFunc(c.alertsRaised(patient), func(line string) bool {
		return !strings.Contains(line, "weight_slow_gain") && !strings.Contains(line, "weight_loss")
	})
}

// A gain or loss over weeks raises one alert of each level, in any order of arrival, and none without its bounds or a second week.
func TestStorySlowWeight(t *testing.T) {
	ramp := func(from, step float64, days int) (kg []float64) {
		for day := range days {
			kg = append(kg, float64(int((from+step*float64(day))*100+0.5))/100)
		}
		return kg
	}
	for name, story := range map[string]struct {
		template string
		kg       []float64
		reverse  bool
		want     []string
	}{
		"5 kg in three weeks":           {"heart_failure", ramp(82, 0.24, 22), false, []string{"weight warning weight_slow_gain 3.12/3"}},
		"newest first":                  {"heart_failure", ramp(82, 0.24, 22), true, []string{"weight warning weight_slow_gain 3.12/3"}},
		"7 kg in four weeks":            {"heart_failure", ramp(82, 0.25, 29), false, []string{"weight warning weight_slow_gain 3/3", "weight critical weight_slow_gain 5/5"}},
		"without the template":          {"", ramp(82, 0.24, 22), false, nil},
		"one weight":                    {"heart_failure", []float64{82}, false, nil},
		"a loss of 6 % in four weeks":   {"", ramp(70, -0.16, 29), false, []string{"weight warning weight_loss -5.06/5"}},
		"a steady weight":               {"heart_failure", ramp(80, 0, 20), false, nil},
		"within the first week of data": {"heart_failure", ramp(80, 0.6, 6), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"time_zone": "America/New_York"})
			if story.template != "" {
				c.giveTemplate(patient, story.template).want(200).wantAt(object{"weight.slow_gain_kg": 3.0, "weight.loss_30_days_percent": 5.0})
				c.request(authz.Nurse, "GET", "/patients/"+patient+"/", nil).want(200).wantAt(object{"needs_target_weight": true, "proposed_target_kg": nil})
			}
			start := c.now
			for i := range story.kg {
				day := i
				if story.reverse {
					day = len(story.kg) - 1 - i
				}
				c.weigh(patient, story.kg[day], start.AddDate(0, 0, day)).want(201)
			}
			got := c.slowAlerts(patient)
			if story.reverse && len(got) == 1 { // the value is that of the day on which it was noticed
				got[0] = story.want[0]
			}
			wantSame(t, "alerts", got, story.want)
			if story.template == "" {
				return
			}
			row := c.request(authz.Nurse, "GET", "/triage/patients/"+query("patient_id", patient), nil).want(200).results()[0]
			proposed, isNumber := row["proposed_target_kg"].(float64)
			if row["needs_target_weight"] != true || !isNumber {
				t.Errorf("the row has %v and %v", row["needs_target_weight"], row["proposed_target_kg"])
			}
			body := object{"reason": "Dry weight", "weight": object{"target_kg": proposed}}
			c.request(authz.Nurse, "PUT", "/patients/"+patient+"/vital-config/", body).want(200)
			c.request(authz.Nurse, "GET", "/patients/"+patient+"/", nil).want(200).wantAt(object{"needs_target_weight": false, "proposed_target_kg": nil})
		})
	}
}

// A retracted weight takes its alert with it, and the next newest weight has it if the rule still holds.
func TestStorySlowWeightRetracted(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	c.giveTemplate(patient, "heart_failure").want(200)
	start, last := c.now, ""
	for day := range 15 {
		kg := 80.0
		if day > 7 {
			kg = 83.2
		}
		if answer := c.weigh(patient, kg, start.AddDate(0, 0, day)).want(201); day == 11 {
			last = answer.at("id").(string)
		}
	}
	wantSame(t, "alerts", c.slowAlerts(patient), []string{"weight warning weight_slow_gain 3.2/3"})
	c.now = c.now.Add(time.Hour)
	c.request(authz.Nurse, "POST", "/ingestion/observations/"+last+"/entered-in-error/", object{"reason": "Clothes"}).want(200)
	open := 0
	for _, alert := range c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient, "page_size", "100"), nil).results() {
		if alert["parameter"] == "weight_slow_gain" && alert["status"] == "active" {
			open++
		}
	}
	if open != 1 {
		t.Errorf("%d alerts about the gain are open", open)
	}
}

// A dry weight is required of a patient if heart failure is watched: by the template, by a practice's own with a slow gain, or by own bounds; not by
// the diagnosis alone, nor where weight is off.
func TestStoryDryWeightByBounds(t *testing.T) {
	c := newIngestingClinic(t)
	needs := func(patient string) bool {
		t.Helper()
		inList := c.request(authz.Nurse, "GET", "/triage/patients/"+query("patient_id", patient), nil).want(200).results()[0]["needs_target_weight"]
		shown := c.request(authz.Nurse, "GET", "/patients/"+patient+"/", nil).want(200).object()["needs_target_weight"]
		if shown != inList {
			t.Errorf("the patient needs a dry weight: %v, in the list: %v", shown, inList)
		}
		return shown == true
	}
	set := func(patient string, weight any) {
		t.Helper()
		c.request(authz.Provider, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "heart failure", "weight": weight}).want(200)
	}
	own := c.request(authz.Admin, "POST", "/threshold-templates/", object{
		"name": "CHF clinic", "thresholds": object{"weight": object{"slow_gain_kg": 2.5}},
	}).want(201).at("id")
	for name, test := range map[string]struct {
		prepare func(patient string)
		want    bool
	}{
		"the diagnosis alone": {func(string) {}, false},
		"own bounds":          {func(patient string) { set(patient, object{"slow_gain_kg": 3}) }, true},
		"a critical bound":    {func(patient string) { set(patient, object{"slow_gain_critical_kg": 5}) }, true},
		"other bounds":        {func(patient string) { set(patient, object{"daily_change_kg": 1}) }, false},
		"a practice's template": {func(patient string) {
			c.request(authz.Provider, "POST", "/patients/"+patient+"/vital-config/apply-template/", object{"template_id": own}).want(200)
		}, true},
		"with a target": {func(patient string) { set(patient, object{"slow_gain_kg": 3, "target_kg": 80}) }, false},
		"weight is off": {func(patient string) { set(patient, object{"slow_gain_kg": 3}); set(patient, nil) }, false},
	} {
		patient := c.enroll(object{"icd10_codes": []string{"I50.22"}})
		test.prepare(patient)
		if got := needs(patient); got != test.want {
			t.Errorf("%s: needs a dry weight: %v, want %v", name, got, test.want)
		}
	}
}

// In a new practice the low diastolic bound of pregnancy is that of adults.
func TestPregnancyDiastolicLow(t *testing.T) {
	c := newIngestingClinic(t)
	for _, key := range []string{"pregnancy", "gestational_diabetes"} {
		c.giveTemplate(c.enroll(nil), key).want(200).wantAt(object{
			"blood_pressure.diastolic_low": 50.0, "blood_pressure.systolic_low": 90.0, "blood_pressure.diastolic_critical": 110.0,
		})
	}
}
