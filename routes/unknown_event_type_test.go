package routes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A measurement of an unknown event type is kept in quarantine, and its dangerous values raise the alert: one wrong letter of the
// sender must not hide an emergency. Without values of a measurement the event is ignored.
func TestStoryDangerOfUnknownEventType(t *testing.T) {
	for _, eventType := range []string{"measurment.created", "measurement", "measurement.updated", "reading.created"} {
		for _, test := range []struct {
			members string
			told    bool
		}{
			{`"measurement_type":"bp","values":{"systolic":206,"diastolic":126}`, true},
			{`"values":{"systolic":206,"diastolic":126}`, true},
			{`"measurement_type":"pulse_oximetry","unit":"%","values":{"spo2":"80%"}`, true},
			{`"measurement_type":"bp","values":{"systolic":124,"diastolic":76}`, false},
		} {
			c := newIngestingClinic(t)
			patient := c.enroll(object{"gateway_patient_id": "GW-1"})
			body := strings.Replace(strayEvent(test.members, c.now.Add(-time.Minute)), "measurement.created", eventType, 1)
			first := c.postEvent(t, body).want(200).wantAt(object{"status": "quarantined", "reason": "unsupported_type"})
			c.wantTold(t, eventType+test.members, patient, test.told)
			c.postEvent(t, body).want(200).wantAt(object{"event_id": first.at("event_id")})
			c.wantTold(t, eventType+test.members, patient, test.told)
		}
	}
	c := newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	for _, members := range []string{`"values":{"leads":12}`, `"battery_level":5`, `"values":null`, `"values":[206,126]`} {
		body := strings.Replace(strayEvent(members, c.now), "measurement.created", "measurement.archived", 1)
		c.postEvent(t, body).want(200).wantAt(object{"status": "ignored"})
	}
	// A person confirms the values, and the sender's corrected event is the same measurement.
	at := c.now.Add(-time.Minute)
	wrong := strings.Replace(strayEvent(`"measurement_type":"bp","values":{"systolic":206,"diastolic":126}`, at), "measurement.created", "measurment.created", 1)
	id := c.postEvent(t, wrong).want(200).at("event_id").(string)
	stored := c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "Read back by phone."}).want(201)
	c.postEvent(t, strayEvent(`"measurement_type":"bp","values":{"systolic":206,"diastolic":126}`, at)).want(200).
		wantAt(object{"status": "duplicate", "observation_id": stored.at("id")})
}

// A dangerous value of another kind beside a good reading raises its own alert, and the reading is stored; a harmless one is left out.
func TestStoryDangerBesideAnotherKind(t *testing.T) {
	for _, test := range []struct {
		members string
		told    bool
	}{
		{`"measurement_type":"pulse_oximetry","unit":"%","values":{"spo2":97,"pulse":70,"systolic":206,"diastolic":126}`, true},
		{`"measurement_type":"weight","unit":"kg","values":{"weight":80,"systolic":206,"diastolic":126}`, true},
		{`"measurement_type":"body_temperature","unit":"C","values":{"temperature":36.9,"spo2":80}`, true},
		{`"measurement_type":"blood_pressure","values":{"systolic":120,"diastolic":80,"spo2":80}`, true},
		{`"measurement_type":"blood_pressure","values":{"systolic":120,"diastolic":80,"spo2":"80%"}`, true},
		{`"measurement_type":"blood_pressure","values":{"systolic":120,"diastolic":80,"glucose":30}`, true},
		{`"measurement_type":"blood_pressure","values":{"systolic":120,"diastolic":80,"spo2":97,"weight":80}`, false},
		{`"measurement_type":"weight","unit":"kg","values":{"weight":80,"systolic":126,"diastolic":80}`, false},
		{`"measurement_type":"pulse_oximetry","unit":"%","values":{"spo2":97,"systolic":null}`, false},
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		body := strayEvent(test.members, c.now.Add(-time.Minute))
		first := c.postEvent(t, body).want(200).wantAt(object{"status": "accepted"})
		c.wantTold(t, test.members, patient, test.told)
		c.postEvent(t, body).want(200).wantAt(object{"status": "duplicate", "observation_id": first.at("observation_id")})
		c.wantTold(t, test.members, patient, test.told)
		if !test.told || !strings.Contains(test.members, "diastolic\":126") {
			continue
		}
		pending := c.request(authz.MA, "GET", "/ingestion/quarantine/?status=rejected", nil).results()
		if len(pending) != 1 {
			t.Fatalf("%s: %d events wait", test.members, len(pending))
		}
		c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+pending[0]["id"].(string)+"/confirm/", object{"notes": "Read back by phone."}).want(201).
			wantAt(object{"observation_type": "blood_pressure", "systolic": 206.0, "patient_id": patient})
	}
}

