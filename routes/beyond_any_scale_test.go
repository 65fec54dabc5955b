package routes_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A device's number beyond any scale alerts like one just out of range, because it is critical in each. A pressure that is one only in pascal is
// judged as converted.
func TestStoryNumbersBeyondAnyScale(t *testing.T) {
	for _, story := range []struct {
		systolic, diastolic, unit string
		alarms                    bool
	}{
		{"10001", "126", "mmHg", true},
		{"206000", "126000", "mmHg", true},
		{"-10001", "80", "mmHg", true},
		{"27464", "16798", "mmHg", true},
		{"27464", "16798", "", true},
		{"17865", "9599", "mmHg", false},
		{"17865", "9599", "Pa", false},
	} {
		t.Run(fmt.Sprint(story), func(t *testing.T) {
			c := newIngestingClinic(t)
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			values := fmt.Sprintf(`"systolic":%s,"diastolic":%s`, story.systolic, story.diastolic)
			c.postEvent(t, measured("D-1", "gw-1", "blood_pressure", story.unit, c.now, values)).want(400)
			alerts := c.alertsOf(patient, "implausible_reading")
			var want []string
			if story.alarms {
				want = []string{"stat open system"}
			}
			if len(alerts) != len(want) || !slices.Equal(c.statEscalations(t), want) {
				t.Errorf("escalations %q, alerts %v", c.statEscalations(t), alerts)
			}
			if story.systolic == "27464" {
				path := "/ingestion/quarantine/" + c.implausible(patient)["quarantine_id"].(string)
				c.request(authz.Nurse, "POST", path+"/confirm/", object{"notes": "In pascal."}).want(201).wantAt(object{"systolic": 206.0, "diastolic": 126.0})
			}
		})
	}
}
