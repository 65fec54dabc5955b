package routes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// spo2Of48 is an oximetry that no device should report.
func spo2Of48(patient string, at time.Time) string {
	return measured("OX-1", patient, "pulse_oximetry", "%", at, `"spo2":48`)
}

// What a patient typed since does not silence what a device measured before; what a device measured does, if it is of the same group.
func TestStoryImplausibleLateAndWhatIsNewer(t *testing.T) {
	for name, want := range map[string]struct {
		newer  string // by which entrance
		body   object
		late   func(patient string, at time.Time) string
		status string
	}{
		"typed by the patient": {"portal", object{"spo2": 97}, spo2Of48, "active"},
		"typed by staff":       {"staff", object{"spo2": 97}, spo2Of48, "auto_resolved"},
		"a pulse alone": {"staff", object{"spo2": 97, "pulse": 70}, func(patient string, at time.Time) string {
			return measured("BP-1", patient, "blood_pressure", "mmHg", at, `"systolic":190,"diastolic":122,"pulse":24`)
		}, "active"},
		"a pulse of the other device": {"staff", object{"spo2": 97, "pulse": 70}, func(patient string, at time.Time) string {
			return measured("BP-1", patient, "blood_pressure", "mmHg", at, `"systolic":124,"diastolic":82,"pulse":24`)
		}, "auto_resolved"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enrol(object{"gateway_patient_id": "gw-1"})
			want.body["patient_id"], want.body["measured_at"] = patient, c.now.Format(time.RFC3339)
			if want.newer == "portal" {
				c.askAs(vigiltest.User(t, c.app, access.Patient, vigiltest.PortalOf(patient)), "POST", "/ingestion/pulse-oximetry/", want.body).want(201)
			} else {
				c.ask(access.Nurse, "POST", "/ingestion/pulse-oximetry/", want.body).want(201)
			}
			c.event(t, want.late("gw-1", c.now.Add(-30*time.Hour))).want(400)
			wantIn(t, c.implausible(patient), object{"late": true, "status": want.status})
			kind := map[string]string{"active": "alert_raised", "auto_resolved": "reading_superseded"}[want.status]
			if told := c.rows(t, `SELECT kind FROM announcements WHERE alert != ''`); !slices.Equal(told, []string{kind}) || len(c.stats(t)) != 0 {
				t.Errorf("told: %q, escalations: %q", told, c.stats(t))
			}
		})
	}
}
