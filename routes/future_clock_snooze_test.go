package routes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A snooze that covers critical values suppresses the snoozed value when the clock is ahead, but not a worse value or
// another parameter.
func TestStoryFutureClockAndSnoozed(t *testing.T) {
	for body, alerted := range map[string]bool{
		`"systolic":186,"diastolic":84`:            false,
		`"systolic":230,"diastolic":84`:            true, // worse than the snoozed value
		`"systolic":186,"diastolic":84,"pulse":28`: true, // out of range
		`"systolic":126,"diastolic":84,"pulse":36`: true, // another parameter
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "gw-1"})
		c.postEvent(t, cuffEvent("BP-1", "gw-1", 186, c.now)).want(200)
		c.request(authz.Provider, "POST", "/patients/"+patient+"/snoozes/", object{
			"type": "blood_pressure", "reason": "Known.", "include_critical": true, "ends_at": c.now.Add(3 * time.Hour).Format(time.RFC3339),
		}).want(201)
		before := len(c.statEscalations(t))
		c.now = c.now.Add(time.Hour)
		c.postEvent(t, measured("BP-1", "gw-1", "blood_pressure", "mmHg", c.now.Add(time.Hour), body)).want(400)
		if got := len(c.alertsOf(patient, "implausible_reading")) != 0; got != alerted {
			t.Errorf("%s: alerted %v", body, got)
		}
		if !alerted && len(c.statEscalations(t)) != before {
			t.Errorf("%s: escalations %q", body, c.statEscalations(t))
		}
		if open := c.openAlerts(patient); !slices.Contains(open, "device_clock warning") {
			t.Errorf("%s: open %q", body, open)
		}
	}
}

// Values that a snooze suppressed while the clock was ahead alert when it ends, and then the remaining values, as
// without a snooze.
func TestStoryFutureClockAtSnoozeEnd(t *testing.T) {
	for name, decision := range map[string]string{"discarded": "discard", "confirmed": "confirm"} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 186, c.now)).want(200)
			alert := c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient, "type", "blood_pressure"), nil).results()[0]
			c.request(authz.Provider, "POST", "/alerts/"+formatID(alert)+"/acknowledge/", nil).want(200)
			c.request(authz.Provider, "PATCH", "/escalations/1/", object{"status": "resolved", "resolution_notes": "Called."}).want(200)
			c.request(authz.Provider, "POST", "/patients/"+patient+"/snoozes/", object{
				"type": "blood_pressure", "reason": "Known.", "include_critical": true, "ends_at": c.now.Add(3 * time.Hour).Format(time.RFC3339),
			}).want(201)
			for _, systolic := range []int{189, 188} {
				c.now = c.now.Add(time.Minute)
				c.postEvent(t, cuffEvent("BP-1", "gw-1", systolic, c.now.Add(time.Hour))).want(400)
			}
			wantSame(t, "snoozed", c.statEscalations(t), []string{"stat resolved system"})
			c.request(authz.Provider, "POST", "/patients/"+patient+"/snoozes/1/end/", object{}).want(200)
			wantSame(t, "its end", c.statEscalations(t), []string{"stat resolved system", "stat open system"})
			c.decideEvent(decision, c.alertsOf(patient, "device_clock")[0]["quarantine_id"].(string))
			wantIn(t, c.implausible(patient), object{"status": "active", "level": "critical", "value": 188.0})
			if got := c.statEscalations(t); got[len(got)-1] != "stat open system" {
				t.Errorf("of the rest: %q", got)
			}
		})
	}
}
