package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// The rank of a danger from a clock that is behind is that of a right one, and the texts have both times.
func TestStoryUnprovenDangerIsRankedAndToldAsOfReceipt(t *testing.T) {
	scores := map[time.Duration]any{}
	for _, behind := range []time.Duration{0, 30 * time.Hour, 6 * 24 * time.Hour} {
		c := newIngestingClinic(t)
		c.t = t
		patient := c.enroll(object{"gateway_patient_id": "gw-1"})
		c.now = c.now.AddDate(0, 3, 0)
		measuredAt := c.now.Add(-behind)
		c.postEvent(t, oximeterEvent("OX-1", "gw-1", 76, 96, measuredAt)).want(200)
		scores[behind] = c.score(patient)["risk_score"]
		if scores[behind] != scores[0] {
			t.Errorf("behind by %s: ranked %v, with a right clock %v", behind, scores[behind], scores[0])
		}
		if behind == 0 {
			continue
		}
		both := []string{"easured " + measuredAt.UTC().Format(time.RFC3339), "received " + c.now.UTC().Format(time.RFC3339)}
		texts := map[string]any{
			"the alert": c.alertsOf(patient, "pulse_oximetry")[0]["message"], "the escalation": c.request(authz.Nurse, "GET", "/escalations/1/", nil).at("reason"),
		}
		for what, text := range texts {
			for _, part := range both {
				if !strings.Contains(fmt.Sprint(text), part) {
					t.Errorf("%s does not state %q: %v", what, part, text)
				}
			}
		}
	}
}

// A reading that ends the proof of a clock raises the question about it once a day, which a right time ends.
func TestStoryEndedProofAsks(t *testing.T) {
	c := newIngestingClinic(t)
	c.t = t
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 6, 0)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 124, c.now)).want(200)
	c.now = c.now.AddDate(0, 0, 6)
	for range 4 {
		c.postEvent(t, cuffEvent("BP-1", "gw-1", 126, c.now.AddDate(0, 0, -3))).want(200)
		c.now = c.now.Add(3 * time.Minute)
	}
	asked := c.alertsOf(patient, "device_clock")
	if len(asked) != 1 || asked[0]["status"] != "active" || !strings.Contains(asked[0]["message"].(string), "BP-1") {
		t.Fatalf("questions %v", asked)
	}
	c.now = c.now.Add(3 * time.Minute)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 125, c.now)).want(200)
	if asked = c.alertsOf(patient, "device_clock"); len(asked) != 1 || asked[0]["status"] != "auto_resolved" {
		t.Errorf("after a right time: %v", asked)
	}
}

// A repeat of an old reading, which was stored before the clock was proven, ends no proof.
func TestStoryDuplicateEndsNoProof(t *testing.T) {
	c := newIngestingClinic(t)
	c.t = t
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 6, 0)
	first := cuffEvent("BP-1", "gw-1", 124, c.now)
	c.postEvent(t, first).want(200)
	c.now = c.now.AddDate(0, 0, 6)
	for range 3 {
		c.postEvent(t, first).want(200)
		c.now = c.now.Add(2 * time.Hour)
	}
	if proven := c.queryRows(t, `SELECT clock_proven_at != '' FROM devices WHERE device_id = 'BP-1'`); proven[0] != "1" {
		t.Errorf("proven: %q, alerts %v", proven, c.alertsOf(patient, "device_clock"))
	}
}

// Two devices in one delivery, one with a right clock and one that is behind: only the second is in doubt, and each dangerous value alerts.
func TestStoryTwoDevicesInOneDelivery(t *testing.T) {
	for _, reversed := range []bool{false, true} {
		for name, proven := range map[string]bool{"proven": true, "never right": false} {
			t.Run(fmt.Sprint(name, ", reversed ", reversed), func(t *testing.T) {
				c := newIngestingClinic(t)
				c.t = t
				patient := c.enroll(object{"gateway_patient_id": "GW-1"})
				c.now = c.now.AddDate(0, 3, 0)
				c.sendVendor(t, "tenovi", pressure("RIGHT", "GW-1", c.now, 124)).want(200)
				if proven {
					c.sendVendor(t, "tenovi", pressure("SLOW", "GW-1", c.now, 124)).want(200)
				}
				c.now = c.now.Add(4 * time.Hour)
				events := []string{pressure("SLOW", "GW-1", c.now.AddDate(0, 0, -2), 208), pressure("RIGHT", "GW-1", c.now, 122)}
				if reversed {
					slices.Reverse(events)
				}
				c.sendVendor(t, "tenovi", "["+strings.Join(events, ",")+"]").wantStatuses("accepted", "accepted")
				wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
				if row := c.score(patient); row["risk_level"] != "critical" {
					t.Errorf("ranked %v", row)
				}
				doubted := c.queryRows(t, `SELECT device_id FROM observations WHERE review_state = 'suspect'`)
				if proven && !slices.Equal(doubted, []string{"SLOW"}) || !proven && len(doubted) != 0 {
					t.Errorf("in doubt are the times of %q", doubted)
				}
			})
		}
	}
}
