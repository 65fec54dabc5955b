package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// provisional lists the provisional bounds in an answer as "field value from template".
func (c *clinic) provisional(list any) (shown []string) {
	c.t.Helper()
	for _, one := range list.([]any) {
		bound := one.(object)
		shown = append(shown, fmt.Sprint(bound["field"], " ", bound["value"], " from ", bound["template_id"]))
	}
	slices.Sort(shown)
	return shown
}

// wantProvisional compares the provisional bounds of a patient's thresholds, record, row of the triage list and page of the list.
func (c *clinic) wantProvisional(patient string, want ...string) {
	c.t.Helper()
	shown := map[string][]string{
		"vital-config":  c.provisional(c.request(authz.Nurse, "GET", "/patients/"+patient+"/vital-config/", nil).want(200).at("provisional")),
		"patient":       c.provisional(c.request(authz.Nurse, "GET", "/patients/"+patient+"/", nil).want(200).at("provisional")),
		"triage row":    c.provisional(c.triageRow(patient)["provisional"]),
		"triage detail": c.provisional(c.triageRow(patient)["provisional"]),
	}
	slices.Sort(want)
	for where, got := range shown {
		if !slices.Equal(got, want) {
			c.t.Errorf("%s shows %q, want %q", where, got, want)
		}
	}
}

func (c *clinic) decline(patient, key string) reply {
	c.t.Helper()
	return c.request(authz.Nurse, "POST", "/patients/"+patient+"/vital-config/decline-template/",
		object{"template_id": c.templateOf(key)["id"], "reason": "Delivered six weeks ago."})
}

func (c *clinic) diagnose(patient string, codes ...string) {
	c.t.Helper()
	c.request(authz.Nurse, "PATCH", "/patients/"+patient+"/", object{"icd10_codes": codes}).want(200)
}

// newestAlert returns level and message of a patient's newest alert of a type.
func (c *clinic) newestAlert(patient, kind string) (level, message string) {
	c.t.Helper()
	for _, alert := range c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient), nil).results() {
		if alert["type"] == kind {
			return alert["level"].(string), alert["message"].(string)
		}
	}
	return "", ""
}

func (c *clinic) wantNewest(patient, kind, level string) {
	c.t.Helper()
	if got, message := c.newestAlert(patient, kind); got != level {
		c.t.Errorf("the newest alert is %q (%s), want %q", got, message, level)
	}
}

const (
	pregnancyBP   = "blood_pressure.systolic_critical 160 from 4"
	pregnancyBP2  = "blood_pressure.diastolic_critical 110 from 4"
	pregnancySpO2 = "pulse_oximetry.critical_low 90 from 4"
	feverOfWeak   = "body_temperature.critical 38 from 8"
)

// A diagnosed pre-eclampsia without a decision about the template: 164/112 is an emergency.
func TestStoryProposedPregnancy(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"date_of_birth": c.birthDate(31), "icd10_codes": []string{"O14.95"}})
	c.wantProvisional(id, pregnancyBP, pregnancyBP2, pregnancySpO2)
	c.request(authz.Nurse, "GET", "/patients/"+id+"/vital-config/", nil).wantAt(object{
		"blood_pressure.systolic_critical": 160.0, "blood_pressure.systolic_high": 140.0, "pulse.high": 110.0, "is_default": true,
	})
	row := c.triageRow(id)
	if row["needs_review"] != true || row["decide_by"] != c.now.Add(24*time.Hour).Format(time.RFC3339) || !strings.Contains(factorDetail(row, "proposed_templates"), "Pregnancy") {
		t.Errorf("the row is %v", row)
	}
	c.request(authz.Admin, "GET", "/dashboard/stats/", nil).want(200).wantAt(object{"undecided_templates": 1.0, "undecided_templates_overdue": 0.0})

	c.nurseMeasures(id, "blood-pressure", object{"systolic": 159, "diastolic": 109})
	c.wantNewest(id, "blood_pressure", "warning")
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 160, "diastolic": 88}) // at exactly the bound
	c.wantNewest(id, "blood_pressure", "critical")
	if _, message := c.newestAlert(id, "blood_pressure"); !strings.Contains(message, "provisional") || !strings.Contains(message, "Pregnancy") {
		t.Errorf("the message is %q", message)
	}
	if list := c.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", id), nil).results(); len(list) != 1 || list[0]["priority"] != "stat" {
		t.Errorf("the escalations are %v", list)
	}

	// A preview of changed limits is judged as the readings will be.
	c.request(authz.Nurse, "POST", "/triage/simulate-thresholds/", object{"patient_id": id, "pulse": object{"high": 105}}).want(200).
		wantAt(object{"simulated.critical": 1.0, "missed_critical.count": 0.0})

	c.giveTemplate(id, "pregnancy").want(200)
	c.wantProvisional(id)
	if row := c.triageRow(id); row["decide_by"] != nil || factorDetail(row, "proposed_templates") != "" {
		t.Errorf("the row is %v", row)
	}
}

