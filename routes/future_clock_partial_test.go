package routes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// The measurement time of an event with one value out of range has passed: the remaining values become a reading, and
// the left-out value alerts as before until a person confirms or discards it.
func TestStoryFutureClockPartialReading(t *testing.T) {
	for _, decided := range []string{"confirm", "discard"} {
		t.Run(decided, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(nil)
			c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "tel", "patient_id": patient, "device_type": "blood_pressure"}).want(200)
			c.now = c.now.Add(time.Hour)
			body := telli("BloodPressure", "tel", c.now.Add(30*time.Minute), `"systolic":118,"diastolic":76,"pulse":24`)
			c.sendVendor(t, "telli", body).want(400)
			alerted := c.implausible(patient)
			for range 2 {
				c.now = c.now.Add(30 * time.Minute)
				c.sendVendor(t, "telli", body)
				c.wantReadings(t, "blood_pressure 118.0/76.0 - ")
				wantIn(t, c.implausible(patient), object{"id": alerted["id"], "status": "active", "level": "critical", "value": 24.0})
				wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
				if kept := c.queryRows(t, `SELECT status FROM gateway_events`); len(kept) != 1 || kept[0] != "rejected" {
					t.Errorf("kept: %q", kept)
				}
			}
			event := "/ingestion/quarantine/" + alerted["quarantine_id"].(string)
			if decided == "discard" {
				c.request(authz.Nurse, "POST", event+"/discard/", object{"reason": "A loose cuff."}).want(200)
				c.wantReadings(t, "blood_pressure 118.0/76.0 - ")
				return
			}
			c.request(authz.Nurse, "POST", event+"/confirm/", object{"notes": "Felt at the wrist."}).want(201).
				wantAt(object{"review_state": "confirmed", "suspect_reason": nil, "pulse": 24.0})
			c.wantReadings(t, "blood_pressure 118.0/76.0 24 ")
			if open := c.openAlerts(patient); slices.Contains(open, "implausible_reading critical") || !slices.Contains(open, "blood_pressure critical") && !slices.Contains(open, "pulse critical") {
				t.Errorf("open: %q", open)
			}
		})
	}
}
