package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A rejected measurement with a dangerous value is told like one out of range, whatever its error and the clock of its device: it is dated by
// receipt, escalates, and the clock is questioned. A right reading of the same device does not supersede it.
func TestStoryRejectedMeasurementOfASlowClock(t *testing.T) {
	for _, story := range []struct{ name, kind, unit, values, field string }{
		{"no diastolic", "blood_pressure", "mmHg", `"systolic":212`, "values.diastolic"},
		{"texts", "blood_pressure", "mmHg", `"systolic":"212 mmHg","diastolic":"126 mmHg"`, "values.systolic"},
		{"unknown unit", "blood_pressure", "bar", `"systolic":212,"diastolic":126`, "unit"},
		{"misspelt kind", "blood_presure", "mmHg", `"systolic":212,"diastolic":126`, ""},
		{"with an unreadable pulse", "pulse_oximetry", "%", `"spo2":79,"pulse":"fast"`, "values.pulse"},
	} {
		for _, age := range []time.Duration{0, 48 * time.Hour, 20 * 24 * time.Hour, 6 * 365 * 24 * time.Hour} {
			for _, proven := range []bool{true, false} {
				t.Run(fmt.Sprint(story.name, age, proven), func(t *testing.T) {
					c := newIngestingClinic(t)
					patient := c.enroll(object{"gateway_patient_id": "gw-1"})
					c.now = c.now.AddDate(0, 1, 0)
					if proven {
						c.postEvent(t, measured("D-1", "gw-1", "blood_pressure", "mmHg", c.now, `"systolic":121,"diastolic":70`)).want(200)
						c.postEvent(t, measured("D-1", "gw-1", "pulse_oximetry", "%", c.now, `"spo2":97`)).want(200)
					}
					c.now = c.now.Add(2 * time.Minute)
					c.postEvent(t, measured("D-1", "gw-1", story.kind, story.unit, c.now.Add(-age), story.values))
					alert := c.implausible(patient)
					wantIn(t, alert, object{"level": "critical", "status": "active", "resolution_reason": nil})
					if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
						t.Errorf("escalations %q", stats)
					}
					if age > 0 && proven {
						wantIn(t, alert, object{"time_in_doubt": true})
						if clocks := c.alertsOf(patient, "device_clock"); len(clocks) != 1 {
							t.Errorf("%d questions about the clock", len(clocks))
						}
					}
					received := "received " + c.now.UTC().Format(time.RFC3339)
					if message := alert["message"].(string); !strings.Contains(strings.ToLower(message), strings.ToLower(received)) {
						t.Errorf("message %q lacks %q", message, received)
					}
				})
			}
		}
	}
}

// Confirming the values of a rejected measurement confirms no time: the reading stays in doubt, and its alert active.
func TestStoryConfirmedTextsOfASlowClock(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 1, 0)
	c.postEvent(t, cuffEvent("D-1", "gw-1", 121, c.now)).want(200)
	c.now = c.now.Add(2 * time.Minute)
	c.postEvent(t, measured("D-1", "gw-1", "blood_pressure", "mmHg", c.now.AddDate(0, 0, -2), `"systolic":"212 mmHg","diastolic":"126 mmHg"`)).want(400)
	path := "/ingestion/quarantine/" + c.implausible(patient)["quarantine_id"].(string)
	c.request(authz.Nurse, "POST", path+"/confirm/", object{"notes": "By phone."}).want(201).wantAt(object{"review_state": "suspect", "suspect_reason": "device_clock"})
	pressure := c.alertsOf(patient, "blood_pressure")
	if len(pressure) != 1 {
		t.Fatalf("%d alerts", len(pressure))
	}
	wantIn(t, pressure[0], object{"level": "critical", "status": "active", "time_in_doubt": true})
}

// What waited in the quarantine is judged by what was known at its receipt: a clock that nothing proves does not show that another cuff
// measured later, but a reading after the receipt does.
func TestStoryReleasedReadingOfAnUnprovenClock(t *testing.T) {
	for _, story := range []struct {
		name  string
		since time.Duration
		stats []string
	}{
		{"measured before the receipt", -time.Hour, []string{"stat open system"}},
		{"measured after the receipt", time.Hour, nil},
	} {
		t.Run(story.name, func(t *testing.T) {
			c := newIngestingClinic(t)
			patient := c.enroll(object{})
			c.now = c.now.AddDate(0, 1, 0)
			received := c.now
			id := c.postEvent(t, cuffEvent("BP-2", "gw-2", 206, received.AddDate(0, 0, -3))).want(200).at("event_id").(string)
			c.now = received.Add(2 * time.Hour)
			c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
				"patient_id": patient, "systolic": 120, "diastolic": 70, "measured_at": received.Add(story.since).Format(time.RFC3339),
			}).want(201)
			c.request(authz.MA, "POST", "/ingestion/quarantine/"+id+"/release/", object{"patient_id": patient}).want(201)
			wantSame(t, "escalations", c.statEscalations(t), story.stats)
			if alerts := c.alertsOf(patient, "blood_pressure"); len(alerts) != 1 || (alerts[0]["status"] == "active") != (story.stats != nil) {
				t.Errorf("alerts %v", alerts)
			}
		})
	}
}