// The task is overdue after a day.
func TestUndecidedTemplateIsOverdue(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"Z94.0"}})
	due := c.triageRow(id)["decide_by"]
	c.now = c.now.Add(24*time.Hour + time.Minute)
	c.nurseMeasures(id, "pulse-oximetry", object{"spo2": 97})
	if got := c.triageRow(id)["decide_by"]; got != due || due == nil {
		t.Errorf("a reading moved the deadline from %v to %v", due, got)
	}
	c.request(authz.Admin, "GET", "/dashboard/stats/", nil).want(200).wantAt(object{"undecided_templates": 1.0, "undecided_templates_overdue": 1.0})
}

func TestDecliningATemplate(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"date_of_birth": c.birthDate(31), "icd10_codes": []string{"O90.89"}})
	path := "/patients/" + id + "/vital-config/decline-template/"
	c.wantProvisional(id, pregnancyBP, pregnancyBP2, pregnancySpO2)
	c.request(authz.Nurse, "POST", path, object{}).wantFields("template_id", "reason")
	c.request(authz.Nurse, "POST", path, object{"template_id": 4, "reason": "  "}).wantFields("reason")
	c.request(authz.Nurse, "POST", path, object{"template_id": 999, "reason": "x"}).want(404)
	c.request(authz.Nurse, "POST", path, object{"template_id": 3, "reason": "x"}).want(409)
	c.wantRoles("POST", "/patients/"+unknownPatient+"/vital-config/decline-template/", object{"template_id": 1, "reason": "x"}, archivers...)

	c.decline(id, "pregnancy").want(200).wantAt(object{"blood_pressure.systolic_critical": 180.0, "is_default": true})
	c.decline(id, "pregnancy").want(200)
	declines := 0
	for _, event := range c.events(id) {
		if event == "threshold.decline" {
			declines++
		}
	}
	if declines != 1 {
		t.Errorf("%d entries tell of the decision", declines)
	}
	c.wantProvisional(id)
	c.request(authz.Nurse, "GET", "/patients/"+id+"/", nil).wantAt(object{"proposed_template": nil})
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 164, "diastolic": 112})
	c.wantNewest(id, "blood_pressure", "warning")

	// Another phone number and the same codes in another order or spelling are no new diagnosis.
	c.request(authz.Nurse, "PATCH", "/patients/"+id+"/", object{"phone": "+12125550177", "icd10_codes": []string{"o90.89"}}).want(200)
	c.wantProvisional(id)
	c.diagnose(id, "O90.89", "I10")
	c.wantProvisional(id, pregnancyBP, pregnancyBP2, pregnancySpO2)
	c.decline(id, "pregnancy").want(200)
	c.diagnose(id, "I10", "O90.89")
	c.wantProvisional(id)
	// The end of a diagnosis ends the decision: the next pregnancy is a new one.
	c.diagnose(id, "I10")
	c.wantProvisional(id)
	c.diagnose(id, "I10", "O90.89")
	c.wantProvisional(id, pregnancyBP, pregnancyBP2, pregnancySpO2)
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 150, "diastolic": 110})
	c.wantNewest(id, "blood_pressure", "critical")
}

