package routes_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A cuff with a wrong clock and values in range: its readings are stored as suspect, and the care team is notified of the clock once a day.
func TestStoryWrongClock(t *testing.T) {
	for _, born := range []string{"1955-12-10", "1985-06-01"} { // the second was not yet born at the clock's time
		t.Run(born, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1", "date_of_birth": born})
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 128, c.now.Add(-time.Hour))).want(200)
			before := c.score(patient)
			dead := time.Date(1970, 1, 1, 0, 2, 0, 0, time.UTC)
			id := c.postEvent(t, cuffEvent("BP-1", "gw-1", 134, dead)).want(200).wantAt(object{"status": "accepted"}).at("observation_id").(string)
			c.request(authz.Nurse, "GET", "/ingestion/observations/"+id+"/", nil).want(200).wantAt(object{
				"systolic": 134.0, "measured_at": "1970-01-01T00:02:00Z", "review_state": "suspect", "suspect_reason": "device_clock", "fhir_status": nil,
			})
			for i := range 3 {
				c.now = c.now.Add(time.Hour)
				c.postEvent(t, cuffEvent("BP-1", "gw-1", 130+i, dead.Add(time.Duration(i+1)*time.Hour))).want(200).wantAt(object{"status": "accepted"})
			}
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 134, dead)).want(200).wantAt(object{"status": "duplicate", "observation_id": id})
			c.wantAlerts(t, "device_clock warning")
			alert := c.alertsOf(patient, "device_clock")[0]
			wantIn(t, alert, object{"status": "active", "observation_id": id, "value": nil})
			if message := alert["message"].(string); !strings.Contains(message, "BP-1") || !strings.Contains(message, "Systolic 134 mmHg") || !strings.Contains(message, "1970-01-01T00:02:00Z") {
				t.Errorf("alert message %q", message)
			}
			if notified := c.queryRows(t, `SELECT kind || ' ' || severity FROM announcements WHERE alert != ''`); !slices.Equal(notified, []string{"device_alert_raised warning"}) || len(c.statEscalations(t)) != 0 {
				t.Errorf("notified: %q, escalations: %q", notified, c.statEscalations(t))
			}
			latest := c.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]["latest_vitals"].(object)["blood_pressure"].(object)
			if latest["systolic"] != 128.0 {
				t.Errorf("latest are %v", latest)
			}
			if score := c.score(patient); score["risk_level"] != "warning" || score["risk_score"].(float64) > 53 { // a question that waits, and no more
				t.Errorf("ranked %v", score)
			}
			if days := c.queryRows(t, `SELECT day FROM reading_days`); !slices.Equal(days, []string{"2026-01-15"}) {
				t.Errorf("days with data: %q", days)
			}
			if sent := c.queryRows(t, `SELECT id FROM transmissions`); len(sent) != 1 {
				t.Errorf("%d are queued for the EMR", len(sent))
			}

			// The alert is acknowledged: it does not notify again that day, whether or not the time was valid in between. The next day it does.
			c.request(authz.Nurse, "POST", "/alerts/"+formatID(alert)+"/acknowledge/", nil).want(200)
			if level := c.score(patient)["risk_level"]; level != before["risk_level"] {
				t.Errorf("answered it is ranked %v, before %v", level, before)
			}
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 135, dead.Add(9*time.Hour))).want(200)
			c.now = c.now.Add(time.Hour)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 126, c.now)).want(200)
			c.now = c.now.Add(time.Hour)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 136, dead.Add(10*time.Hour))).want(200)
			c.wantAlerts(t, "device_clock warning")
			c.now = c.now.Add(24 * time.Hour)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 137, dead.Add(11*time.Hour))).want(200)
			c.wantAlerts(t, "device_clock warning", "device_clock warning")
			c.now = c.now.Add(time.Hour)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 126, c.now)).want(200)
			for _, alert := range c.alertsOf(patient, "device_clock") {
				if status := alert["status"]; status != "auto_resolved" && status != "acknowledged" {
					t.Errorf("an alert is %v", status)
				}
			}
		})
	}
}

