package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// strayEvent is a measurement of the contract's gateway with the given members for kind and values.
func strayEvent(members string, at time.Time) string {
	return `{"event_type":"measurement.created","device_id":"DEV-1","patient_id":"GW-1",` + members + `,"timestamp":"` + at.Format(time.RFC3339) + `"}`
}

// wantTold checks that the patient of a new clinic has one critical alert and one stat escalation if a danger was sent, else none.
func (c *clinic) wantTold(t *testing.T, name, patient string, told bool) {
	t.Helper()
	want := 0
	if told {
		want = 1
	}
	stats := c.request(authz.Nurse, "GET", "/escalations/?priority=stat&patient_id="+patient, nil).results()
	critical := c.request(authz.Nurse, "GET", "/alerts/?level=critical&patient_id="+patient, nil).results()
	if len(stats) != want || len(critical) != want {
		t.Errorf("%s: %d stat escalations and %d critical alerts %v, want %d", name, len(stats), len(critical), critical, want)
	}
}

// Spellings of a known kind are understood.
func TestStoryKindInOtherSpellings(t *testing.T) {
	for kind, values := range map[string]string{
		"Blood Pressure": `{"systolic":206,"diastolic":126}`, "blood-pressure": `{"systolic":206,"diastolic":126}`, "BP": `{"systolic":206,"diastolic":126}`,
		" blood_pressure ": `{"systolic":206,"diastolic":126}`, "BloodPressure": `{"systolic":206,"diastolic":126}`, "Pulse Oximetry": `{"spo2":80}`, "SpO2": `{"spo2":80}`,
		"Blood  Glucose": `{"glucose":30}`, "BODY-TEMPERATURE": `{"temperature":40.5}`,
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		unit := map[string]string{"Blood  Glucose": "mg/dL", "BODY-TEMPERATURE": "C"}[kind]
		members := fmt.Sprintf(`"measurement_type":%q,"values":%s`, kind, values)
		if unit != "" {
			members += fmt.Sprintf(`,"unit":%q`, unit)
		}
		at := c.now.Add(-time.Minute)
		first := c.postEvent(t, strayEvent(members, at)).want(200).wantAt(object{"status": "accepted"})
		c.wantTold(t, kind, patient, true)
		if strings.Contains(values, "systolic") {
			again := strayEvent(`"measurement_type":"blood_pressure","values":`+values, at)
			c.postEvent(t, again).want(200).wantAt(object{"status": "duplicate", "observation_id": first.at("observation_id")})
		}
	}
}

// A dangerous value of an event without a readable kind, or in a text, raises the alert and its stat escalation, also if the event is refused.
func TestStoryDangerOfUnreadableKind(t *testing.T) {
	for _, test := range []struct {
		members string
		status  int
		told    bool
	}{
		{`"values":{"systolic":206,"diastolic":126}`, 400, true},
		{`"measurement_type":null,"values":{"systolic":206,"diastolic":126}`, 400, true},
		{`"measurement_type":"","values":{"spo2":80}`, 400, true},
		{`"measurement_type":7,"values":{"spo2":80}`, 400, true},
		{`"measurement_type":"blood_presure","values":{"systolic":206,"diastolic":126}`, 200, true},
		{`"measurement_type":"blood_presure","values":{"systolic":126,"diastolic":80}`, 200, false},
		{`"measurement_type":"vitals","values":{"systolic":126,"diastolic":80,"spo2":80}`, 200, true},
		{`"measurement_type":"vitals","values":{"systolic":206,"diastolic":126,"spo2":98}`, 200, true},
		{`"measurement_type":"weight","unit":"kg","values":{"spo2":80}`, 400, true},
		{`"measurement_type":"blood_pressure","values":{"spo2":"80%"}`, 400, true},
		{`"measurement_type":"heart_rate","values":{"pulse":180}`, 200, true},
		{`"measurement_type":"sugar","unit":"mg/dL","values":{"glucose":30}`, 200, true},
		{`"measurement_type":"sugar","values":{"glucose":30}`, 200, true},
		{`"measurement_type":"ecg","values":{"leads":12}`, 200, false},
		{`"measurement_type":"ecg"`, 200, false},
		{`"measurement_type":"pulse_oximetry","values":{"spo2":"80%"}`, 400, true},
		{`"measurement_type":"pulse_oximetry","values":{"spo2":" 80 % "}`, 400, true},
		{`"measurement_type":"pulse_oximetry","values":{"spo2":"98%"}`, 400, false},
		{`"measurement_type":"blood_glucose","unit":"mmol/L","values":{"glucose":"2,1"}`, 400, true},
		{`"measurement_type":"blood_glucose","values":{"glucose":"2,1 mmol/L"}`, 400, true},
		{`"measurement_type":"blood_glucose","unit":"mmol/L","values":{"glucose":"6,1"}`, 400, false},
		{`"measurement_type":"blood_pressure","values":{"systolic":"206/126"}`, 400, true},
		{`"measurement_type":"blood_pressure","values":{"blood_pressure":"206/126 mmHg"}`, 400, true},
		{`"measurement_type":"blood_pressure","values":"206/126"`, 400, true},
		{`"measurement_type":"blood_pressure","values":"126/80"`, 400, false},
		{`"measurement_type":"blood_pressure","values":{"systolic":"206 mmHg","diastolic":"126 mmHg"}`, 400, true},
		{`"measurement_type":"blood_pressure","values":{"Systolic":206,"DIASTOLIC":126}`, 400, true},
		{`"measurement_type":"bp reading","values":{"value":"206/126"}`, 200, true},
		{`"measurement_type":"body_temperature","values":{"temperature":"40,5 °C"}`, 400, true},
		{`"measurement_type":"blood_pressure","values":{"systolic":"206","Systolic":120,"diastolic":80}`, 400, false},
		{`"measurement_type":"vitals","values":{"systolic":null,"spo2":80}`, 200, true},
		{`"measurement_type":"weight","values":{"weight":"1,234"},"unit":"kg"`, 400, false},
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		body := strayEvent(test.members, c.now.Add(-time.Minute))
		c.postEvent(t, body).want(test.status)
		c.wantTold(t, test.members, patient, test.told)
		c.postEvent(t, body).want(test.status) // a repeat adds nothing
		c.wantTold(t, test.members, patient, test.told)
	}
}

