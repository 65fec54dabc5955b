package routes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// The question about a clock is open as long as a reading of the device waits for its time, for any order in which readings are confirmed or retracted, and in
// any order.
func TestStoryClockQuestionFollowsItsReadings(t *testing.T) {
	decide := func(c *clinic, how, id string) {
		c.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/"+how+"/", object{"reason": "Decided.", "notes": "Decided."}).want(200)
	}
	for _, hows := range [][]string{{"entered-in-error", "confirm"}, {"confirm", "entered-in-error"}, {"entered-in-error", "entered-in-error"}, {"confirm", "confirm"}} {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			t.Run(fmt.Sprint(hows, order), func(t *testing.T) {
				c := newIngestingClinic(t)
				c.t = t
				patient, first := c.slowCuff(48*time.Hour, 128)
				c.now = c.now.Add(5 * time.Minute)
				ids := []string{first, c.postEvent(t, cuffEvent("BP-1", "gw-1", 131, c.now.Add(-48*time.Hour))).want(200).at("observation_id").(string)}
				open := func() bool { return slices.Contains(c.openAlerts(patient), "device_clock warning") }
				decide(c, hows[0], ids[order[0]])
				if !open() {
					t.Errorf("after one of two: open are %q", c.openAlerts(patient))
				}
				for _, a := range c.alertsOf(patient, "device_clock") {
					if a["status"] == "active" && hows[0] == "entered-in-error" && a["observation_id"] == ids[order[0]] {
						t.Errorf("the question is about the retracted reading: %v", a)
					}
				}
				decide(c, hows[1], ids[order[1]])
				if open() {
					t.Errorf("after both: open are %q", c.openAlerts(patient))
				}
				// A third one on the same day opens the question again.
				c.now = c.now.Add(5 * time.Minute)
				c.postEvent(t, cuffEvent("BP-1", "gw-1", 133, c.now.Add(-72*time.Hour))).want(200)
				if hows[0] == "entered-in-error" && hows[1] == "entered-in-error" && !open() {
					t.Errorf("after a third: open are %q", c.openAlerts(patient))
				}
			})
		}
	}
}

// The time of a reading that two people's cuff put in question is not in doubt: one that is given is rejected.
func TestConfirmSharedCuffWithTime(t *testing.T) {
	w := newWard(t, nil)
	ids := w.addCuff("BP-1", w.now, cuffReading{0, 186, 88}, cuffReading{4, 117, 64})
	path := "/ingestion/observations/" + ids[1] + "/confirm/"
	w.request(authz.Nurse, "POST", path, object{"measured_at": w.now.Add(-time.Hour).Format(time.RFC3339)}).wantFields("measured_at")
	if len(w.questions()) != 1 || w.questions()[0]["status"] != "active" {
		t.Errorf("questions %v", w.questions())
	}
	w.request(authz.Nurse, "POST", path, object{}).want(200)
}
