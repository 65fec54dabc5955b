package routes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A pressure in kilopascals is converted if the unit is stated. Without one, numbers that are possible in kilopascals only wait for a person, and
// alert if the converted values are dangerous.
func TestStoryKilopascal(t *testing.T) {
	for _, test := range []struct {
		members string
		status  int
		told    bool
		want    string // stored, or confirmed
	}{
		{`"unit":"kPa","values":{"systolic":16,"diastolic":10}`, 200, false, "120 75"},
		{`"unit":"KPA","values":{"systolic":16.3,"diastolic":10.4,"pulse":70}`, 200, false, "122 78"},
		{`"unit":"kPa","values":{"systolic":27.5,"diastolic":16.8}`, 200, true, "206 126"},
		{`"unit":"kPa","values":{"systolic":206,"diastolic":126}`, 400, true, "206 126"},
		{`"values":{"systolic":16,"diastolic":10}`, 400, false, "120 75"},
		{`"unit":"","values":{"systolic":15.5,"diastolic":9.9}`, 400, false, "116 74"},
		{`"values":{"systolic":27.5,"diastolic":16.8}`, 400, true, "206 126"},
		{`"values":{"systolic":9.3,"diastolic":6}`, 400, true, "70 45"},
		{`"values":{"systolic":"16 kPa","diastolic":"10 kPa"}`, 400, false, "120 75"},
		{`"values":{"pressure":"27.5/16.8 kPa"}`, 400, true, "206 126"},
		{`"values":{"blood_pressure":"16/10"}`, 400, false, "120 75"},
		{`"unit":"mmHg","values":{"systolic":16,"diastolic":10}`, 400, true, "16 10"},
		{`"values":{"systolic":310,"diastolic":126}`, 400, true, "310 126"},
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		c.postEvent(t, strayEvent(`"measurement_type":"bp",`+test.members, c.now.Add(-time.Minute))).want(test.status)
		c.wantTold(t, test.members, patient, test.told)
		if test.status == 400 {
			id := c.queryRows(t, `SELECT id FROM gateway_events`)[0]
			c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "Read back."}).want(201)
		}
		wantSame(t, test.members, c.queryRows(t, `SELECT printf('%g %g', systolic, diastolic) FROM observations`), []string{test.want})
	}
	for _, test := range []struct{ data, want string }{
		{`"systolic":"16.0","diastolic":"10.0","unit":"kPa"`, "120 75"}, {`"systolic":120,"diastolic":75,"unit":"mmHg"`, "120 75"}, {`"systolic":120,"diastolic":75`, "120 75"},
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(nil)
		c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "d", "patient_id": patient, "device_type": "blood_pressure"}).want(200)
		c.now = c.now.Add(time.Hour)
		c.sendVendor(t, "telli", telli("BloodPressure", "d", c.now, test.data)).wantStatuses("accepted")
		wantSame(t, fmt.Sprint(test.data), c.queryRows(t, `SELECT printf('%g %g', systolic, diastolic) FROM observations`), []string{test.want})
	}
}