// The type of an event is understood in any spelling too; without one a dangerous value raises the alert.
func TestStoryDangerOfUnreadableEventType(t *testing.T) {
	for sent, status := range map[string]int{`"Measurement.Created"`: 200, `"measurement created "`: 200, `null`: 400, `""`: 400, `7`: 400} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		body := strings.Replace(strayEvent(`"measurement_type":"bp","values":{"systolic":206,"diastolic":126}`, c.now.Add(-time.Minute)), `"measurement.created"`, sent, 1)
		c.postEvent(t, body).want(status)
		c.wantTold(t, sent, patient, true)
	}
}

// An event of unreadable kind and unknown patient is announced at once; released to its patient it raises the alert, and confirmed it is
// stored once, also if the gateway sends it again with its kind.
func TestStoryDangerOfUnreadableKindReleased(t *testing.T) {
	c := newIngestingClinic(t)
	members, at := `"measurement_type":"blood_presure","values":{"systolic":206,"diastolic":126}`, c.now.Add(-time.Minute)
	id := c.postEvent(t, strayEvent(members, at)).want(200).wantAt(object{"status": "quarantined", "reason": "unsupported_type"}).at("event_id").(string)
	if told := c.queryRows(t, `SELECT key FROM announcements WHERE key LIKE 'event_unmatched %'`); len(told) != 1 {
		t.Errorf("told: %v", told)
	}
	patient := c.enroll(object{"gateway_patient_id": "GW-1"})
	c.request(authz.MA, "POST", "/ingestion/quarantine/"+id+"/release/", object{"patient_id": patient}).want(200)
	c.wantTold(t, "released", patient, true)
	c.request(authz.Provider, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "Called."}).want(201).wantAt(object{"systolic": 206.0, "observation_type": "blood_pressure"})
	c.postEvent(t, strayEvent(strings.Replace(members, "presure", "pressure", 1), at)).want(200).wantAt(object{"status": "duplicate"})
}

// The same holds for other vendors' forms.
func TestStoryDangerOfUnreadableKindOfVendors(t *testing.T) {
	tenovi := func(metric, values string) string {
		return `[{` + metric + `"hwi_device_id":"DEV-1","patient_id":"GW-1",` + values + `,"timestamp":"2026-01-15T13:44:00Z"}]`
	}
	telliOf := func(kind, data string) string {
		return fmt.Sprintf(`{"data":{%s},"deviceId":"DEV-1",%s"time":"1768484640000"}`, data, kind)
	}
	for _, test := range []struct {
		vendor, body, status string
		told                 bool
	}{
		{"tenovi", tenovi(`"metric":"Blood Pressure",`, `"value_1":206,"value_2":126`), "accepted", true},
		{"tenovi", tenovi(`"metric":"blood-pressure ",`, `"value_1":206,"value_2":126`), "accepted", true},
		{"tenovi", tenovi(`"metric":"SpO2 ",`, `"value_1":80`), "accepted", true},
		{"tenovi", tenovi(`"metric":"BP",`, `"value_1":206,"value_2":126`), "quarantined unsupported_type", true},
		{"tenovi", tenovi(`"metric":"oximetry",`, `"value_1":80`), "quarantined unsupported_type", true},
		{"tenovi", tenovi(`"metric":"blood_presure",`, `"value_1":206,"value_2":126`), "quarantined unsupported_type", true},
		{"tenovi", tenovi(`"metric":"blood_presure",`, `"value_1":126,"value_2":80`), "quarantined unsupported_type", false},
		{"tenovi", tenovi(`"metric":"steps",`, `"value_1":206,"value_2":126`), "ignored", false},
		{"tenovi", tenovi(`"metric":"peak_flow",`, `"value_1":206`), "quarantined unsupported_type", false},
		{"tenovi", tenovi(``, `"value_1":206,"value_2":126`), "", true},
		{"tenovi", tenovi(`"metric":"spO2",`, `"value_1":"80%"`), "", true},
		{"tenovi", tenovi(`"metric":"blood_pressure",`, `"value_1":"206/126"`), "", true},
		{"telli", telliOf(`"readingType":"Blood-Pressure",`, `"systolic":206,"diastolic":126`), "accepted", true},
		{"telli", telliOf(`"readingType":"blood_pressure ",`, `"systolic":206,"diastolic":126`), "accepted", true},
		{"telli", telliOf(`"readingType":"BloodPresure",`, `"systolic":206,"diastolic":126`), "quarantined unsupported_type", true},
		{"telli", telliOf(``, `"systolic":206,"diastolic":126`), "", true},
		{"telli", telliOf(`"readingType":"SpO2",`, `"spo2":"80%"`), "", true},
		{"telli", telliOf(`"readingType":"BloodGlucose",`, `"glucose":"2,1","unit":"mmol/L"`), "", true},
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "DEV-1", "patient_id": patient, "device_type": "other", "assigned_at": "2026-01-10T00:00:00Z"}).want(200)
		answer := c.sendVendor(t, test.vendor, test.body)
		if test.status == "" {
			answer.want(400)
		} else {
			answer.wantStatuses(test.status)
		}
		c.wantTold(t, test.vendor+" "+test.body, patient, test.told)
	}
}
