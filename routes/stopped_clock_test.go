package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

func oximeter(device, patient string, at time.Time, spo2, pulse int) string {
	return measured(device, patient, "pulse_oximetry", "%", at, fmt.Sprintf(`"spo2":%d,"pulse":%d`, spo2, pulse))
}

// A device with a stopped clock sends other values with the same time. They stay in quarantine, and a dangerous one is an emergency.
func TestStoryStoppedClock(t *testing.T) {
	for name, ago := range map[string]time.Duration{"live": time.Minute, "two hours": 2 * time.Hour, "years": 20 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			at := c.now.Add(-ago)
			c.postEvent(t, oximeter("D-1", "gw-1", at, 96, 76)).want(200)
			before := len(c.statEscalations(t))
			c.now = c.now.Add(5 * time.Minute)
			c.postEvent(t, oximeter("D-1", "gw-1", at, 95, 80)).want(200).wantAt(object{"reason": "conflicting_duplicate"})
			if list := c.alertsOf(patient, "implausible_reading"); len(list) > 0 || len(c.statEscalations(t)) != before {
				t.Fatalf("a good value alerts: %v", list)
			}
			c.now = c.now.Add(5 * time.Minute)
			for range 2 { // the gateway retries
				c.postEvent(t, oximeter("D-1", "gw-1", at, 74, 135)).want(200).wantAt(object{"status": "quarantined", "reason": "conflicting_duplicate"})
			}
			alert := c.implausible(patient)
			wantIn(t, alert, object{"level": "critical", "status": "active", "parameter": "spo2", "value": 74.0})
			if !strings.Contains(fmt.Sprint(alert["message"]), "its clock may have stopped") {
				t.Errorf("the alert says %v", alert["message"])
			}
			if got := c.statEscalations(t); !slices.Equal(got, []string{"stat open system"}) {
				t.Errorf("escalations: %q", got)
			}
			confirmed := c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+alert["quarantine_id"].(string)+"/confirm/", object{"notes": "Called; it is hers."}).want(201)
			confirmed.wantAt(object{"spo2": 74.0, "review_state": "confirmed", "measured_at": c.now.Format(time.RFC3339)})
		})
	}
}

// A returned device with a slow clock that another patient holds now: its live readings are that patient's.
func TestStoryReassignedSlowClock(t *testing.T) {
	for name, story := range map[string]struct {
		named string
		back  time.Duration
	}{
		"named, days back": {"gw-b", 30 * 24 * time.Hour}, "named, before the hand-over": {"gw-b", 2 * time.Hour},
		"unnamed, days back": {"", 30 * 24 * time.Hour}, "unnamed, hours back": {"", 5 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			start := c.now
			former := c.enroll(object{"gateway_patient_id": "gw-a"})
			present := c.enroll(object{"gateway_patient_id": "gw-b"})
			assign := func(patient string) {
				c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "D-1", "patient_id": patient, "device_type": "pulse_oximetry"}).want(200)
			}
			send := func(named string, spo2, pulse int) {
				at := c.now.Add(-story.back)
				if story.named != "" {
					c.postEvent(t, oximeter("D-1", named, at, spo2, pulse)).want(200).wantAt(object{"status": "accepted"})
					return
				}
				c.sendVendor(t, "telli", telli("SpO2", "D-1", at, fmt.Sprintf(`"spo2":%d,"pulse":%d`, spo2, pulse))).wantStatuses("accepted")
			}
			assign(former)
			for _, hours := range []int{20, 40} { // the clock is slow from the beginning
				c.now = start.Add(time.Duration(hours) * time.Hour)
				send("gw-a", 95, 76)
			}
			c.now = c.now.Add(time.Hour)
			c.request(authz.Nurse, "POST", "/devices/D-1/unassign/", object{"reason": "returned"}).want(200)
			assign(present)
			c.now = c.now.Add(10 * time.Minute)
			send("gw-b", 78, 128)
			if list := c.alertsOf(former, "pulse_oximetry"); len(list) > 0 {
				t.Errorf("alerts of the former holder: %v", list)
			}
			list := c.alertsOf(present, "pulse_oximetry")
			if len(list) == 0 || list[0]["level"] != "critical" {
				t.Fatalf("alerts of the present holder: %v", list)
			}
			if got := c.statEscalations(t); !slices.Equal(got, []string{"stat open system"}) {
				t.Errorf("escalations: %q", got)
			}
		})
	}
}
