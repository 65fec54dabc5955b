package routes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/routes"
)

// triageRows summarizes the triage rows by the patients' last names.
func (r reply) triageRows() (rows []string) {
	r.t.Helper()
	for _, row := range r.results() {
		_, name, _ := strings.Cut(row["patient_name"].(string), " ")
		rows = append(rows, fmt.Sprint(name, " ", row["risk_score"], " ", row["risk_level"], " ", row["handling"]))
	}
	return rows
}

// rescored ranks all patients again and returns the list.
func (c *clinic) rescored() []string {
	c.t.Helper()
	if _, _, err := triage.RescoreAll(c.t.Context(), c.app, c.now, func([]string) {}); err != nil {
		c.t.Fatal(err)
	}
	return c.request(authz.Nurse, "GET", "/triage/patients/?page_size=100", nil).triageRows()
}

func (c *clinic) wantOrder(what string, got []string, want ...string) {
	c.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("%s: %s", what, diff)
	}
}

// measured stores a gateway reading of the given age.
func (c *clinic) measured(kind, patient, values string, ago time.Duration) reply {
	c.t.Helper()
	return c.postEvent(c.t, fmt.Sprintf(`{"event_type":"measurement.created","device_id":"DEV-%s","patient_id":%q,"measurement_type":%q,"values":{%s},"timestamp":%q}`,
		patient[24:], patient, kind, values, c.now.Add(-ago).Format(time.RFC3339))).want(200)
}

// A current SpO2 of 70 ranks first: before a saturation of 84 that is 400 days old, and before any number of warnings.
// An answered alert stays in the critical band for a day.
func TestStoryWorstFirst(t *testing.T) {
	for zone, begin := range map[string]time.Time{
		"America/New_York":    time.Date(2025, 10, 1, 5, 30, 0, 0, time.UTC), // 400 days later, one hour was repeated
		"Australia/Lord_Howe": time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC),
	} {
		t.Run(zone, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.now = begin
			enrol := func(name string) string { return c.enroll(object{"last_name": name, "time_zone": zone}) }
			old, low, warned, silent, open := enrol("Old"), enrol("Low"), enrol("Warned"), enrol("Silent"), enrol("Open")
			c.now = c.now.Add(400*24*time.Hour + time.Hour)
			c.request(authz.Nurse, "POST", "/ingestion/pulse-oximetry/", object{
				"patient_id": old, "spo2": 84, "measured_at": c.now.Add(-400 * 24 * time.Hour).Format(time.RFC3339),
			}).want(201)
			for i := range 8 {
				c.measured("bp", warned, `"systolic":178,"diastolic":118`, time.Duration(8-i)*time.Minute)
			}
			c.request(authz.Nurse, "POST", "/escalations/", object{"patient_id": open, "priority": "stat", "reason": "Fell at home."}).want(201)
			c.measured("spo2", low, `"spo2":70`, 0)

			c.wantOrder("unanswered", c.rescored(), "Low 98 critical unanswered", "Old 88 critical unanswered", "Open 86 critical unanswered",
				"Warned 75 warning <nil>", "Silent 0 no_data <nil>")
			row := c.request(authz.Nurse, "GET", "/triage/patients/"+query("patient_id", low), nil).results()[0]
			factors := map[string]any{}
			for _, factor := range row["risk_factors"].([]any) {
				factors[factor.(object)["factor"].(string)] = factor.(object)["points"]
			}
			if factors["floor"] != 86.0 || factors["danger"] != 12.0 {
				t.Errorf("its reasons are %v", factors)
			}
			for level, want := range map[string]int{"critical": 3, "warning": 1, "normal": 0, "no_data": 1} {
				if got := len(c.request(authz.Nurse, "GET", "/triage/patients/"+query("risk_level", level), nil).results()); got != want {
					t.Errorf("%d patients are %s", got, level)
				}
				c.request(authz.Nurse, "GET", "/triage/patients/stats/", nil).want(200).wantAt(object{"patients_by_risk_level." + level: float64(want)})
			}

			c.answerAll(low)
			c.wantOrder("answered", c.rescored(), "Old 88 critical unanswered", "Open 86 critical unanswered", "Low 84 critical handled",
				"Warned 75 warning <nil>", "Silent 0 no_data <nil>")
			c.request(authz.Nurse, "POST", "/triage/patients/"+low+"/review/", nil).want(200).wantAt(object{"handling": "handled", "needs_review": true})
			c.wantLive(low, `"handling":"handled"`)
			c.measured("spo2", silent, `"spo2":87`, 23*time.Hour)
			c.answerAll(silent)
			c.wantOrder("both answered", c.rescored(), "Old 88 critical unanswered", "Open 86 critical unanswered", "Low 84 critical handled",
				"Silent 79 critical handled", "Warned 75 warning <nil>")

			c.now = c.now.Add(24 * time.Hour)
			got := c.rescored() // still critical after exactly one day, and not after more
			if i := slices.Index(got, "Low 80 critical handled"); i != 2 || len(got) != 5 {
				t.Errorf("a day later: %v", got)
			}
			c.now = c.now.Add(time.Second)
			for _, row := range c.rescored() {
				if strings.HasSuffix(row, "handled") {
					t.Errorf("after more than a day: %s", row)
				}
			}
		})
	}
}

// answerAll acknowledges a patient's alerts and resolves the escalations.
func (c *clinic) answerAll(patient string) {
	c.t.Helper()
	for _, alert := range c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient, "acknowledged", "false"), nil).results() {
		c.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%v/acknowledge/", alert["id"]), nil).want(200)
	}
	for _, escalation := range c.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", patient), nil).results() {
		if escalation["status"] == "open" {
			c.request(authz.Nurse, "PATCH", fmt.Sprintf("/escalations/%v/", escalation["id"]), object{"status": "resolved", "resolution_notes": "Called."}).want(200)
		}
	}
}

