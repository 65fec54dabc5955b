package routes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A clock was ahead, alerted and was decided about, and now sends a wrong-clock time: the care team is notified of that
// too, once.
func TestStoryFutureClockThenWrong(t *testing.T) {
	for _, decided := range []string{"confirm", "discard", "resolve", "nothing"} {
		t.Run(decided, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 126, c.now.Add(time.Hour))).want(400)
			alert := c.alertsOf(patient, "device_clock")[0]
			event := "/ingestion/quarantine/" + alert["quarantine_id"].(string)
			switch decided {
			case "confirm":
				c.request(authz.Nurse, "POST", event+"/confirm/", object{"notes": "True."}).want(201)
			case "discard":
				c.request(authz.Nurse, "POST", event+"/discard/", object{"reason": "Nobody wore it."}).want(200)
			case "resolve":
				c.request(authz.Nurse, "POST", "/alerts/"+formatID(alert)+"/resolve/", object{}).want(200)
			}
			dead := time.Date(1970, 1, 1, 0, 2, 0, 0, time.UTC)
			clockAlerts := func() (list []object) {
				t.Helper()
				for _, alert := range c.alertsOf(patient, "device_clock") {
					if strings.Contains(alert["message"].(string), "cannot be trusted") {
						list = append(list, alert)
					}
				}
				return list
			}
			c.now = c.now.Add(time.Minute)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 204, dead)).want(200).wantAt(object{"status": "accepted"})
			notified := clockAlerts()
			if len(notified) != 1 || notified[0]["status"] != "active" || !strings.Contains(notified[0]["message"].(string), "Systolic 204 mmHg") {
				t.Fatalf("of a wrong clock: %v", notified)
			}
			c.request(authz.Nurse, "POST", "/alerts/"+formatID(notified[0])+"/resolve/", object{}).want(200)
			c.now = c.now.Add(time.Minute)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 206, dead.Add(time.Hour))).want(200)
			if notified := clockAlerts(); len(notified) != 1 {
				t.Errorf("notified again: %v", notified)
			}
			// Corrected, and dead again: the day's alert was resolved by a person.
			c.now = c.now.Add(time.Minute)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 128, c.now)).want(200)
			c.now = c.now.Add(time.Minute)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 208, dead.Add(2*time.Hour))).want(200)
			if notified := clockAlerts(); len(notified) != 1 {
				t.Errorf("notified again that day: %v", notified)
			}
			c.now = c.now.Add(24 * time.Hour)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 210, dead.Add(3*time.Hour))).want(200)
			if notified := clockAlerts(); len(notified) != 2 {
				t.Errorf("the next day: %v", notified)
			}
		})
	}
}
