package routes_test

import (
	"net/http"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A member that is no bound is refused with its path, wherever bounds are sent, and nothing of the body is stored.
func TestUnknownBounds(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(nil)
	config := "/patients/" + patient + "/vital-config/"
	for name, test := range map[string]struct {
		bounds object
		wrong  []string
	}{
		"misspelled":           {object{"blood_pressure": object{"systolic_hihg": 130}}, []string{"blood_pressure.systolic_hihg"}},
		"beside a valid one":   {object{"pulse": object{"high": 105, "hi": 100}}, []string{"pulse.hi"}},
		"null":                 {object{"pulse": object{"limit": nil}}, []string{"pulse.limit"}},
		"bound of another":     {object{"pulse_oximetry": object{"critical": 99}, "weight": object{"high": 90}}, []string{"pulse_oximetry.critical", "weight.high"}},
		"unknown group":        {object{"spo2": object{"low": 90}, "pulse": object{"high": 105}}, []string{"spo2"}},
		"group in capitals":    {object{"Pulse": object{"high": 105}}, []string{"Pulse"}},
		"bound at the top":     {object{"systolic_high": 130}, []string{"systolic_high"}},
		"nested too deep":      {object{"pulse": object{"high": object{"warning": 105}}}, []string{"pulse.high"}},
		"truth value":          {object{"pulse_oximetry": object{"high": true}}, []string{"pulse_oximetry.high"}},
		"list":                 {object{"blood_glucose": []object{{"high": 200}}}, []string{"blood_glucose"}},
		"saturation too high":  {object{"pulse_oximetry": object{"high": 101}}, []string{"pulse_oximetry.high"}},
		"high below low":       {object{"pulse_oximetry": object{"low": 92, "high": 90}}, []string{"pulse_oximetry.high"}},
		"fasting above high":   {object{"blood_glucose": object{"high": 140, "fasting_high": 141}}, []string{"blood_glucose.fasting_high"}},
		"fasting below low":    {object{"blood_glucose": object{"low": 80, "fasting_high": 80}}, []string{"blood_glucose.fasting_high"}},
		"fasting out of range": {object{"blood_glucose": object{"fasting_high": 601}}, []string{"blood_glucose.fasting_high"}},
	} {
		t.Run(name, func(t *testing.T) {
			body := object{"reason": "Tight control"}
			for group, bounds := range test.bounds {
				body[group] = bounds
			}
			var inTemplate []string
			for _, path := range test.wrong {
				inTemplate = append(inTemplate, "thresholds."+path)
			}
			for _, refused := range []reply{
				c.request(authz.Nurse, http.MethodPut, config, body),
				c.request(authz.Admin, http.MethodPut, "/settings/default-thresholds/", body),
				c.request(authz.Nurse, http.MethodPost, "/triage/simulate-thresholds/", test.bounds),
			} {
				refused.t = t
				refused.wantFields(test.wrong...)
			}
			template := c.request(authz.Admin, http.MethodPost, "/threshold-templates/", object{"name": "Tight", "thresholds": test.bounds})
			template.t = t
			template.wantFields(inTemplate...)
		})
	}
	c.request(authz.Nurse, http.MethodPut, config, object{"reason": "x", "blood_glucose": object{"fasting_high": 260}}).
		wantFields("blood_glucose.fasting_high") // above the practice's bound of 250
	for _, bound := range []float64{70, 69, 50} {
		c.request(authz.Nurse, http.MethodPut, config, object{"reason": "x", "blood_glucose": object{"fasting_high": bound}}).
			wantFields("blood_glucose.fasting_high") // not above the practice's low bound of 70
	}
	c.request(authz.Nurse, http.MethodGet, config, nil).want(200).
		wantAt(object{"is_default": true, "updated_at": nil, "pulse.high": 110.0, "pulse_oximetry.high": nil, "blood_glucose.fasting_high": nil})
	if log := c.changes(); len(log) != 0 {
		t.Errorf("refused changes are logged: %v", log)
	}

	read := c.request(authz.Nurse, http.MethodGet, config, nil).want(200).object()
	read["reason"] = "An answer sent back as it was read"
	c.request(authz.Nurse, http.MethodPut, config, read).want(200)
}

// A patient who may retain CO2 is warned about from an upper bound; the template for COPD on home oxygen has one, that without oxygen has none.
func TestSaturationUpperBound(t *testing.T) {
	c := newIngestingClinic(t)
	for _, test := range []struct {
		template string
		spo2     float64
		want     map[string]string
	}{
		{"copd", 98, map[string]string{}},
		{"copd_oxygen", 95, map[string]string{}},
		{"copd_oxygen", 96, map[string]string{"pulse_oximetry": "warning"}},
		{"copd_oxygen", 100, map[string]string{"pulse_oximetry": "warning"}},
		{"copd_oxygen", 85, map[string]string{"pulse_oximetry": "critical"}},
	} {
		patient := c.enroll(nil)
		c.giveTemplate(patient, test.template).want(200)
		c.nurseMeasures(patient, "pulse-oximetry", object{"spo2": test.spo2})
		c.wantLevelsByType(patient, test.want)
	}
	number := func(key string) any { return c.templateOf(key)["id"] }
	for _, test := range []struct {
		codes []string
		want  any
	}{
		{[]string{"J44.9"}, number("copd")},
		{[]string{"J44.9", "Z99.81"}, number("copd_oxygen")},
		{[]string{"Z99.81", "J44.1"}, number("copd_oxygen")},
		{[]string{"J84.10", "Z99.81"}, nil},
	} {
		patient := c.enroll(object{"icd10_codes": test.codes})
		c.request(authz.Nurse, http.MethodGet, "/patients/"+patient+"/", nil).want(200).wantAt(object{"proposed_template": test.want})
		if test.want == number("copd_oxygen") {
			c.giveTemplate(patient, "copd_oxygen").want(200).wantAt(object{"pulse_oximetry.high": 96.0})
			c.request(authz.Nurse, http.MethodGet, "/patients/"+patient+"/", nil).want(200).wantAt(object{"proposed_template": nil})
		}
	}
}

// A reading marked as fasting has a bound of its own; any other, or one without the marker, has the looser one.
func TestFastingGlucose(t *testing.T) {
	c := newIngestingClinic(t)
	for _, test := range []struct {
		config object // nil for the template of diabetes in pregnancy
		meal   any
		mgDL   float64
		want   string
	}{
		{nil, "fasting", 94, ""},
		{nil, "fasting", 95, "95"},
		{nil, "fasting", 139, "95"},
		{nil, "fasting", 200, "200"},
		{nil, "fasting", 63, "63"},
		{nil, nil, 139, ""},
		{nil, nil, 140, "140"},
		{nil, "before_meal", 120, ""},
		{nil, "after_meal", 139, ""},
		{nil, "random", 141, "140"},
		{object{}, "fasting", 190, ""},
		{object{"fasting_high": 130}, "fasting", 130, "130"},
		{object{"fasting_high": 130}, "after_meal", 249, ""},
		{object{"fasting_high": 180, "high": nil}, "fasting", 190, "180"},
		{object{"fasting_high": 180, "high": nil}, nil, 260, ""},
	} {
		patient := c.enroll(nil)
		if test.config == nil {
			c.giveTemplate(patient, "gestational_diabetes").want(200).wantAt(object{"blood_glucose.fasting_high": 95.0})
		} else {
			body := object{"reason": "As discussed", "blood_glucose": test.config}
			c.request(authz.Nurse, http.MethodPut, "/patients/"+patient+"/vital-config/", body).want(200)
		}
		c.nurseMeasures(patient, "blood-glucose", object{"glucose_mg_dl": test.mgDL, "meal_context": test.meal})
		level := map[string]string{"": "", "54": "critical", "200": "critical"}
		got := ""
		for _, alert := range c.request(authz.Nurse, http.MethodGet, "/alerts/"+query("patient_id", patient), nil).results() {
			got = formatBound(alert["threshold"])
			if want, isCritical := level[got]; isCritical && alert["level"] != want {
				t.Errorf("%v: level %v", test, alert["level"])
			}
		}
		if got != test.want {
			t.Errorf("%v: the bound reached is %q", test, got)
		}
		row := c.row(patient)
		if state := row["concern"].(object)["state"]; (state == "in_range") != (test.want == "") {
			t.Errorf("%v: the list shows %v", test, state)
		}
	}
}

func formatBound(value any) string {
	number, _ := value.(float64)
	return vitals.FormatNumber(number)
}

// A mistyped warning bound never costs an inherited critical bound: it is refused with its path, unless the caller decides about both.
func TestInheritedCriticalBoundIsKept(t *testing.T) {
	c := newClinic(t)
	c.request(authz.Admin, http.MethodPut, "/settings/default-thresholds/", object{"reason": "x", "weight": object{"slow_gain_kg": 3, "slow_gain_critical_kg": 5}}).want(200)
	patient := c.enroll(nil)
	config := "/patients/" + patient + "/vital-config/"
	for wrong, bounds := range map[string]object{
		"blood_pressure.systolic_high": {"blood_pressure": object{"systolic_high": 240}},
		"blood_pressure.diastolic_low": {"blood_pressure": object{"diastolic_low": 40, "diastolic_high": 95}},
		"blood_pressure.systolic_low":  {"blood_pressure": object{"systolic_low": 190}},
		"pulse.high":                   {"pulse": object{"high": 130}},
		"pulse.critical":               {"pulse": object{"critical": 39}},
		"pulse_oximetry.low":           {"pulse_oximetry": object{"low": 82}},
		"blood_glucose.high":           {"blood_glucose": object{"high": 480}},
		"body_temperature.low":         {"body_temperature": object{"low": 33.9}},
		"weight.slow_gain_kg":          {"weight": object{"slow_gain_kg": 20}},
	} {
		t.Run(wrong, func(t *testing.T) {
			body := object{"reason": "A slip of the finger", "patient_id": patient}
			for group, values := range bounds {
				body[group] = values
			}
			for _, refused := range []reply{
				c.request(authz.Nurse, http.MethodPut, config, body),
				c.request(authz.Nurse, http.MethodPost, "/triage/simulate-thresholds/", body),
			} {
				refused.t = t
				refused.wantFields(wrong)
			}
		})
	}
	c.request(authz.Nurse, http.MethodGet, config, nil).wantAt(object{"is_default": true, "blood_pressure.systolic_critical": 180.0})
	c.request(authz.Nurse, http.MethodPut, config, object{"reason": "Both", "blood_pressure": object{"systolic_high": 190, "systolic_critical": 220}}).want(200)
	c.request(authz.Nurse, http.MethodPut, config, object{"reason": "None", "pulse": object{"low": 40, "critical_low": nil}}).want(200).
		wantAt(object{"pulse.low": 40.0, "pulse.critical_low": nil})

	// A template is a change like any other.
	template := c.request(authz.Admin, http.MethodPost, "/threshold-templates/", object{"name": "High altitude", "thresholds": object{"pulse_oximetry": object{"low": 85}}}).want(201).object()
	c.request(authz.Provider, http.MethodPost, config+"apply-template/", object{"template_id": template["id"]}).wantFields("pulse_oximetry.low")

	// A stricter bound of the practice reaches a patient whose warning bound lies beyond it.
	c.request(authz.Nurse, http.MethodPut, config, object{"reason": "Wide", "body_temperature": object{"high": 38.9}}).want(200)
	c.request(authz.Admin, http.MethodPut, "/settings/default-thresholds/", object{"reason": "Flu", "body_temperature": object{"critical": 38.5}}).want(200)
	read := c.request(authz.Nurse, http.MethodGet, config, nil).want(200).wantAt(object{"body_temperature.critical": 38.5, "body_temperature.high": nil}).object()
	read["reason"] = "An answer sent back as it was read"
	c.request(authz.Nurse, http.MethodPut, config, read).want(200)
}