// Pregnancy and the time after birth, and weak immunity.
func TestProposedDiagnoses(t *testing.T) {
	c := newIngestingClinic(t)
	for codes, want := range map[string][]string{
		"O72.1": {pregnancyBP, pregnancyBP2, pregnancySpO2}, "O86.4": {pregnancyBP, pregnancyBP2, pregnancySpO2},
		"o92.70": {pregnancyBP, pregnancyBP2, pregnancySpO2}, "Z39.2": {pregnancyBP, pregnancyBP2, pregnancySpO2},
		"O80":   {pregnancyBP, pregnancyBP2, pregnancySpO2},
		"Z94.0": {feverOfWeak}, "D70.1": {feverOfWeak}, "D84.821": {feverOfWeak}, "d80.1": {feverOfWeak}, "D83.9": {feverOfWeak},
		"D85.9": nil, "D71": nil, "Z95.1": nil, "J44.9": nil, "E11.9": nil, "I10": nil,
		"I50.22":             {"weight.critical_change_kg 4 from 2", "weight.slow_gain_critical_kg 5 from 2"},
		"Z94.0 O14.95 J44.9": {feverOfWeak, pregnancyBP, pregnancyBP2, pregnancySpO2},
	} {
		t.Run(codes, func(t *testing.T) {
			id := c.enroll(object{"date_of_birth": c.birthDate(31), "icd10_codes": strings.Fields(codes)})
			inner := *c
			inner.t = t
			inner.wantProvisional(id, want...)
		})
	}
}

// Fever after a transplant, before anyone decided.
func TestStoryFeverAfterTransplant(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"Z94.0", "D84.821"}})
	c.nurseMeasures(id, "body-temperature", object{"temperature_c": 37.9})
	c.wantLevelsByType(id, map[string]string{}) // a warning bound of a proposal is not in force
	c.nurseMeasures(id, "body-temperature", object{"temperature_c": 38.0})
	c.wantNewest(id, "body_temperature", "critical")
	c.giveTemplate(id, "immunosuppressed").want(200).wantAt(object{
		"body_temperature.high": 37.8, "body_temperature.critical": 38.0, "body_temperature.critical_low": 35.0,
	})
}

// A looser bound of a proposal is not used, and the alert states that one is proposed.
func TestLooserProposal(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"J44.1"}})
	c.wantProvisional(id)
	if row := c.triageRow(id); row["decide_by"] != nil || row["needs_review"] != false {
		t.Errorf("the row is %v", row)
	}
	c.nurseMeasures(id, "pulse-oximetry", object{"spo2": 88})
	c.wantNewest(id, "pulse_oximetry", "critical")
	if _, message := c.newestAlert(id, "pulse_oximetry"); !strings.Contains(message, "COPD") || !strings.Contains(message, "85") || !strings.Contains(message, "proposed") {
		t.Errorf("the message is %q", message)
	}
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 190, "diastolic": 88})
	if _, message := c.newestAlert(id, "blood_pressure"); strings.Contains(message, "proposed") {
		t.Errorf("the message is %q", message)
	}
}

// A change of the practice's template, or its end, takes effect at once.
func TestProposedTemplateChanges(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"N18.6"}})
	c.wantProvisional(id)
	body := object{"name": "Dialysis", "diagnoses": []string{"n18.6"}, "thresholds": object{"pulse": object{"high": 100, "critical": 120}}}
	made := c.request(authz.Admin, "POST", "/threshold-templates/", body).want(201)
	path := fmt.Sprintf("/threshold-templates/%v/", made.at("id"))
	bound := func(value int) string { return fmt.Sprint("pulse.critical ", value, " from ", made.at("id")) }
	c.wantProvisional(id, bound(120))
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 120, "diastolic": 80, "pulse": 119})
	c.wantNewest(id, "pulse", "warning")
	body["thresholds"] = object{"pulse": object{"high": 100, "critical": 118}}
	c.request(authz.Admin, "PUT", path, body).want(200)
	c.wantProvisional(id, bound(118))
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 120, "diastolic": 80, "pulse": 118})
	c.wantNewest(id, "pulse", "critical")
	body["diagnoses"] = []string{"N18.5"}
	c.request(authz.Admin, "PUT", path, body).want(200)
	c.wantProvisional(id)
	body["diagnoses"] = []string{"N18"}
	c.request(authz.Admin, "PUT", path, body).want(200)
	c.wantProvisional(id, bound(118))
	c.request(authz.Admin, "DELETE", path, nil).want(204)
	c.wantProvisional(id)
}