// How old a measurement may be: up to a year before enrollment its time is accepted, as are all typed times.
func TestStoryMeasurementAgeLimit(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	enrolled := c.now
	device := 0
	for age, wrong := range map[time.Time]bool{
		enrolled.AddDate(-1, 0, 0): false, enrolled.AddDate(-1, 0, 0).Add(-time.Second): true, enrolled.AddDate(0, -11, 0): false, enrolled.AddDate(-30, 0, 0): true,
	} {
		device++ // times of one device that go back are in doubt
		id := c.postEvent(t, cuffEvent(fmt.Sprint("BP-", device), "gw-1", 128, age)).want(200).wantAt(object{"status": "accepted"}).at("observation_id").(string)
		state := c.request(authz.Nurse, "GET", "/ingestion/observations/"+id+"/", nil).want(200).at("review_state")
		if (state == "suspect") != wrong {
			t.Errorf("measured %s: %v", age, state)
		}
	}
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": patient, "systolic": 128, "diastolic": 80, "device_id": "BP-1", "measured_at": enrolled.AddDate(-3, 0, 0).Format(time.RFC3339),
	}).want(201).wantAt(object{"review_state": "accepted"})

	// A device cannot have measured before it was made.
	c.request(authz.Nurse, "POST", "/devices/", object{"device_id": "BP-9", "device_type": "blood_pressure", "manufacture_date": "2026-01-05"}).want(201)
	for day, wrong := range map[string]bool{"2026-01-03T00:00:00Z": true, "2026-01-05T06:00:00Z": false} {
		at, _ := time.Parse(time.RFC3339, day)
		id := c.postEvent(t, cuffEvent("BP-9", "gw-1", 128, at)).want(200).at("observation_id").(string)
		if state := c.request(authz.Nurse, "GET", "/ingestion/observations/"+id+"/", nil).want(200).at("review_state"); (state == "suspect") != wrong {
			t.Errorf("measured %s: %v", day, state)
		}
	}
}

// A vendor names no patient: a measurement with an impossible time belongs to the current holder of the device.
func TestStoryWrongClockOfAHeldDevice(t *testing.T) {
	c := newIngestingClinic(t)
	patient, other := c.enroll(nil), c.enroll(object{"gateway_patient_id": "gw-2"})
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "tel", "patient_id": patient, "device_type": "blood_pressure"}).want(200)
	c.now = c.now.Add(time.Hour)
	dead := time.Date(1970, 1, 1, 0, 2, 0, 0, time.UTC)
	c.sendVendor(t, "telli", telli("BloodPressure", "tel", dead, `"systolic":204,"diastolic":124`)).wantStatuses("accepted")
	if alerts := c.alertsOf(patient, "device_clock"); len(alerts) != 1 {
		t.Errorf("%d alerts", len(alerts))
	}
	// The gateway names another patient: the event is quarantined.
	c.postEvent(t, cuffEvent("tel", "gw-2", 204, dead.Add(time.Hour))).want(200).wantAt(object{"status": "quarantined", "reason": "patient_mismatch"})
	// Implausible and without a valid time: as urgent as at a valid one.
	c.sendVendor(t, "telli", telli("BloodPressure", "tel", dead.Add(2*time.Hour), `"systolic":55,"diastolic":34`)).want(400)
	wantIn(t, c.implausible(patient), object{"late": false, "time_in_doubt": true, "status": "active"})
	notified := c.queryRows(t, `SELECT DISTINCT a.type FROM announcements n JOIN alerts a ON a.id = n.alert ORDER BY a.type`)
	if !slices.Equal(notified, []string{"blood_pressure", "device_battery", "device_clock", "implausible_reading"}) || len(c.statEscalations(t)) != 1 {
		t.Errorf("notified: %q, escalations: %q", notified, c.statEscalations(t))
	}
	// The device is returned and assigned to another patient, and that patient's care team is notified.
	c.request(authz.Nurse, "POST", "/devices/tel/unassign/", object{"reason": "returned"}).want(200)
	c.now = c.now.Add(time.Hour)
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "tel", "patient_id": other, "device_type": "blood_pressure"}).want(200)
	c.now = c.now.Add(time.Hour)
	c.sendVendor(t, "telli", telli("BloodPressure", "tel", dead.Add(3*time.Hour), `"systolic":144,"diastolic":94`)).wantStatuses("accepted")
	if alerts := c.alertsOf(other, "device_clock"); len(alerts) != 1 || alerts[0]["status"] != "active" {
		t.Errorf("alerts: %v", alerts)
	}
	if alerts := c.alertsOf(patient, "device_clock"); len(alerts) != 1 || alerts[0]["status"] != "auto_resolved" {
		t.Errorf("alerts: %v", alerts)
	}
}

// A part that joins a reading in doubt is judged like it, in any order of arrival.
func TestStoryWrongClockInParts(t *testing.T) {
	for _, first := range []string{"pressure", "pulse"} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		dead := time.Date(1970, 1, 1, 0, 2, 0, 0, time.UTC)
		parts := []string{pressure("T-1", "GW-1", dead, 204), pulse("T-1", "GW-1", dead, 36)}
		if first == "pulse" {
			slices.Reverse(parts)
		}
		for _, part := range parts {
			c.sendVendor(t, "tenovi", part)
		}
		c.wantReadings(t, "blood_pressure 204.0/82.0 36 ")
		c.wantAlerts(t, "blood_pressure critical", "device_clock warning", "pulse critical")
		if states := c.queryRows(t, `SELECT review_state || ' ' || suspect_reason FROM observations`); !slices.Equal(states, []string{"suspect device_clock"}) || len(c.statEscalations(t)) != 1 {
			t.Errorf("%s first: %q of %s", first, states, patient)
		}
	}
}

func formatID(o object) string { return strconv.FormatInt(int64(o["id"].(float64)), 10) }
