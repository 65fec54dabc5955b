package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// templateOf finds a shipped template by its key.
func (c *clinic) templateOf(key string) object {
	c.t.Helper()
	for _, t := range c.request(authz.Nurse, "GET", "/threshold-templates/", nil).results() {
		if t["key"] == key {
			return t
		}
	}
	c.t.Fatalf("there is no template %s", key)
	return nil
}

func (c *clinic) giveTemplate(patient, key string) reply {
	c.t.Helper()
	return c.request(authz.Nurse, "POST", "/patients/"+patient+"/vital-config/apply-template/", object{"template_id": c.templateOf(key)["id"]})
}

// birthDate returns the birth date of a person who turned the given age yesterday.
func (c *clinic) birthDate(years int) string {
	return c.now.In(newYork).AddDate(-years, 0, -1).Format(time.DateOnly)
}

// levelsByType returns the levels of a patient's reading alerts, by type.
func (c *clinic) levelsByType(patient string) map[string]string {
	c.t.Helper()
	raised := map[string]string{}
	for _, alert := range c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient), nil).results() {
		raised[alert["type"].(string)] = alert["level"].(string)
	}
	return raised
}

func (c *clinic) wantLevelsByType(patient string, want map[string]string) {
	c.t.Helper()
	if got := c.levelsByType(patient); fmt.Sprint(got) != fmt.Sprint(want) {
		c.t.Errorf("the alerts are %v, want %v", got, want)
	}
}

// nurseMeasures stores a current reading of the kind.
func (c *clinic) nurseMeasures(patient, kind string, values object) {
	c.t.Helper()
	body := object{"patient_id": patient, "measured_at": c.now.Format(time.RFC3339)}
	for name, value := range values {
		body[name] = value
	}
	c.request(authz.Nurse, "POST", "/ingestion/"+kind+"/", body).want(201)
	c.now = c.now.Add(time.Minute)
}

func (c *clinic) triageRow(patient string) object {
	c.t.Helper()
	return c.request(authz.Nurse, "GET", "/triage/patients/"+query("patient_id", patient), nil).results()[0]
}

// factorDetail returns the detail of a factor of a patient's score; "" if it has none.
func factorDetail(summary object, name string) string {
	for _, f := range summary["risk_factors"].([]any) {
		if f.(object)["factor"] == name {
			return f.(object)["detail"].(string)
		}
	}
	return ""
}

func TestStoryChildOfSeven(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"date_of_birth": c.birthDate(7)})
	patient := "/patients/" + id + "/"
	c.request(authz.Nurse, "GET", patient, nil).want(200).wantAt(object{"needs_thresholds": true, "proposed_template": nil})

	// Normal for a child, and beyond an adult's bounds.
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 122, "diastolic": 80, "pulse": 132})
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 85, "diastolic": 45, "pulse": 49})
	c.nurseMeasures(id, "pulse-oximetry", object{"spo2": 91})
	c.nurseMeasures(id, "body-temperature", object{"temperature_c": 39.4})
	c.nurseMeasures(id, "weight", object{"weight_kg": 22})
	c.nurseMeasures(id, "weight", object{"weight_kg": 25})
	c.wantLevelsByType(id, map[string]string{})
	c.request(authz.Nurse, "GET", patient+"vital-config/", nil).want(200).wantAt(object{
		"is_default": true, "blood_pressure.systolic_high": nil, "blood_pressure.systolic_low": nil, "pulse.high": nil, "weight.change_threshold_kg": nil,
	})

	// The list, its reasons and the compliance figures show the missing bounds.
	summary := c.triageRow(id)
	want := "A minor without thresholds for: blood pressure, pulse, pulse oximetry, body temperature, weight."
	if summary["needs_review"] != true || summary["needs_thresholds"] != true || factorDetail(summary, "thresholds") != want {
		t.Errorf("the triage list has %v", summary)
	}
	c.request(authz.Nurse, "POST", "/triage/patients/"+id+"/review/", object{}).want(200).wantAt(object{"needs_review": true, "needs_thresholds": true})
	c.request(authz.Admin, "GET", "/dashboard/stats/", nil).want(200).wantAt(object{"patients_needing_thresholds": 1.0})

	// Once all measured parameters have bounds, the notice ends and the bounds apply.
	own := object{"reason": "Fleming, Lancet, 2011", "blood_pressure": object{"systolic_high": 115, "systolic_critical": 130}, "pulse": object{"low": 65, "high": 130}}
	c.request(authz.Nurse, "PUT", patient+"vital-config/", own).want(200)
	c.request(authz.Nurse, "GET", patient, nil).wantAt(object{"needs_thresholds": true})
	rest := object{"reason": "x", "pulse_oximetry": object{"low": 92, "critical_low": 89}, "body_temperature": object{"high": 38.5}, "weight": nil}
	c.request(authz.Nurse, "PUT", patient+"vital-config/", rest).want(200)
	c.request(authz.Nurse, "GET", patient, nil).wantAt(object{"needs_thresholds": false})
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 122, "diastolic": 80})
	c.wantLevelsByType(id, map[string]string{"blood_pressure": "warning"})
	if summary := c.triageRow(id); summary["needs_thresholds"] != false || factorDetail(summary, "thresholds") != "" {
		t.Errorf("the triage list has %v", summary)
	}

	// A device for another kind requires bounds for it at once.
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "GM-7", "patient_id": id, "device_type": "blood_glucose", "shipping_address": "1 Elm Street"}).want(200)
	c.request(authz.Nurse, "GET", patient, nil).wantAt(object{"needs_thresholds": true})
	if got := factorDetail(c.triageRow(id), "thresholds"); got != "A minor without thresholds for: blood glucose." {
		t.Errorf("the reason is %q", got)
	}
	c.giveTemplate(id, "diabetes").want(200)
	c.request(authz.Nurse, "GET", patient, nil).wantAt(object{"needs_thresholds": false})
}

