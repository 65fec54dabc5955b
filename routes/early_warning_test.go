package routes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// vitalSign is one reading of a story: its kind at the gateway, its values, and its age.
type vitalSign struct {
	kind, values string
	ago          time.Duration
}

// septic is a picture of four values that score 8 by NEWS2, none of them critical alone.
var septic = []vitalSign{
	{"blood_pressure", `"systolic":93,"diastolic":62,"pulse":127`, 3 * time.Minute},
	{"pulse_oximetry", `"spo2":89`, 2 * time.Minute},
	{"body_temperature", `"temperature":38.9`, time.Minute},
}

func (c *clinic) measureAll(patient string, signs ...vitalSign) {
	c.t.Helper()
	for _, s := range signs {
		c.measureSign(patient, s)
	}
}

// signUnits are the units of the kinds that need one at the gateway.
var signUnits = map[string]string{"body_temperature": "Cel", "weight": "kg", "blood_glucose": "mg/dL", "blood_pressure": "mmHg", "pulse_oximetry": "%"}

func (c *clinic) measureSign(patient string, s vitalSign) reply {
	c.t.Helper()
	return c.postEvent(c.t, fmt.Sprintf(`{"event_type":"measurement.created","device_id":"DEV-%s","patient_id":%q,"measurement_type":%q,"unit":%q,"values":{%s},"timestamp":%q}`,
		patient[24:], patient, s.kind, signUnits[s.kind], s.values, c.now.Add(-s.ago).Format(time.RFC3339))).want(200)
}

// earlyWarnings returns the early warnings of a patient, oldest first, as "value/threshold level status".
func (c *clinic) earlyWarnings(patient string) (list []string) {
	c.t.Helper()
	for _, a := range c.alertsOf(patient, "early_warning") {
		list = append(list, fmt.Sprint(a["value"], "/", a["threshold"], " ", a["level"], " ", a["status"]))
	}
	slices.Reverse(list)
	return list
}

func (c *clinic) wantEarlyWarnings(what, patient string, want ...string) {
	c.t.Helper()
	if got := c.earlyWarnings(patient); !slices.Equal(got, want) {
		c.t.Errorf("%s: the early warnings are %q, want %q", what, got, want)
	}
}

// Four values, none of them critical, score 8: an emergency, in any order of arrival.
func TestStorySepticPicture(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 5))
	for range 4 {
		order := random.Perm(len(septic))
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			c := newScoringClinic(t)
			patient := c.enroll(nil)
			for _, i := range order {
				c.measureAll(patient, septic[i])
			}
			open := slices.DeleteFunc(c.openAlerts(patient), func(a string) bool { return !strings.HasPrefix(a, "early_warning") })
			wantSame(t, "open", open, []string{"early_warning critical"})
			alert := c.alertsOf(patient, "early_warning")[0]
			wantIn(t, alert, object{"value": 8.0, "threshold": 7.0, "parameter": "early_warning", "status": "active"})
			for _, part := range []string{"SpO2 89 %", "Systolic 93 mmHg", "Pulse 127 bpm", "Temperature 38.9 °C"} {
				if !strings.Contains(alert["message"].(string), part) {
					t.Errorf("%q does not name %s", alert["message"], part)
				}
			}
			wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
			if row := c.triageRow(patient); row["risk_level"] != "critical" || row["handling"] != "unanswered" || row["risk_score"].(float64) < 93 {
				t.Errorf("ranked %v %v %v", row["risk_score"], row["risk_level"], row["handling"])
			}
			flags := c.fhir(authz.Provider, "/Flag?patient="+patient)
			if text := fmt.Sprint(flags); !strings.Contains(text, "early_warning") || !strings.Contains(text, "clinical") {
				t.Errorf("flags %s", text)
			}
		})
	}
}

