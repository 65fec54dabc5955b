package routes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// telli is a version 2 reading as the vendor sends it.
func telli(kind, device string, at time.Time, data string) string {
	return fmt.Sprintf(`{"data":{%s},"deviceId":%q,"readingType":%q,"time":"%d","mem":"0","tzOffsetMinutes":"-300","genVer":"2",
		"devdata":{"r":"3","batt":"1","cycles":"0"}}`, data, device, kind, at.UnixMilli())
}

// An unreadable secondary value does not block its reading: the reading is stored, and staff are notified.
func TestTelliPulseLeftOut(t *testing.T) {
	var counted []string
	c := newIngestingClinic(t, func(e *routes.Engines) {
		e.Observer.Rejected = func(reason string) { counted = append(counted, reason) }
	})
	patient := c.enroll(nil)
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "d", "patient_id": patient, "device_type": "blood_pressure"}).want(200)
	c.now = c.now.Add(time.Hour)
	body := telli("BloodPressure", "d", c.now, `"systolic":190,"diastolic":80,"pulse":24`)
	for _, want := range []string{"accepted", "duplicate"} {
		answer := c.sendVendor(t, "telli", body).wantStatuses(want, "rejected validation_error")
		if fields := answer.delivered()[1]["field_errors"].(map[string]any); fields["data.pulse"] == nil {
			t.Errorf("wrong is %v", fields)
		}
		c.wantReadings(t, "blood_pressure 190.0/80.0 - ")
		c.wantAlerts(t, "blood_pressure critical", "device_battery warning", "implausible_reading critical")
		c.wantQuarantined(t, "rejected blood_pressure validation_error")
		if notified := c.queryRows(t, `SELECT key FROM announcements WHERE kind = 'event_quarantined'`); len(notified) != 1 || !slices.Equal(counted, []string{"validation_error"}) {
			t.Errorf("staff are notified of %q, and %q are counted", notified, counted)
		}
	}
}

func TestTelli(t *testing.T) {
	c := newIngestingClinic(t)
	const device = "860000000000011"
	reading := telli("BloodPressure", device, c.now, `"arrhythmia":0,"systolic":191,"diastolic":98,"pulse":66`)
	id := c.sendVendor(t, "telli", reading).wantStatuses("quarantined unknown_patient").delivered()[0]["event_id"].(string)
	patient := c.enroll(nil)
	c.request(authz.MA, "POST", "/ingestion/quarantine/"+id+"/release/", object{"patient_id": patient}).want(201).
		wantAt(object{"systolic": 191.0, "pulse": 66.0, "irregular_heartbeat": false, "device_id": device, "measured_at": "2026-01-15T13:45:00Z", "alert_triggered": true})
	c.sendVendor(t, "telli", reading).wantStatuses("duplicate")
	c.now = c.now.Add(time.Hour)
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": device, "patient_id": patient, "device_type": "blood_pressure"}).want(200)
	c.now = c.now.Add(time.Hour)
	next := telli("BloodPressure", device, c.now, `"arrhythmia":1,"systolic":121,"diastolic":78`)
	c.sendVendor(t, "telli", next).wantStatuses("accepted")
	c.wantReadings(t, "blood_pressure 191.0/98.0 66 no", "blood_pressure 121.0/78.0 - yes")
	c.request(authz.Nurse, "GET", "/devices/"+device+"/", nil).want(200).wantAt(object{"battery_level": 10.0, "battery_state": "low"})

	c.now = c.now.Add(time.Hour)
	heartbeat := fmt.Sprintf(`{"type":"Heartbeat","deviceId":%q,"time":"%d","tzOffsetMinutes":"-300","genVer":"2","devdata":{"r":"4","batt":"9","cycles":"0"}}`, device, c.now.UnixMilli())
	c.sendVendor(t, "telli", heartbeat).wantStatuses("accepted")
	c.request(authz.Nurse, "GET", "/devices/"+device+"/", nil).want(200).wantAt(object{"battery_level": 90.0, "battery_state": "normal", "status": "connected", "last_seen_at": "2026-01-15T16:45:00Z"})
	before := vigiltest.RowCounts(t, c.app)
	c.sendVendor(t, "telli", heartbeat).wantStatuses("duplicate")
	c.sendVendor(t, "telli", next).wantStatuses("duplicate")
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 0 {
		t.Errorf("repeats add %v", added)
	}
	c.sendVendor(t, "telli", telli("PeakFlow", device, c.now, `"fev1":1.85,"pef":322`)).wantStatuses("quarantined unsupported_type")
	c.sendVendor(t, "telli", telli("SleepingMatActivity", device, c.now, `"pulse":71`)).wantStatuses("ignored")
	c.sendVendor(t, "telli", telli("Weight", device, c.now, `"weight":165,"unit":"stone"`)).wantFields("data.unit")
	c.sendVendorWith(t, "telli", reading, "Authorization", vendorSecret).want(401, "invalid_secret")
	c.sendVendor(t, "tenovi", reading).want(400) // each vendor has its own format
}
