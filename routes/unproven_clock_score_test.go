package routes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A scale that was never right: its gain over weeks escalates like that of a right one.
func TestStorySlowGainOfAnUnprovenClock(t *testing.T) {
	for _, behind := range []time.Duration{30 * time.Hour, 48 * time.Hour} {
		t.Run(behind.String(), func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.giveTemplate(patient, "heart_failure").want(200)
			c.now = c.now.AddDate(0, 3, 0)
			for day := range 29 {
				kg := fmt.Sprintf(`"weight":%.2f`, 82+0.25*float64(day))
				c.postEvent(t, measured("W-1", "gw-1", "weight", "kg", c.now.Add(-behind), kg)).want(200)
				c.now = c.now.AddDate(0, 0, 1)
			}
			if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
				t.Errorf("escalations %q, alerts %v", stats, c.slowAlerts(patient))
			}
		})
	}
}

// The newest values of devices that were never right count in the score as of receipt, in any order, beside those of right clocks.
func TestStoryEarlyWarningOfUnprovenClocks(t *testing.T) {
	for name, slow := range map[string][]int{"all": {0, 1, 2}, "the cuff": {0}, "the oximeter": {1}, "cuff and oximeter": {0, 1}} {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
			t.Run(fmt.Sprint(name, order), func(t *testing.T) {
				c := newScoringClinic(t)
				patient := c.enroll(object{"gateway_patient_id": "gw-1"})
				c.now = c.now.AddDate(0, 1, 0)
				for _, i := range order {
					if c.now = c.now.Add(time.Minute); slices.Contains(slow, i) {
						c.slowSign(septic[i], 48*time.Hour)
					} else {
						c.measureSign(patient, septic[i])
					}
				}
				if got := c.earlyWarnings(patient); !slices.Contains(got, "8/7 critical active") {
					t.Errorf("early warnings %q", got)
				}
			})
		}
	}
}
