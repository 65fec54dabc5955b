package routes_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A page of patients requests the triage rows and the days of its patients in one request each.
func TestTriageOfSeveralPatients(t *testing.T) {
	c := newClinic(t)
	first, _, third := c.enroll(nil), c.enroll(nil), c.enroll(nil)
	rows := c.request(authz.Nurse, "GET", "/triage/patients/?patient_ids="+first+","+third, nil).want(200)
	rows.wantAt(object{"count": 2.0})
	for _, row := range rows.results() {
		if id := row["patient_id"]; id != first && id != third {
			t.Errorf("%v was not asked for", id)
		}
	}
	c.request(authz.Nurse, "GET", "/patients/data-days/?patient_ids="+first, nil).want(200)
	for _, wrong := range []string{"", "7", first + ",", first + ",x"} {
		c.request(authz.Nurse, "GET", "/triage/patients/?patient_ids="+wrong, nil).wantFields("patient_ids")
		c.request(authz.Nurse, "GET", "/patients/data-days/?patient_ids="+wrong, nil).wantFields("patient_ids")
	}
}