// A value that is dangerous at every age alerts even while bounds are missing.
func TestMinorsCriticalValues(t *testing.T) {
	for _, test := range []struct {
		kind   string
		values object
		want   map[string]string
	}{
		{"pulse-oximetry", object{"spo2": 70}, map[string]string{"pulse_oximetry": "critical"}},
		{"pulse-oximetry", object{"spo2": 89}, map[string]string{"pulse_oximetry": "critical"}},
		{"pulse-oximetry", object{"spo2": 90}, map[string]string{}},
		{"blood-pressure", object{"systolic": 185, "diastolic": 110, "pulse": 230}, map[string]string{"blood_pressure": "critical", "pulse": "critical"}},
		{"blood-pressure", object{"systolic": 179, "diastolic": 119, "pulse": 219}, map[string]string{}},
		{"blood-glucose", object{"glucose_mg_dl": 50}, map[string]string{"blood_glucose": "critical"}},
		{"body-temperature", object{"temperature_c": 40.1}, map[string]string{"body_temperature": "critical"}},
	} {
		c := newIngestingClinic(t)
		id := c.enroll(object{"date_of_birth": c.birthDate(7)})
		c.nurseMeasures(id, test.kind, test.values)
		c.wantLevelsByType(id, test.want)
	}
}

func TestStoryPregnancy(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"date_of_birth": c.birthDate(31), "icd10_codes": []string{"O13.3"}})
	patient := "/patients/" + id + "/"
	c.request(authz.Nurse, "GET", patient, nil).want(200).wantAt(object{"proposed_template": c.templateOf("pregnancy")["id"], "needs_thresholds": false})

	c.giveTemplate(id, "pregnancy").want(200).wantAt(object{
		"is_default": false, "blood_pressure.systolic_critical": 160.0, "blood_pressure.diastolic_critical": 110.0, "blood_pressure.systolic_high": 140.0,
		"pulse_oximetry.low": 94.0, "blood_glucose.critical": 300.0, "updated_by": c.people[authz.Nurse].Email(),
	})
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 162, "diastolic": 112})
	c.wantLevelsByType(id, map[string]string{"blood_pressure": "critical"})
	if list := c.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", id), nil).results(); len(list) != 1 || list[0]["priority"] != "stat" {
		t.Errorf("the escalations are %v", list)
	}
	c.request(authz.Nurse, "GET", patient, nil).wantAt(object{"proposed_template": nil})

	want := []string{"systolic_critical 180→160", "diastolic_critical 120→110", "pulse_high 110→120", "spo2_critical_low 88→90", "spo2_low 92→94"}
	if got := c.changes("patient_id", id); !slices.Equal(got, want) {
		t.Errorf("the change log has %v, want %v", got, want)
	}
	log := c.request(authz.Nurse, "GET", "/threshold-changes/"+query("patient_id", id), nil).results()
	if log[0]["reason"] != "Template Pregnancy, version 1." {
		t.Errorf("the reason is %v", log[0]["reason"])
	}
	if events := c.events(id); !slices.Contains(events, "threshold.update") {
		t.Errorf("the audit trail has %v", events)
	}
	applied := c.request(authz.Nurse, "GET", patient+"vital-config/", nil).at("templates").([]any)
	if len(applied) != 1 || applied[0].(object)["key"] != "pregnancy" || applied[0].(object)["version"] != 1.0 {
		t.Errorf("applied are %v", applied)
	}
}