// A sum of 5 or 6, or one value of 3 points, is a warning with an urgent escalation; one that is critical alone is not counted alone.
func TestStoryEarlyWarningLevels(t *testing.T) {
	for _, test := range []struct {
		name  string
		signs []vitalSign
		want  []string
		stat  []string
	}{
		{
			"sum 5",
			[]vitalSign{{"blood_pressure", `"systolic":98,"diastolic":62,"pulse":112`, 3 * time.Minute}, {"pulse_oximetry", `"spo2":95`, 2 * time.Minute}},
			[]string{"5/5 warning active"},
			[]string{"urgent open system"},
		},
		{"sum 4", []vitalSign{{"blood_pressure", `"systolic":98,"diastolic":62,"pulse":112`, 3 * time.Minute}, {"pulse_oximetry", `"spo2":96`, 2 * time.Minute}}, nil, nil},
		{"SpO2 91 alone", []vitalSign{{"pulse_oximetry", `"spo2":91`, 2 * time.Minute}}, []string{"3/5 warning active"}, []string{"urgent open system"}},
		{"SpO2 92 alone", []vitalSign{{"pulse_oximetry", `"spo2":92`, 2 * time.Minute}}, nil, nil},
		{"SpO2 88 alone is critical", []vitalSign{{"pulse_oximetry", `"spo2":88`, 2 * time.Minute}}, nil, []string{"stat open system"}},
		{"systolic 88", []vitalSign{{"blood_pressure", `"systolic":88,"diastolic":62`, 2 * time.Minute}}, []string{"3/5 warning active"}, []string{"urgent open system"}},
		{"220 is critical", []vitalSign{{"blood_pressure", `"systolic":224,"diastolic":98`, 2 * time.Minute}}, nil, []string{"stat open system"}},
		{"one value of 61 minutes ago", []vitalSign{{"blood_pressure", `"systolic":98,"diastolic":62,"pulse":112`, 61 * time.Minute}, {"pulse_oximetry", `"spo2":95`, 2 * time.Minute}}, nil, nil},
		{
			"60 minutes ago",
			[]vitalSign{{"blood_pressure", `"systolic":98,"diastolic":62,"pulse":112`, time.Hour}, {"pulse_oximetry", `"spo2":95`, 2 * time.Minute}},
			[]string{"5/5 warning active"},
			[]string{"urgent open system"},
		},
		{
			"without a saturation",
			[]vitalSign{{"blood_pressure", `"systolic":98,"diastolic":62,"pulse":112`, 3 * time.Minute}, {"body_temperature", `"temperature":39.0`, 2 * time.Minute}},
			[]string{"5/5 warning active"},
			[]string{"urgent open system"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newScoringClinic(t)
			patient := c.enroll(nil)
			c.measureAll(patient, test.signs...)
			c.wantEarlyWarnings(test.name, patient, test.want...)
			wantSame(t, "escalations", c.statEscalations(t), test.stat)
		})
	}
}

// A run has one alert. It becomes critical when the sum reaches 7, and ends with fresh values below 5; then a new run may begin.
func TestStoryEarlyWarningRun(t *testing.T) {
	c := newScoringClinic(t)
	patient := c.enroll(nil)
	five := []vitalSign{{"blood_pressure", `"systolic":98,"diastolic":62,"pulse":112`, 2 * time.Minute}, {"pulse_oximetry", `"spo2":95`, time.Minute}}
	c.measureAll(patient, five...)
	c.wantEarlyWarnings("at first", patient, "5/5 warning active")
	c.now = c.now.Add(10 * time.Minute)
	c.measureAll(patient, five...)
	c.wantEarlyWarnings("again", patient, "5/5 warning active")
	c.measureAll(patient, vitalSign{"body_temperature", `"temperature":39.2`, 0})
	c.wantEarlyWarnings("with a fever", patient, "5/5 warning auto_resolved", "7/7 critical active")
	wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
	c.now = c.now.Add(90 * time.Minute)
	c.measureAll(patient, vitalSign{"pulse_oximetry", `"spo2":98`, 0})
	c.wantEarlyWarnings("one fresh value", patient, "5/5 warning auto_resolved", "7/7 critical active")
	well := []vitalSign{{"blood_pressure", `"systolic":124,"diastolic":78,"pulse":80`, 0}, {"body_temperature", `"temperature":37.0`, 0}}
	c.measureAll(patient, well...)
	c.wantEarlyWarnings("well", patient, "5/5 warning auto_resolved", "7/7 critical auto_resolved")
	c.now = c.now.Add(20 * time.Minute)
	c.measureAll(patient, septic...)
	if got := c.earlyWarnings(patient); !slices.Contains(got, "8/7 critical active") {
		t.Errorf("a new run: %q", got)
	}
}

// A clinician's acknowledgment does not end a run, and the patient stays critical.
func TestStoryEarlyWarningAcknowledged(t *testing.T) {
	c := newScoringClinic(t)
	patient := c.enroll(nil)
	c.measureAll(patient, septic...)
	c.answerAll(patient)
	if row := c.triageRow(patient); row["handling"] != "handled" {
		t.Errorf("acknowledged: %v %v", row["risk_score"], row["handling"])
	}
	before := len(c.alertsOf(patient, "early_warning"))
	c.now = c.now.Add(5 * time.Minute)
	c.measureAll(patient, septic...)
	if after := len(c.alertsOf(patient, "early_warning")); after != before {
		t.Errorf("%d early warnings, %d before", after, before)
	}
	c.now = c.now.Add(25 * time.Hour)
	c.measureAll(patient, septic...)
	if got := c.earlyWarnings(patient); !slices.Contains(got, "8/7 critical active") {
		t.Errorf("a day later: %q", got)
	}
}

