package routes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The reading that superseded a late implausible event is retracted: the event's alert is reopened and notifies like a
// late event without a later reading. Decided events stay decided.
func TestStorySupersededImplausibleIsReopened(t *testing.T) {
	bp := func(values string) func(at time.Time) string {
		return func(at time.Time) string { return measured("BP-1", "gw-1", "blood_pressure", "mmHg", at, values) }
	}
	ox := func(at time.Time) string { return spo2Of48("gw-1", at) }
	kg := func(at time.Time) string { return measured("W-1", "gw-1", "weight", "kg", at, `"weight":12`) }
	staff := func(kind string, body object) object { return object{"path": "/ingestion/" + kind + "/", "body": body} }
	spo2, pressure := staff("pulse-oximetry", object{"spo2": 97}), staff("blood-pressure", object{"systolic": 124, "diastolic": 80, "pulse": 70})
	pulse, weight := staff("pulse-oximetry", object{"spo2": 97, "pulse": 71}), staff("weight", object{"weight_kg": 80})
	typed := object{"path": "/ingestion/pulse-oximetry/", "body": object{"spo2": 96}, "portal": true}
	const waits, over = "active", "auto_resolved"
	for name, test := range map[string]struct {
		late      func(at time.Time) string
		newer     []object
		withdrawn int // number of newer readings to retract, oldest first
		decided   string
		status    string
	}{
		"all newer ones":                     {ox, []object{spo2}, 1, "", waits},
		"one of two":                         {ox, []object{spo2, pulse}, 1, "", over},
		"both of two":                        {ox, []object{spo2, pulse}, 2, "", waits},
		"except the patient's typed one":     {ox, []object{spo2, typed}, 1, "", waits},
		"of another kind":                    {ox, []object{pressure, spo2}, 1, "", over},
		"a weight":                           {kg, []object{weight}, 1, "", waits},
		"a pulse, by the other device":       {bp(`"systolic":124,"diastolic":82,"pulse":24`), []object{pressure, pulse}, 1, "", over},
		"a pulse":                            {bp(`"systolic":124,"diastolic":82,"pulse":24`), []object{pulse}, 1, "", waits},
		"a pulse beside a critical pressure": {bp(`"systolic":190,"diastolic":122,"pulse":24`), []object{pressure, pulse}, 1, "", waits},
		"both of a pulse beside one":         {bp(`"systolic":190,"diastolic":122,"pulse":24`), []object{pressure, pulse}, 2, "", waits},
		"confirmed in the meantime":          {ox, []object{spo2}, 1, "confirm", over},
		"discarded in the meantime":          {ox, []object{spo2}, 1, "discard", over},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.worked(patient, "OX-1", "BP-1", "W-1") // clocks that are right
			var ids []string
			for i, r := range test.newer {
				body := r["body"].(object)
				body["patient_id"], body["measured_at"] = patient, c.now.Add(time.Duration(i-60)*time.Minute).Format(time.RFC3339)
				if r["portal"] != nil {
					c.requestAs(vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(patient)), "POST", r["path"].(string), body).want(201)
					continue
				}
				ids = append(ids, fmt.Sprint(c.request(authz.Nurse, "POST", r["path"].(string), body).want(201).at("id")))
			}
			c.postEvent(t, test.late(c.now.Add(-30*time.Hour))).want(400)
			late := c.implausible(patient)
			wantIn(t, late, object{"late": true, "status": over, "resolution_reason": "superseded"})
			switch at := "/ingestion/quarantine/" + late["quarantine_id"].(string); test.decided {
			case "confirm":
				c.request(authz.Nurse, "POST", at+"/confirm/", object{"notes": "Seen on the display."}).want(201)
			case "discard":
				c.request(authz.Nurse, "POST", at+"/discard/", object{"reason": "A broken cuff."}).want(200)
			}
			for _, id := range ids[:test.withdrawn] {
				c.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/entered-in-error/", object{"reason": "The neighbour's."}).want(200)
			}
			wantIn(t, c.implausible(patient), object{"late": true, "status": test.status, "acknowledged": test.status == over})
			notified, want := c.queryRows(t, `SELECT kind FROM announcements WHERE alert = (SELECT id FROM alerts WHERE type = 'implausible_reading')`), []string{"reading_superseded"}
			if test.status == waits {
				want = append(want, "alert_raised")
			}
			if !slices.Equal(notified, want) || len(c.statEscalations(t)) != 0 {
				t.Errorf("notified: %q, escalations: %q", notified, c.statEscalations(t))
			}
			handling := c.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]["handling"]
			if (handling == "unanswered") != (test.status == waits) && test.decided != "confirm" {
				t.Errorf("handling is %v", handling)
			}
		})
	}
}