func TestStoryCOPD(t *testing.T) {
	for spo2, want := range map[int]map[string]string{
		92: {}, 89: {}, 88: {}, 87: {"pulse_oximetry": "warning"}, 86: {"pulse_oximetry": "warning"}, 85: {"pulse_oximetry": "critical"}, 80: {"pulse_oximetry": "critical"},
	} {
		c := newIngestingClinic(t)
		id := c.enroll(object{"icd10_codes": []string{"J44.1"}})
		c.request(authz.Nurse, "GET", "/patients/"+id+"/", nil).wantAt(object{"proposed_template": c.templateOf("copd")["id"]})
		c.giveTemplate(id, "copd").want(200)
		c.nurseMeasures(id, "pulse-oximetry", object{"spo2": spo2})
		c.wantLevelsByType(id, want)
	}
}

// A reading is evaluated with a template applied just before it, although the writer caches the patient.
func TestTemplateReachesTheWriter(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"J44.9"}})
	c.nurseMeasures(id, "pulse-oximetry", object{"spo2": 95})
	c.giveTemplate(id, "copd").want(200)
	c.nurseMeasures(id, "pulse-oximetry", object{"spo2": 90})
	c.wantLevelsByType(id, map[string]string{})
	c.request(authz.Admin, "PUT", "/patients/"+id+"/", patientBody(object{"date_of_birth": c.birthDate(16)})).want(200)
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 145, "diastolic": 80, "pulse": 115})
	c.wantLevelsByType(id, map[string]string{})
	c.request(authz.Admin, "PUT", "/patients/"+id+"/", patientBody(object{"date_of_birth": c.birthDate(61)})).want(200)
	c.nurseMeasures(id, "blood-pressure", object{"systolic": 145, "diastolic": 80, "pulse": 115})
	c.wantLevelsByType(id, map[string]string{"blood_pressure": "warning", "pulse": "warning"})
}

func TestProposals(t *testing.T) {
	c := newClinic(t)
	children := c.request(authz.Admin, "POST", "/threshold-templates/", object{
		"name": "Children of 6 to 12 years", "min_age": 6, "max_age": 12, "thresholds": object{"pulse": object{"low": 65, "high": 130}}, "sources": []string{"Fleming, Lancet, 2011"},
	}).want(201)
	children.wantAt(object{"key": "children_of_6_to_12_years", "version": 1.0, "signed_off_by": nil, "thresholds.pulse.high": 130.0})
	asthma := c.request(authz.Admin, "POST", "/threshold-templates/", object{"name": "Overlap", "diagnoses": []string{"j44.89"}, "thresholds": object{"pulse": object{"high": 120}}}).want(201)
	for _, test := range []struct {
		age   int
		codes []string
		want  any
	}{
		{70, nil, nil},
		{70, []string{"I10"}, nil},
		{70, []string{"I50.22"}, "heart_failure"},
		{70, []string{"I11.0"}, "heart_failure"},
		{70, []string{"J44.9", "I50.9"}, "copd"}, // the first diagnosis
		{70, []string{"I50.9", "J44.9"}, "heart_failure"},
		{70, []string{"J44.89"}, asthma.at("id")}, // the more specific one
		{70, []string{"Z00.0", "E11.9"}, "diabetes"},
		{29, []string{"O24.410"}, "gestational_diabetes"},
		{29, []string{"Z34.01"}, "pregnancy"},
		{29, []string{"Z33.1"}, "pregnancy"},
		{16, []string{"O10.011"}, "pregnancy"},
		{9, []string{"E10.9"}, "diabetes"},
		{9, []string{"I50.9"}, children.at("id")}, // heart failure in adults differs
		{9, nil, children.at("id")},
		{13, nil, nil},
		{12, nil, children.at("id")},
		{5, nil, nil},
	} {
		id := c.enroll(object{"date_of_birth": c.birthDate(test.age), "icd10_codes": test.codes})
		want := test.want
		if key, isKey := want.(string); isKey {
			want = c.templateOf(key)["id"]
		}
		if got := c.request(authz.Nurse, "GET", "/patients/"+id+"/", nil).at("proposed_template"); got != want {
			t.Errorf("%d years, %v: %v is proposed, want %v", test.age, test.codes, got, want)
		}
	}
	// A further diagnosis proposes the template that was not applied; the list agrees with the patient's own answer.
	id := c.enroll(object{"icd10_codes": []string{"I50.9"}, "last_name": "Zuse"})
	c.giveTemplate(id, "heart_failure").want(200).wantAt(object{"weight.change_threshold_kg": 2.0, "weight.critical_change_kg": 4.0})
	c.request(authz.Nurse, "GET", "/patients/"+id+"/", nil).wantAt(object{"proposed_template": nil})
	c.request(authz.Nurse, "PUT", "/patients/"+id+"/", patientBody(object{"icd10_codes": []string{"I50.9", "J44.0"}, "last_name": "Zuse"})).want(200).
		wantAt(object{"proposed_template": c.templateOf("copd")["id"]})
	listed := c.request(authz.Nurse, "GET", "/patients/"+query("search", "Zuse"), nil).results()
	if len(listed) != 1 || listed[0]["proposed_template"] != c.templateOf("copd")["id"] || listed[0]["needs_thresholds"] != false {
		t.Errorf("the list has %v", listed)
	}
	c.giveTemplate(id, "copd").want(200).wantAt(object{"weight.change_threshold_kg": 2.0, "pulse_oximetry.low": 87.0})
}

