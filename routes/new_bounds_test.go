package routes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A critical bound set below the last value of a patient: no one handled that value, so it is pushed and the patient is unanswered.
func TestStoryBoundSetBelowTheLastValue(t *testing.T) {
	for name, set := range map[string]func(c *clinic, patient string){
		"vital-config": func(c *clinic, patient string) {
			c.request(authz.Provider, "PUT", "/patients/"+patient+"/vital-config/", object{
				"reason": "Stricter.", "blood_pressure": object{"systolic_critical": 160, "systolic_high": 130},
			}).want(200)
		},
		"template": func(c *clinic, patient string) { c.giveTemplate(patient, "pregnancy").want(200) },
	} {
		for _, acknowledged := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", acknowledged ", acknowledged), func(t *testing.T) {
				c := newIngestingClinic(t)
				c.t = t
				patient := c.enroll(object{"gateway_patient_id": "gw-1"})
				c.now = c.now.AddDate(0, 0, 1)
				c.postEvent(t, cuffEvent("BP-1", "gw-1", 165, c.now)).want(200)
				if acknowledged {
					c.answerAll(patient)
				}
				c.now = c.now.Add(2 * time.Hour)
				set(c, patient)
				if row := c.triageRow(patient); row["handling"] != "unanswered" || row["risk_level"] != "critical" {
					t.Errorf("ranked %v %v %v", row["risk_score"], row["risk_level"], row["handling"])
				}
				if open := c.openAlerts(patient); !slices.Contains(open, "blood_pressure critical") {
					t.Errorf("open are %q", open)
				}
				wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
				alerts := len(c.alertsOf(patient, "blood_pressure"))
				set(c, patient)
				if again := len(c.alertsOf(patient, "blood_pressure")); again != alerts {
					t.Errorf("%d alerts, %d before", again, alerts)
				}
				c.answerAll(patient)
				if row := c.triageRow(patient); row["handling"] != "handled" {
					t.Errorf("answered, it is %v", row["handling"])
				}
			})
		}
	}
}

// A bound of the practice set below the last value raises no alert, and the patient is unanswered until a clinician reviews them.
func TestStoryPracticeBoundBelowTheLastValue(t *testing.T) {
	c := newIngestingClinic(t)
	c.t = t
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 0, 1)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 165, c.now)).want(200)
	c.now = c.now.Add(2 * time.Hour)
	c.request(authz.Admin, "PUT", "/settings/default-thresholds/", object{"reason": "Stricter.", "blood_pressure": object{"systolic_critical": 160}}).want(200)
	c.rescored()
	if row := c.triageRow(patient); row["handling"] != "unanswered" {
		t.Errorf("ranked %v %v %v", row["risk_score"], row["risk_level"], row["handling"])
	}
	wantSame(t, "escalations", c.statEscalations(t), nil)
	c.now = c.now.Add(time.Minute)
	c.request(authz.Nurse, "POST", "/triage/patients/"+patient+"/review/", nil).want(200).wantAt(object{"handling": "handled"})
}

// A review, or an alert of another kind, answers for a value only if the bound that it is beyond was set before.
func TestStoryReviewedBeforeTheBound(t *testing.T) {
	for name, before := range map[string]func(c *clinic, patient string){
		"a review": func(*clinic, string) {},
		"an alert about another": func(c *clinic, patient string) {
			c.postEvent(c.t, oximeterEvent("OX-1", "gw-1", 84, 80, c.now)).want(200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.now = c.now.AddDate(0, 0, 1)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 165, c.now)).want(200)
			c.now = c.now.Add(time.Hour)
			before(c, patient)
			c.answerAll(patient)
			c.request(authz.Nurse, "POST", "/triage/patients/"+patient+"/review/", nil).want(200)
			if name != "a review" { // in range again
				c.now = c.now.Add(time.Minute)
				c.postEvent(t, oximeterEvent("OX-1", "gw-1", 97, 80, c.now)).want(200)
			}
			c.now = c.now.Add(time.Hour)
			c.request(authz.Admin, "PUT", "/settings/default-thresholds/", object{"reason": "Stricter.", "blood_pressure": object{"systolic_critical": 160}}).want(200)
			c.rescored()
			if row := c.triageRow(patient); row["handling"] != "unanswered" {
				t.Errorf("ranked %v %v %v", row["risk_score"], row["risk_level"], row["handling"])
			}
			c.now = c.now.Add(time.Minute)
			c.request(authz.Nurse, "POST", "/triage/patients/"+patient+"/review/", nil).want(200).wantAt(object{"handling": "handled"})
		})
	}
}

// A value that arrived in time is not late because the bound was set later, however short the practice's limit is.
func TestStoryNewBoundWithAShortLateness(t *testing.T) {
	rules := clinicRules
	rules.LateAfter = time.Hour
	c := newClinicWithRules(t, rules)
	c.t = t
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 0, 1)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 165, c.now)).want(200)
	c.now = c.now.Add(3 * time.Hour)
	c.request(authz.Provider, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "Stricter.", "blood_pressure": object{"systolic_critical": 160}}).want(200)
	wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
	wantIn(t, c.alertsOf(patient, "blood_pressure")[0], object{"level": "critical", "late": false})
}
