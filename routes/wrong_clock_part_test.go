package routes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

// A part that a person confirms is merged into its reading but does not confirm the time: it is judged as of receipt with a reading in doubt,
// and not at all with an evaluated one, for any birth date of the patient.
func TestStoryConfirmedPartIsUndated(t *testing.T) {
	dead := time.Date(1970, 1, 1, 0, 2, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		born  string
		state string // of the reading
		at    func(c *clinic) time.Time
	}{
		"of a wrong clock":                        {"1955-12-10", "suspect", func(*clinic) time.Time { return dead }},
		"of a wrong clock, before they were born": {"1985-06-01", "suspect", func(*clinic) time.Time { return dead }},
		"of an evaluated reading":                 {"1985-06-01", "confirmed", func(c *clinic) time.Time { return c.now }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient, at := c.enroll(object{"gateway_patient_id": "GW-1", "date_of_birth": test.born}), test.at(c)
			c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", at, 128)).wantStatuses("accepted")
			if test.state == "confirmed" { // the device's manufacture date is entered later
				c.now = c.now.Add(72 * time.Hour)
				made := at.Add(48 * time.Hour).Format(time.DateOnly)
				if _, err := c.app.DB().NewQuery("UPDATE devices SET made_on = '" + made + "' WHERE device_id = 'T-1'").Execute(); err != nil {
					t.Fatal(err)
				}
			}
			latest := func() []string { return c.queryRows(t, `SELECT latest_vitals FROM `+collections.TriageScores) }
			before := latest()
			c.sendVendor(t, "tenovi", pulse("T-1", "GW-1", at, 24)).want(400)
			id := c.implausible(patient)["quarantine_id"].(string)
			c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "Seen on the display."}).want(201).
				wantAt(object{"systolic": 128.0, "pulse": 24.0, "review_state": test.state})
			wantIn(t, c.implausible(patient), object{"status": "resolved", "outcome": "confirmed"})
			var want []string // a part that joins an evaluated reading has no effect
			if test.state == "suspect" {
				want = []string{"pulse"}
			}
			raised := c.queryRows(t, `SELECT type FROM alerts WHERE type NOT IN ('implausible_reading', 'device_clock')`)
			if !slices.Equal(raised, want) || !slices.Equal(c.statEscalations(t), []string{"stat open system"}) {
				t.Errorf("raised: %q, escalations: %q", raised, c.statEscalations(t))
			}
			if after := latest(); !slices.Equal(before, after) {
				t.Errorf("latest are %s, before %s", after, before)
			}
			if n := c.queryRows(t, `SELECT COUNT(*) FROM observations`); n[0] != "1" {
				t.Errorf("%s readings", n[0])
			}
		})
	}
}