func TestShippedTemplates(t *testing.T) {
	c := newClinic(t)
	list := c.request(authz.MA, "GET", "/threshold-templates/", nil).results()
	var keys []string
	for _, shipped := range list {
		keys = append(keys, shipped["key"].(string))
		sources := fmt.Sprint(shipped["sources"])
		if shipped["signed_off_by"] != nil || shipped["signed_off_at"] != nil || shipped["version"] != 1.0 || !strings.Contains(sources, "20") {
			t.Errorf("shipped is %v", shipped)
		}
		// Each is valid, as saving it again shows, and saving it unchanged has no effect.
		path := fmt.Sprintf("/threshold-templates/%v/", shipped["id"])
		again := c.request(authz.Admin, "PUT", path, shipped).want(200)
		if !again.sameAs(shipped) || !c.request(authz.Nurse, "GET", path, nil).want(200).sameAs(shipped) {
			t.Errorf("%v became %s", shipped, again.body)
		}
	}
	if want := []string{"adult", "heart_failure", "copd", "pregnancy", "diabetes", "gestational_diabetes", "copd_oxygen", "immunosuppressed"}; !slices.Equal(keys, want) {
		t.Errorf("shipped are %v, want %v", keys, want)
	}
	// The template for adults equals the practice's defaults.
	id := c.enroll(nil)
	before := c.request(authz.Nurse, "GET", "/patients/"+id+"/vital-config/", nil).object()
	after := c.giveTemplate(id, "adult").want(200).object()
	for _, group := range []string{"blood_pressure", "pulse", "pulse_oximetry", "blood_glucose", "body_temperature", "weight"} {
		if fmt.Sprint(before[group]) != fmt.Sprint(after[group]) {
			t.Errorf("%s was %v and is %v", group, before[group], after[group])
		}
	}
	if got := c.changes("patient_id", id); len(got) != 0 || !slices.Contains(c.events(id), "threshold.update") {
		t.Errorf("the change log has %v", got)
	}
}

// The dry weight is set per patient: a template does not contain it, and must not remove it.
func TestTemplateKeepsTheTarget(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(nil)
	config := "/patients/" + id + "/vital-config/"
	c.request(authz.Nurse, "PUT", config, object{"reason": "x", "weight": object{"target_kg": 80, "daily_change_kg": 1.5, "over_target_kg": 3}}).want(200)
	c.giveTemplate(id, "heart_failure").want(200).wantAt(object{"weight.target_kg": 80.0, "weight.change_threshold_kg": 2.0, "weight.daily_change_kg": 1.35})
	c.nurseMeasures(id, "weight", object{"weight_kg": 84.2})
	c.wantLevelsByType(id, map[string]string{"weight": "warning"})

	// A group that a template turns off is off, and a target that a template names is set.
	for name, weight := range map[string]any{"named": object{"target_kg": 75}, "off": nil} {
		c.request(authz.Admin, "POST", "/threshold-templates/", object{"name": name, "thresholds": object{"weight": weight}}).want(201)
	}
	c.giveTemplate(id, "named").want(200).wantAt(object{"weight.target_kg": 75.0})
	c.giveTemplate(id, "off").want(200).wantAt(object{"weight": nil})
}

