package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// Quarantined events are resolved in any order of later events, even if the first try failed.
func TestStoryFutureClockResentInAnyOrder(t *testing.T) {
	for _, story := range []string{"other order", "right time between", "discarded, right time between", "not resolved"} {
		t.Run(story, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			of := func(at time.Time, spo2 string) string {
				return measured("OX-1", "gw-1", "pulse_oximetry", "%", at, `"spo2":`+spo2)
			}
			first, second := of(c.now.Add(8*time.Minute), "71"), of(c.now.Add(9*time.Minute), "72")
			c.postEvent(t, first).want(400)
			id := c.implausible(patient)["quarantine_id"].(string)
			c.postEvent(t, second).want(400)
			if story == "discarded, right time between" {
				c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "A loose clip."}).want(200)
			}
			if story == "right time between" || story == "discarded, right time between" {
				c.now = c.now.Add(2 * time.Minute)
				c.postEvent(t, of(c.now, "97")).want(200)
			}
			c.now = c.now.Add(10 * time.Minute)
			if story == "other order" {
				c.postEvent(t, second).want(200)
			}
			stored := c.postEvent(t, first).want(200).wantAt(object{"status": "accepted"}).at("observation_id").(string)
			if story == "not resolved" {
				for _, statement := range []string{
					`UPDATE gateway_events SET status = 'rejected', observation = '' WHERE id = '` + id + `'`,
					`UPDATE alerts SET status = 'active' WHERE quarantine_id = '` + id + `' AND type = 'implausible_reading'`,
				} {
					if _, err := c.app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
						t.Fatal(err)
					}
				}
				c.postEvent(t, first).want(200).wantAt(object{"status": "duplicate", "observation_id": stored})
			}
			kept := c.queryRows(t, `SELECT status || ' ' || observation FROM gateway_events WHERE id = '`+id+`'`)
			if story == "discarded, right time between" {
				wantSame(t, "kept", kept, []string{"discarded "})
				c.request(authz.Nurse, "GET", "/ingestion/observations/"+stored+"/", nil).want(200).wantAt(object{"status": "entered_in_error"})
				return
			}
			wantSame(t, "kept", kept, []string{"released " + stored})
			for _, alert := range c.alertsOf(patient, "implausible_reading") {
				if alert["quarantine_id"] == id {
					wantIn(t, alert, object{"status": "auto_resolved"})
				}
			}
		})
	}
}