// A bound of the patient's own or of the practice that is stricter stays; a looser one gives way; a disabled group stays disabled.
func TestProvisionalAgainstOwnBounds(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"date_of_birth": c.birthDate(31), "icd10_codes": []string{"O14.95"}})
	config := "/patients/" + id + "/vital-config/"
	c.request(authz.Nurse, "PUT", config, object{"reason": "x", "blood_pressure": object{"systolic_critical": 155, "diastolic_high": 112, "diastolic_critical": 130}}).
		want(200).wantAt(object{"blood_pressure.systolic_critical": 155.0, "blood_pressure.diastolic_critical": 110.0})
	c.wantProvisional(id, pregnancyBP2, pregnancySpO2)
	c.request(authz.Nurse, "PUT", config, object{"reason": "x", "pulse_oximetry": nil}).want(200).wantAt(object{"pulse_oximetry": nil})
	c.wantProvisional(id, pregnancyBP2)
	c.request(authz.Nurse, "PUT", config, object{"reason": "x", "blood_pressure": object{"systolic_critical": nil}}).want(200)
	c.wantProvisional(id, pregnancyBP, pregnancyBP2)
	if log := c.changes("patient_id", id); !slices.Contains(log, "diastolic_critical 120→130") {
		t.Errorf("the log has %q", log)
	}
	c.request(authz.Admin, "PUT", "/settings/default-thresholds/", object{"reason": "x", "pulse_oximetry": object{"low": 94, "critical_low": 92}}).want(200)
	c.request(authz.Nurse, "PUT", config, object{"reason": "x", "pulse_oximetry": object{}}).want(200)
	c.wantProvisional(id, pregnancyBP, pregnancyBP2)
}

// A template given again asks before it loosens what a person set.
func TestTemplateWouldLoosen(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"I50.22"}})
	config := "/patients/" + id + "/vital-config/"
	c.giveTemplate(id, "heart_failure").want(200)
	c.giveTemplate(id, "heart_failure").want(200) // nothing was set by a person
	c.request(authz.Nurse, "PUT", config, object{"reason": "x", "weight": object{"change_threshold_kg": 1.5, "over_target_kg": 5}}).want(200)
	answer := c.giveTemplate(id, "heart_failure").want(409)
	if answer.at("code") != "would_loosen" || !strings.Contains(answer.body, "weight.change_threshold_kg") || strings.Contains(answer.body, "over_target_kg") {
		t.Errorf("the answer is %s", answer.body)
	}
	c.request(authz.Nurse, "GET", config, nil).wantAt(object{"weight.change_threshold_kg": 1.5})
	c.request(authz.Nurse, "POST", config+"apply-template/", object{"template_id": 2, "loosen": "yes"}).wantFields("loosen")
	c.request(authz.Nurse, "POST", config+"apply-template/", object{"template_id": 2, "loosen": true}).want(200).wantAt(object{"weight.change_threshold_kg": 2.0})
	// Stricter than a person's bound: nothing to ask.
	c.request(authz.Nurse, "PUT", config, object{"reason": "x", "weight": object{"change_threshold_kg": 3}}).want(200)
	c.giveTemplate(id, "heart_failure").want(200).wantAt(object{"weight.change_threshold_kg": 2.0})
}

// Infants under three months: fever is critical without a template.
func TestFeverOfInfants(t *testing.T) {
	for months, want := range map[int]map[string]string{2: {"body_temperature": "critical"}, 3: {}} {
		c := newIngestingClinic(t)
		born := c.now.In(newYork).AddDate(0, -months, 0)
		if months == 2 {
			born = born.AddDate(0, -1, 1) // three months tomorrow
		}
		id := c.enroll(object{"date_of_birth": born.Format(time.DateOnly)})
		c.nurseMeasures(id, "body-temperature", object{"temperature_c": 37.9})
		c.wantLevelsByType(id, map[string]string{})
		c.nurseMeasures(id, "body-temperature", object{"temperature_c": 38.0})
		c.wantLevelsByType(id, want)
		if c.triageRow(id)["needs_thresholds"] != true {
			t.Error("the list does not show that the infant needs thresholds")
		}
	}
}
