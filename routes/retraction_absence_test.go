package routes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
)

// A retraction reopens no missed-reading alert while no reading is expected, and none of an archived patient.
func TestStoryRetractionDuringAbsence(t *testing.T) {
	for name, test := range map[string]struct {
		leave func(c *clinic, patient string)
		want  bool
	}{
		"at home": {func(*clinic, string) {}, true},
		"hospital": {func(c *clinic, patient string) {
			c.request(authz.Nurse, "POST", "/patients/"+patient+"/hold/", object{"reason": "hospital", "until": c.now.AddDate(0, 0, 5).Format(time.DateOnly)}).want(201)
		}, false},
		"archived": {func(c *clinic, patient string) {
			c.request(authz.Admin, "POST", "/patients/"+patient+"/archive/", object{"reason": "Moved.", "confirm": true}).want(200)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			if _, err := alerts.Raise(c.app, alerts.Draft{
				PatientID: patient, MeasuredAt: c.now.Add(-time.Hour), OmitsValue: true,
				Finding: alerts.Finding{Type: alerts.TypeMissedReading, Level: alerts.NoData, Message: "Missed on 2026-01-14: blood pressure."},
			}, c.now); err != nil {
				t.Fatal(err)
			}
			c.now = c.now.Add(time.Hour)
			missed := func() bool { return slices.Contains(c.openAlerts(patient), "missed_reading no_data") }
			if !missed() {
				t.Fatalf("open are %q", c.openAlerts(patient))
			}
			first := c.postEvent(t, cuffEvent("BP-1", "gw-1", 152, c.now)).want(200).at("observation_id")
			c.now = c.now.Add(time.Minute)
			normal := c.postEvent(t, cuffEvent("BP-1", "gw-1", 124, c.now)).want(200).at("observation_id")
			if open := c.openAlerts(patient); len(open) != 0 {
				t.Fatalf("after the readings: %q", open)
			}
			test.leave(c, patient)
			for _, id := range []any{normal, first} {
				c.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", id), object{"reason": "The spouse's."}).want(200)
				if open := c.openAlerts(patient); name == "archived" && len(open) != 0 {
					t.Errorf("open are %q", open)
				}
			}
			if missed() != test.want {
				t.Errorf("open are %q", c.openAlerts(patient))
			}
		})
	}
}