// wantLive checks what the live list has about a patient.
func (c *clinic) wantLive(patient, want string) {
	c.t.Helper()
	views, err := routes.LiveViews{}.Patients(c.app, []string{patient})
	if err != nil {
		c.t.Fatal(err)
	}
	if data, err := json.Marshal(views[patient].Data); err != nil || !strings.Contains(string(data), want) {
		c.t.Errorf("the live list has %s (%v)", data, err)
	}
}

// For each kind, the worse or fresher of two patients with one reading each ranks first, from every source, in any order
// of arrival, in both directions.
func TestStoryWorseOrFresherFirst(t *testing.T) {
	for name, pair := range map[string]struct {
		kind, worse, better string
		worseAgo, betterAgo time.Duration
	}{
		"SpO2":               {"pulse-oximetry", `"spo2":70`, `"spo2":86`, 0, 0},
		"one point of SpO2":  {"pulse-oximetry", `"spo2":88`, `"spo2":89`, 20 * time.Hour, 0},
		"low glucose":        {"blood-glucose", `"glucose_mg_dl":30`, `"glucose_mg_dl":54`, 0, 0},
		"high glucose":       {"blood-glucose", `"glucose_mg_dl":580`, `"glucose_mg_dl":301`, 0, 0},
		"diastolic":          {"blood-pressure", `"systolic":181,"diastolic":160`, `"systolic":185,"diastolic":122`, 0, 0},
		"low pressure":       {"blood-pressure", `"systolic":62,"diastolic":45`, `"systolic":79,"diastolic":50`, 0, 0},
		"pulse with a cuff":  {"blood-pressure", `"systolic":120,"diastolic":80,"pulse":31`, `"systolic":120,"diastolic":80,"pulse":39`, 0, 0},
		"temperature":        {"body-temperature", `"temperature_c":42`, `"temperature_c":39.2`, 0, 0},
		"the same, fresher":  {"pulse-oximetry", `"spo2":75`, `"spo2":75`, time.Minute, 23 * time.Hour},
		"a warning, fresher": {"blood-pressure", `"systolic":180,"diastolic":80`, `"systolic":179,"diastolic":119`, 23 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, worseFirst := range []bool{true, false} {
				for _, role := range []authz.Role{authz.Nurse, authz.MA} {
					c := newIngestingClinic(t)
					send := func(last, values string, ago time.Duration) {
						patient := c.enroll(object{"last_name": last})
						body := fmt.Sprintf(`{"patient_id":%q,%s,"measured_at":%q}`, patient, values, c.now.Add(-ago).Format(time.RFC3339))
						c.request(role, "POST", "/ingestion/"+pair.kind+"/", body).want(201)
					}
					if worseFirst {
						send("Worse", pair.worse, pair.worseAgo)
					}
					send("Better", pair.better, pair.betterAgo)
					if !worseFirst {
						send("Worse", pair.worse, pair.worseAgo)
					}
					rows := c.request(authz.Nurse, "GET", "/triage/patients/", nil).triageRows()
					if !strings.HasPrefix(rows[0], "Worse") || strings.Fields(rows[0])[1] == strings.Fields(rows[1])[1] {
						t.Errorf("by %s, worse first %t: %v", role, worseFirst, rows)
					}
				}
			}
		})
	}
}

// A later normal reading answers no alert: while the alert is open, its values keep the patient's rank.
func TestStoryNormalReadingAnswersNothing(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	c.measured("bp", patient, `"systolic":181,"diastolic":160`, 10*time.Minute)
	c.measured("bp", patient, `"systolic":120,"diastolic":80`, 5*time.Minute)
	c.wantOrder("after one normal reading", c.rescored(), "Lovelace 94 critical unanswered")
	c.measured("bp", patient, `"systolic":120,"diastolic":80`, time.Minute)
	c.wantOrder("resolved, the escalation open", c.rescored(), "Lovelace 86 critical unanswered")
	c.answerAll(patient)
	if rows := c.rescored(); !strings.HasSuffix(rows[0], " normal <nil>") {
		t.Errorf("all answered: %v", rows)
	}
}

// A weight ranks by its gain: 9.2 kg are twice the critical 4.6, and halfway to three times that.
func TestStoryGainRanks(t *testing.T) {
	c := newIngestingClinic(t)
	for name, kg := range map[string]float64{"More": 89.2, "Less": 84.7, "Little": 82} {
		patient := c.enroll(object{"last_name": name})
		for i, kg := range []float64{80, kg} {
			at := c.now.AddDate(0, 0, 2*(i-1)).Format(time.RFC3339)
			c.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": patient, "weight_kg": kg, "measured_at": at}).want(201)
		}
	}
	rows := c.rescored()
	if rows[0] != "More 94 critical unanswered" || rows[1] != "Less 88 critical unanswered" || strings.Contains(rows[2], "critical") {
		t.Errorf("%v", rows)
	}
}

// A patient's own bounds decide what is dangerous: the score follows them in the same answer, also for an open alert.
func TestStoryDangerFollowsThresholds(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	c.measured("spo2", patient, `"spo2":84`, 0)
	c.wantOrder("by the defaults", c.rescored(), "Lovelace 95 critical unanswered")
	c.request(authz.Provider, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "COPD", "pulse_oximetry": object{"low": 86, "critical_low": 80}}).want(200)
	c.wantOrder("by the patient's own", c.rescored(), "Lovelace 86 critical unanswered")
	c.answerAll(patient)
	if rows := c.rescored(); !strings.HasSuffix(rows[0], " <nil>") {
		t.Errorf("answered, and critical no more: %v", rows)
	}
}