// An identifier that an event of a device or hub can do without costs nothing when it cannot be read.
func TestStoryOptionalIdentity(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "GW-1"})
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "DEV-1", "patient_id": patient, "device_type": "blood_pressure"}).want(200)
	c.now = c.now.Add(time.Hour)
	c.postEvent(t, strayEvent(`"hub_id":"HUB-1","measurement_type":"bp","values":{"systolic":124,"diastolic":76}`, c.now)).want(200)
	at := c.now.Add(time.Minute)
	c.now = at
	for _, ids := range []string{`"device_id":5`, `"patient_id":5`} {
		at = at.Add(time.Second)
		c.postEvent(t, `{"event_type":"hub.offline","hub_id":"HUB-1",`+ids+`,"timestamp":"`+at.Format(time.RFC3339)+`"}`).want(200).wantAt(object{"status": "accepted"})
		c.postEvent(t, `{"event_type":"device.battery_low","device_id":"DEV-1","battery_level":5,"patient_id":{},"timestamp":"`+at.Format(time.RFC3339)+`"}`).want(200)
	}
	wantSame(t, "raised", c.queryRows(t, "SELECT DISTINCT type FROM alerts ORDER BY type"), []string{"device_battery", "hub_offline"})
	c.postEvent(t, `{"event_type":"device.battery_low","device_id":5,"timestamp":"`+at.Format(time.RFC3339)+`"}`).wantFields("device_id")
}

// Dangerous values of another kind in an event that is refused, and values of several kinds or in another unit, are told too.
func TestStoryDangerAmongSeveralKinds(t *testing.T) {
	for _, test := range []struct {
		members string
		status  int
		told    bool
	}{
		{`"measurement_type":"weight","values":{"weight":82,"systolic":206,"diastolic":126}`, 400, true},
		{`"measurement_type":"weight","values":{"weight":82,"systolic":126,"diastolic":80}`, 400, false},
		{`"measurement_type":"blood_pressure","values":{"systolic":"x","diastolic":80,"spo2":70}`, 400, true},
		{`"measurement_type":"vitals","unit":"mmol/L","values":{"glucose":6.1,"temperature":40.2}`, 200, true},
		{`"measurement_type":"vitals","values":{"weight":82,"spo2":97,"pulse":190}`, 200, true},
		{`"measurement_type":"vitals","values":{"weight":82,"spo2":97,"pulse":70}`, 200, false},
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		c.postEvent(t, strayEvent(test.members, c.now.Add(-time.Minute))).want(test.status)
		c.wantTold(t, test.members, patient, test.told)
	}
}

// A critical value is told in every shape that a person reads without a doubt, and harmless ones are not.
func TestStoryDangerInOtherShapes(t *testing.T) {
	for _, test := range []struct {
		members string
		status  int
		told    bool
	}{
		{`"measurement_type":"blood_pressure","unit":"mmHg","values":{"systolic":120,"diastolic":76,"SpO2":79}`, 200, true},
		{`"measurement_type":"blood_pressure","unit":"mmHg","values":{"systolic":120,"diastolic":76,"SpO2":97}`, 200, false},
		{`"measurement_type":"blood_pressure","values":{"systolic":{"value":206,"unit":"mmHg"},"diastolic":{"value":126,"unit":"mmHg"}}`, 400, true},
		{`"measurement_type":"blood_pressure","values":{"systolic":{"value":126,"unit":"mmHg"},"diastolic":{"value":76,"unit":"mmHg"}}`, 400, false},
		{`"measurement_type":"pulse_oximetry","unit":"%","values":{"spo2":{"value":79,"unit":"%"}}`, 400, true},
		{`"measurement_type":"blood_pressure","values":{"blood_pressure":{"systolic":206,"diastolic":126}}`, 400, true},
		{`"measurement_type":"blood_pressure","values":[{"name":"systolic","value":206},{"name":"diastolic","value":126}]`, 400, true},
		{`"measurement_type":"blood_pressure","values":{"systolic_mmhg":206,"diastolic_mmhg":126}`, 400, true},
		{`"measurement_type":"pulse_oximetry","unit":"%","values":{"spo2":"79\u00a0%"}`, 400, true},
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		c.postEvent(t, strayEvent(test.members, c.now.Add(-time.Minute))).want(test.status)
		c.wantTold(t, test.members, patient, test.told)
	}
}
