package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// unreadableForms are forms of one pressure that cannot be read as sent, by what is wrong.
var unreadableForms = map[string]string{
	"no kind":         `"values":{"systolic":206,"diastolic":126,"pulse":88}`,
	"a misspelt kind": `"measurement_type":"blood_presure","values":{"systolic":206,"diastolic":126,"pulse":88}`,
	"texts":           `"measurement_type":"bp","values":{"systolic":"206 mmHg","diastolic":"126 mmHg","pulse":"88 bpm"}`,
	"a pair":          `"measurement_type":"bp","values":{"pressure":"206/126","pulse":88}`,
	"another unit":    `"measurement_type":"bp","unit":"bar","values":{"systolic":206,"diastolic":126}`,
}

const readableForm = `"measurement_type":"bp","unit":"mmHg","battery_level":60,"values":{"systolic":206,"diastolic":126,"pulse":88}`

// A person's decision to discard a measurement holds for each form in which its sender repeats it: corrected, misspelt in another way, and those
// that wait beside it.
func TestStoryDiscardedInEveryForm(t *testing.T) {
	for name, form := range unreadableForms {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "GW-1"})
			at := c.now.Add(-time.Minute)
			c.postEvent(t, strayEvent(form, at))
			for other, beside := range unreadableForms {
				if other != name && other != "no kind" {
					c.postEvent(t, strayEvent(beside, at))
				}
			}
			c.wantTold(t, name, patient, true)
			id := c.implausible(patient)["quarantine_id"].(string)
			c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "A test by the fitter."}).want(200)
			for _, later := range []string{readableForm, unreadableForms["no kind"], readableForm} {
				c.now = c.now.Add(time.Minute)
				c.postEvent(t, strayEvent(later, at))
			}
			if open := c.openAlerts(patient); len(open) > 0 {
				t.Errorf("open alerts %q", open)
			}
			if got := c.statEscalations(t); !slices.Equal(got, []string{"stat cancelled system"}) {
				t.Errorf("escalations %q", got)
			}
			wantSame(t, "events", c.queryRows(t, `SELECT DISTINCT status FROM gateway_events`), []string{"discarded"})
			wantSame(t, "readings", c.queryRows(t, `SELECT status FROM observations`), []string{"entered_in_error"})
			c.postEvent(t, strayEvent(readableForm, at.Add(30*time.Second))) // measured again
			if open := c.openAlerts(patient); !slices.Contains(open, "blood_pressure critical") {
				t.Errorf("a new measurement does not alert: %q", open)
			}
		})
	}
}

// The corrected event of a measurement closes all forms that could not be read, before or after it, and theirs become one alert.
func TestStoryCorrectedForm(t *testing.T) {
	for _, first := range []bool{true, false} {
		for _, confirmed := range []bool{true, false} {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "GW-1"})
			at := c.now.Add(-time.Minute)
			if first && !confirmed {
				c.postEvent(t, strayEvent(readableForm, at)).want(200)
			}
			for _, form := range unreadableForms {
				c.postEvent(t, strayEvent(form, at))
			}
			if confirmed {
				id := c.implausible(patient)["quarantine_id"].(string)
				c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "Read back."}).want(201)
			}
			if !first || confirmed {
				c.postEvent(t, strayEvent(readableForm, at)).want(200)
			}
			wantSame(t, "events", c.queryRows(t, `SELECT DISTINCT status || ' ' || (observation != '') FROM gateway_events`), []string{"released 1"})
			wantSame(t, "readings", c.queryRows(t, `SELECT status || ' ' || systolic FROM observations`), []string{"final 206.0"})
			if open := c.openAlerts(patient); !slices.Equal(open, []string{"blood_pressure critical"}) {
				t.Errorf("first %v, confirmed %v: open alerts %q", first, confirmed, open)
			}
			if got := c.statEscalations(t); len(got) != 1 {
				t.Errorf("escalations %q", got)
			}
		}
	}
}

// Other values at the same time are another measurement: neither a decision nor a reading closes them.
func TestStoryOtherValuesAtTheSameTime(t *testing.T) {
	for _, other := range []string{"216", "207"} {
		c := newIngestingClinic(t)
		c.t = t
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		at := c.now.Add(-time.Minute)
		id := c.postEvent(t, strayEvent(unreadableForms["a misspelt kind"], at)).want(200).at("event_id").(string)
		c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "A test by the fitter."}).want(200)
		c.postEvent(t, strayEvent(strings.Replace(unreadableForms["no kind"], "206", other, 1), at)).want(400)
		if open := c.openAlerts(patient); !slices.Equal(open, []string{"implausible_reading critical"}) {
			t.Errorf("%s: open alerts %q", other, open)
		}
		c.postEvent(t, strayEvent(readableForm, at)).want(200)
		wantSame(t, "events", c.queryRows(t, `SELECT status FROM gateway_events ORDER BY received_at, status DESC`), []string{"rejected", "discarded"})
	}
}

// A dangerous value that the decided form lacked is not decided with it.
func TestStoryDangerAddedToADecidedForm(t *testing.T) {
	c := newIngestingClinic(t)
	c.t = t
	patient := c.enroll(object{"gateway_patient_id": "GW-1"})
	at := c.now.Add(-time.Minute)
	id := c.postEvent(t, strayEvent(`"measurement_type":"pressure","values":{"systolic":206,"diastolic":126}`, at)).want(200).at("event_id").(string)
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "A test by the fitter."}).want(200)
	c.postEvent(t, strayEvent(`"values":{"systolic":206,"diastolic":126,"pulse":31}`, at)).want(400)
	if open := c.openAlerts(patient); !slices.Equal(open, []string{"implausible_reading critical"}) {
		t.Errorf("open alerts %q", open)
	}
}

// A harmless measurement with a misspelt member waits for a person, who releases it to its patient, or confirms or discards it.
func TestStoryHarmlessMisspelt(t *testing.T) {
	for name, form := range unreadableForms {
		form = strings.NewReplacer("206", "126", "126", "76").Replace(form)
		for _, known := range []bool{true, false} {
			c := newIngestingClinic(t)
			c.t = t
			gatewayID := "GW-1"
			if !known {
				gatewayID = "GW-2"
			}
			patient := c.enroll(object{"gateway_patient_id": gatewayID})
			c.postEvent(t, strayEvent(form, c.now.Add(-time.Minute)))
			if told := c.queryRows(t, `SELECT kind FROM announcements`); len(told) != 1 {
				t.Errorf("%s: staff are notified of %q", name, told)
			}
			kept := c.queryRows(t, `SELECT id FROM gateway_events`)[0]
			path := "/ingestion/quarantine/" + kept
			if !known {
				c.request(authz.Nurse, "POST", path+"/confirm/", object{"notes": "Whose?"}).want(400, "invalid_state")
				c.request(authz.MA, "POST", path+"/release/", object{"patient_id": patient}).want(200).wantAt(object{"patient_id": patient, "implausible": true})
			}
			if open := c.openAlerts(patient); len(open) > 0 {
				t.Errorf("%s: open alerts %q", name, open)
			}
			c.request(authz.Nurse, "POST", path+"/confirm/", object{"notes": "Read back by phone."}).want(201).
				wantAt(object{"systolic": 126.0, "diastolic": 76.0, "review_state": "confirmed", "patient_id": patient})
		}
	}
}