// A reading entered in error takes its points with it.
func TestStoryEarlyWarningRetraction(t *testing.T) {
	for i, want := range [][]string{{"4 warning"}, {"5 warning"}, {"7 critical"}} { // without the pressure, the saturation, the temperature
		c := newScoringClinic(t)
		patient := c.enroll(nil)
		var ids []any
		for _, s := range septic {
			ids = append(ids, c.measureSign(patient, s).at("observation_id"))
		}
		c.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", ids[i]), object{"reason": "Not hers."}).want(200)
		var open []string
		for _, a := range c.alertsOf(patient, "early_warning") {
			if a["status"] == "active" {
				open = append(open, fmt.Sprint(a["value"], " ", a["level"]))
			}
		}
		wantSame(t, fmt.Sprint("without ", septic[i].kind), open, want)
	}
}

// Scale 2 applies with the COPD template; under 16 and in pregnancy there is no score. Only a critical alert of the same parameter excuses a single value.
func TestStoryEarlyWarningWhom(t *testing.T) {
	low := []vitalSign{{"pulse_oximetry", `"spo2":89`, time.Minute}}
	for _, test := range []struct {
		name, born, code, template string
		signs                      []vitalSign
		want                       []string
	}{
		{"an adult", "1955-12-10", "", "", low, []string{"3/5 warning active"}},
		{"COPD without the template", "1955-12-10", "J44.9", "", low, []string{"3/5 warning active"}},
		{"COPD with the template", "1955-12-10", "J44.9", "copd", low, nil},
		{"COPD, 8 otherwise", "1955-12-10", "J44.9", "copd", septic, []string{"5/5 warning active"}},
		{"seventeen", "2008-06-01", "", "", septic, []string{"8/7 critical active"}},
		{"fifteen", "2010-06-01", "", "", septic, nil},
		{"pregnant", "1995-12-10", "O09.90", "", septic, nil},
		{"pregnant by template", "1995-12-10", "", "pregnancy", septic, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newScoringClinic(t)
			changes := object{"date_of_birth": test.born}
			if test.code != "" {
				changes["icd10_codes"] = []string{test.code}
			}
			patient := c.enroll(changes)
			if test.template != "" {
				c.giveTemplate(patient, test.template).want(200)
			}
			c.measureAll(patient, test.signs...)
			got := slices.DeleteFunc(c.earlyWarnings(patient), func(a string) bool { return strings.HasSuffix(a, "auto_resolved") })
			wantSame(t, test.name, got, test.want)
		})
	}
	c := newScoringClinic(t)
	patient := c.enroll(nil)
	c.request(authz.Provider, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "Fibrosis.", "pulse_oximetry": object{"critical_low": 82, "low": 86}}).want(200)
	c.measureAll(patient, low...)
	c.wantEarlyWarnings("in range by own bounds", patient, "3/5 warning active")
	c.request(authz.Provider, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "Unreliable.", "pulse_oximetry": nil}).want(200)
	c.now = c.now.Add(time.Minute)
	c.measureAll(patient, septic...)
	c.wantEarlyWarnings("without oximetry", patient, "3/5 warning auto_resolved", "5/5 warning active")
}

// What the patient types counts, and does not end what a device began.
func TestStoryEarlyWarningTyped(t *testing.T) {
	c := newScoringClinic(t)
	patient := c.enroll(nil)
	c.measureAll(patient, septic...)
	c.now = c.now.Add(10 * time.Minute)
	for kind, values := range map[string]object{
		"blood-pressure": {"systolic": 124, "diastolic": 78, "pulse": 78}, "pulse-oximetry": {"spo2": 98}, "body-temperature": {"temperature_c": 36.8},
	} {
		values["measured_at"] = c.now.Format(time.RFC3339)
		values["patient_id"] = patient
		c.requestAs(c.portalOf(patient), "POST", "/ingestion/"+kind+"/", values).want(201)
	}
	if got := c.earlyWarnings(patient); !slices.Contains(got, "8/7 critical active") {
		t.Errorf("after typed values: %q", got)
	}
}
