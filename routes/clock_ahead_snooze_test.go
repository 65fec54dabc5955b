package routes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/access"
)

// A snooze that covers critical values keeps quiet what is known, whatever the clock says, and nothing worse, and no other value.
func TestStoryClockAheadAndSnoozed(t *testing.T) {
	for body, loud := range map[string]bool{
		`"systolic":186,"diastolic":84`:            false,
		`"systolic":230,"diastolic":84`:            true, // worse than what was known
		`"systolic":186,"diastolic":84,"pulse":28`: true, // out of range
		`"systolic":126,"diastolic":84,"pulse":36`: true, // of another parameter
	} {
		c := newIngestingClinic(t)
		patient := c.enrol(object{"gateway_patient_id": "gw-1"})
		c.event(t, cuffEvent("BP-1", "gw-1", 186, c.now)).want(200)
		c.ask(access.Provider, "POST", "/patients/"+patient+"/snoozes/", object{
			"type": "blood_pressure", "reason": "Known.", "include_critical": true, "ends_at": c.now.Add(3 * time.Hour).Format(time.RFC3339),
		}).want(201)
		before := len(c.stats(t))
		c.now = c.now.Add(time.Hour)
		c.event(t, measured("BP-1", "gw-1", "blood_pressure", "mmHg", c.now.Add(time.Hour), body)).want(400)
		if got := len(c.alertsOf(patient, "implausible_reading")) != 0; got != loud {
			t.Errorf("%s: loud %v", body, got)
		}
		if !loud && len(c.stats(t)) != before {
			t.Errorf("%s: escalations %q", body, c.stats(t))
		}
		if open := c.open(patient); !slices.Contains(open, "device_clock warning") {
			t.Errorf("%s: open %q", body, open)
		}
	}
}
