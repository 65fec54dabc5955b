package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// An implausible value with an impossible time: the alert shows both times and is as urgent as one at a right time, and the care team is
// notified of the clock once per device and day, registered or not.
func TestStoryImplausibleOfAWrongClock(t *testing.T) {
	for _, held := range []bool{false, true} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "gw-1"})
		if held {
			c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "OX-1", "patient_id": patient, "device_type": "pulse_oximeter"}).want(200)
			c.now = c.now.Add(time.Hour)
		}
		dead := time.Date(1970, 1, 1, 0, 2, 0, 0, time.UTC)
		for i := range 3 {
			c.postEvent(t, measured("OX-1", "gw-1", "pulse_oximetry", "%", dead.Add(time.Duration(i)*time.Minute), `"spo2":48`)).wantFields("values.spo2")
			c.now = c.now.Add(time.Hour)
		}
		clocks, urgent := c.alertsOf(patient, "device_clock"), c.alertsOf(patient, "implausible_reading")
		if len(clocks) != 1 || len(urgent) != 1 || urgent[0]["reported_count"] != 3.0 {
			t.Fatalf("%d alerts about the clock, %d about values", len(clocks), len(urgent))
		}
		wantIn(t, clocks[0], object{"level": "warning", "status": "active"})
		if message := urgent[0]["message"].(string); !strings.Contains(message, "Measured 1970-01-01T00:02:00Z, received ") {
			t.Errorf("message %q", message)
		}
		notified := c.queryRows(t, `SELECT a.type FROM announcements n JOIN alerts a ON a.id = n.alert WHERE n.kind IN ('alert_raised', 'device_alert_raised') ORDER BY 1`)
		if !slices.Equal(notified, []string{"device_clock", "implausible_reading"}) || !slices.Equal(c.statEscalations(t), []string{"stat open system"}) {
			t.Errorf("notified: %q, escalations: %q", notified, c.statEscalations(t))
		}
		c.postEvent(t, measured("OX-1", "gw-1", "pulse_oximetry", "%", c.now, `"spo2":97`)).want(200)
		wantIn(t, c.alertsOf(patient, "device_clock")[0], object{"status": "auto_resolved"})
	}
}

// A child of 12 kg is no daily emergency: the care team gets a warning, and a person decides, as for any implausible
// value.
func TestStoryChildsWeight(t *testing.T) {
	for _, story := range []struct {
		name, born string
		kg         string
		level      string
	}{
		{"three years old", "2022-12-10", "12.4", "warning"},
		{"the day before coming of age", "2008-01-16", "19.99", "warning"}, // today is January 15, 2026
		{"of age today", "2008-01-15", "19.99", "critical"},
		{"an adult", "1955-12-10", "12.4", "critical"},
		{"a child of 600 kg", "2022-12-10", "600", "critical"},
	} {
		t.Run(story.name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1", "date_of_birth": story.born})
			c.postEvent(t, measured("W-1", "gw-1", "weight", "kg", c.now, `"weight":`+story.kg)).wantFields("values.weight")
			alert := c.implausible(patient)
			wantIn(t, alert, object{"level": story.level, "status": "active"})
			if notified := c.queryRows(t, `SELECT kind || ' ' || severity FROM announcements WHERE alert != ''`); !slices.Equal(notified, []string{"alert_raised " + story.level}) || len(c.statEscalations(t)) != 0 {
				t.Errorf("notified: %q, escalations: %q", notified, c.statEscalations(t))
			}
			if score := c.score(patient); (score["risk_level"] == "critical") != (story.level == "critical") {
				t.Errorf("ranked %v", score)
			}
			c.request(authz.Nurse, "POST", "/alerts/"+formatID(alert)+"/acknowledge/", nil).want(200)
			if score := c.score(patient); story.level == "warning" && score["risk_level"] == "critical" {
				t.Errorf("ranked %v", score)
			}
			path := "/ingestion/quarantine/" + alert["quarantine_id"].(string)
			c.request(authz.MA, "POST", path+"/confirm/", object{"notes": "x"}).want(403)
			c.request(authz.Nurse, "POST", path+"/confirm/", object{"notes": "Her weight."}).want(201).wantAt(object{"review_state": "confirmed"})
		})
	}
	// From every source but the patient, who is asked first; a child's other values alert as usual.
	c := newIngestingClinic(t)
	child := c.enroll(object{"gateway_patient_id": "GW-1", "date_of_birth": "2022-12-10"})
	at := c.now.Format(time.RFC3339)
	c.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": child, "weight_kg": 12.1, "measured_at": at}).wantFields("weight_kg")
	c.requestAs(vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(child)), "POST", "/ingestion/weight/", object{"weight_lbs": 27, "measured_at": at}).want(400)
	c.postEvent(t, measured("W-1", "GW-1", "weight", "kg", c.now.Add(time.Hour), `"weight":12.2`)).want(400) // a clock that is ahead
	c.postEvent(t, measured("BP-1", "GW-1", "blood_pressure", "mmHg", c.now, `"systolic":104,"diastolic":58,"pulse":28`)).want(400)
	var levels []string
	for _, alert := range c.alertsOf(child, "implausible_reading") {
		levels = append(levels, alert["level"].(string))
	}
	wantSame(t, "levels", levels, []string{"critical", "warning", "warning"})
	wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
}