// A template applied again is listed once, with its last use; the audit trail has each.
func TestTemplateAppliedAgain(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	for _, key := range []string{"copd", "copd", "diabetes", "copd"} {
		c.now = c.now.Add(time.Minute)
		c.giveTemplate(id, key).want(200)
	}
	var listed []string
	for _, given := range c.request(authz.Nurse, "GET", "/patients/"+id+"/vital-config/", nil).at("templates").([]any) {
		listed = append(listed, fmt.Sprint(given.(object)["key"], " ", given.(object)["at"]))
	}
	if want := []string{"diabetes " + c.now.Add(-time.Minute).Format(time.RFC3339), "copd " + c.now.Format(time.RFC3339)}; !slices.Equal(listed, want) {
		t.Errorf("listed are %q, want %q", listed, want)
	}
	updates := 0
	for _, event := range c.events(id) {
		if event == "threshold.update" {
			updates++
		}
	}
	if updates != 4 {
		t.Errorf("%d of 4 are in the audit trail", updates)
	}
}

// sameAs reports whether the answer equals an object.
func (r reply) sameAs(other object) bool { return fmt.Sprint(r.object()) == fmt.Sprint(other) }

func TestTemplateVersions(t *testing.T) {
	c := newClinic(t)
	body := object{"name": "Athletes", "key": "athletes", "thresholds": object{"pulse": object{"critical_low": 35, "low": 40}}, "diagnoses": []string{}}
	made := c.request(authz.Admin, "POST", "/threshold-templates/", body).want(201)
	path := fmt.Sprintf("/threshold-templates/%v/", made.at("id"))
	patient := c.enroll(nil)
	c.giveTemplate(patient, "athletes").want(200).wantAt(object{"pulse.low": 40.0})

	body["signed_off_by"] = "Dr. Meredith Grey"
	c.request(authz.Admin, "PUT", path, body).want(200).wantAt(object{"version": 1.0, "signed_off_by": "Dr. Meredith Grey", "signed_off_at": c.now.Format(time.RFC3339)})
	c.now = c.now.Add(time.Hour)
	whole := c.request(authz.Admin, "GET", path, nil).object()
	whole["thresholds"] = object{"pulse": object{"critical_low": 30, "low": 40}}
	changed := c.request(authz.Admin, "PUT", path, whole).want(200) // with the previous version's sign-off
	changed.wantAt(object{"version": 2.0, "signed_off_by": nil, "signed_off_at": nil, "thresholds.pulse.critical_low": 30.0})
	whole["signed_off_by"], whole["signed_off_at"] = "Dr. Miranda Bailey", c.now.Format(time.RFC3339)
	c.request(authz.Admin, "PUT", path, whole).want(200).wantAt(object{"version": 2.0, "signed_off_by": "Dr. Miranda Bailey"})

	// A patient with the first version keeps it, also after the template is removed.
	c.request(authz.Nurse, "GET", "/patients/"+patient+"/vital-config/", nil).wantAt(object{"pulse.critical_low": 35.0})
	c.request(authz.Admin, "DELETE", path, nil).want(204)
	c.request(authz.Admin, "GET", path, nil).want(404)
	c.request(authz.Admin, "DELETE", path, nil).want(404)
	c.request(authz.Nurse, "GET", "/patients/"+patient+"/vital-config/", nil).wantAt(object{"pulse.critical_low": 35.0})
	c.request(authz.Nurse, "POST", "/patients/"+patient+"/vital-config/apply-template/", object{"template_id": made.at("id")}).want(404)

	// A template replaces the bounds of its groups.
	c.request(authz.Nurse, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "x", "pulse_oximetry": object{"low": 99, "critical_low": 96}, "blood_glucose": nil}).want(200)
	c.giveTemplate(patient, "copd").want(200).wantAt(object{"pulse_oximetry.low": 87.0, "pulse_oximetry.critical_low": 85.0, "blood_glucose": nil, "pulse.critical_low": 35.0})
	c.giveTemplate(patient, "diabetes").want(200).wantAt(object{"blood_glucose.low": 70.0})
}

func TestTemplateRefusals(t *testing.T) {
	c := newClinic(t)
	good := func(changes object) object {
		body := object{"name": "X", "thresholds": object{"pulse": object{"high": 120}}}
		for name, value := range changes {
			if body[name] = value; value == nil {
				delete(body, name)
			}
		}
		return body
	}
	for name, test := range map[string]struct {
		body  object
		wrong []string
	}{
		"no name":                 {good(object{"name": nil}), []string{"name"}},
		"no thresholds":           {good(object{"thresholds": nil}), []string{"thresholds"}},
		"empty thresholds":        {good(object{"thresholds": object{}}), []string{"thresholds"}},
		"unknown groups alone":    {good(object{"thresholds": object{"mood": object{"low": 1}}}), []string{"thresholds.mood"}},
		"misspelt bound":          {good(object{"thresholds": object{"blood_pressure": object{"systolic_hihg": 130}}}), []string{"thresholds.blood_pressure.systolic_hihg"}},
		"misspelt beside another": {good(object{"thresholds": object{"pulse": object{"high": 120, "lo": 40}}}), []string{"thresholds.pulse.lo"}},
		"no bounds":               {good(object{"thresholds": object{"pulse": object{}}}), []string{"thresholds"}},
		"thresholds of type":      {good(object{"thresholds": 7}), []string{"thresholds"}},
		"out of range":            {good(object{"thresholds": object{"pulse": object{"high": 400}}}), []string{"thresholds.pulse.high"}},
		"order":                   {good(object{"thresholds": object{"pulse": object{"high": 120, "low": 130}}}), []string{"thresholds.pulse.high"}},
		"key":                     {good(object{"key": "Not A Key"}), []string{"key"}},
		"key that another has":    {good(object{"key": "copd"}), []string{"key"}},
		"diagnosis":               {good(object{"diagnoses": []string{"I50", "heart"}}), []string{"diagnoses.1"}},
		"diagnoses of wrong type": {good(object{"diagnoses": "I50"}), []string{"diagnoses"}},
		"ages":                    {good(object{"min_age": 12, "max_age": 6}), []string{"max_age"}},
		"age":                     {good(object{"min_age": -1}), []string{"min_age"}},
		"sign-off without a name": {good(object{"signed_off_at": "2026-01-01T00:00:00Z"}), []string{"signed_off_by"}},
		"sign-off to come":        {good(object{"signed_off_by": "x", "signed_off_at": "2036-01-01T00:00:00Z"}), []string{"signed_off_at"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := c.request(authz.Admin, "POST", "/threshold-templates/", test.body)
			answer.t = t
			answer.wantFields(test.wrong...)
		})
	}
	id := c.enroll(nil)
	c.request(authz.Nurse, "POST", "/patients/"+id+"/vital-config/apply-template/", object{}).wantFields("template_id")
	c.request(authz.Nurse, "POST", "/patients/"+id+"/vital-config/apply-template/", object{"template_id": 999}).want(404)
	c.request(authz.Nurse, "POST", "/patients/"+unknownPatient+"/vital-config/apply-template/", object{"template_id": 1}).want(404)
	c.wantRoles("GET", "/threshold-templates/", nil, clinical...)
	c.wantRoles("GET", "/threshold-templates/1/", nil, clinical...)
	c.wantRoles("POST", "/threshold-templates/", object{}, authz.Admin)
	c.wantRoles("PUT", "/threshold-templates/1/", object{}, authz.Admin)
	c.wantRoles("DELETE", "/threshold-templates/999/", nil, authz.Admin)
	c.wantRoles("POST", "/patients/"+unknownPatient+"/vital-config/apply-template/", object{"template_id": 1}, archivers...)
}

func TestSimulatingForMinors(t *testing.T) {
	c := newIngestingClinic(t)
	child, adult := c.enroll(object{"date_of_birth": c.birthDate(7)}), c.enroll(nil)
	for _, id := range []string{child, adult} {
		c.nurseMeasures(id, "blood-pressure", object{"systolic": 150, "diastolic": 80})
	}
	for patient, want := range map[string]float64{child: 0, adult: 1} {
		c.request(authz.Nurse, "POST", "/triage/simulate-thresholds/", object{"patient_id": patient, "pulse": object{"high": 105}}).want(200).
			wantAt(object{"simulated.total": want, "actual.total": want})
	}
	c.request(authz.Nurse, "POST", "/triage/simulate-thresholds/", object{"blood_pressure": object{"systolic_high": 130}}).want(200).wantAt(object{"simulated.total": 1.0})
}
