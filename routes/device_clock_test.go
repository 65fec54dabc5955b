package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// oximeterEvent is an event of the gateway from a pulse oximeter.
func oximeterEvent(device, patient string, spo2, pulse int, at time.Time) string {
	return measured(device, patient, "pulse_oximetry", "%", at, fmt.Sprintf(`"spo2":%d,"pulse":%d`, spo2, pulse))
}

// wantInDoubt checks that a reading is kept as suspect for its clock, and that its alerts of a type are critical, active and dated by receipt.
func (c *clinic) wantInDoubt(patient, observation, alertType string, received time.Time) {
	c.t.Helper()
	c.request(authz.Nurse, "GET", "/ingestion/observations/"+observation+"/", nil).want(200).wantAt(object{
		"review_state": "suspect", "suspect_reason": "device_clock", "fhir_status": nil,
	})
	found := false
	for _, alert := range c.alertsOf(patient, alertType) {
		if alert["observation_id"] != observation {
			continue
		}
		found = true
		wantIn(c.t, alert, object{"level": "critical", "status": "active", "late": false, "resolution_reason": nil, "time_in_doubt": true})
		message, times := alert["message"].(string), "received "+received.UTC().Format("2006-01-02T15:04:05Z")+": the time is in doubt"
		if !strings.Contains(message, times) {
			c.t.Errorf("message %q", message)
		}
	}
	if !found {
		c.t.Errorf("no %s alert of %s", alertType, observation)
	}
}

// worked records that a patient is long enrolled and that devices have measured before, so that a late reading is a backlog.
func (c *clinic) worked(patient string, devices ...string) {
	c.t.Helper()
	const since = "2020-01-01T00:00:00.000000Z"
	statements := []string{"UPDATE triage_scores SET enrolled_at = '" + since + "' WHERE patient = '" + patient + "'"}
	for _, device := range devices {
		statements = append(statements, "INSERT INTO devices (device_id, status, created_at, last_reading_at, clock_proven_at) VALUES ('"+device+"', 'discovered', '"+since+
			"', '"+since+"', '"+since+"') "+
			"ON CONFLICT DO NOTHING")
	}
	for _, statement := range statements {
		if _, err := c.app.DB().NewQuery(statement).Execute(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// pushes returns the kinds and severities of what the care team is notified of.
func (c *clinic) pushes(t testing.TB) []string {
	return c.queryRows(t, `SELECT kind || ' ' || severity FROM announcements WHERE alert != '' ORDER BY 1`)
}

// The clock of a device went back: each dangerous value is critical, opens a stat escalation and stays open, also after later normal readings.
func TestStoryClockWentBack(t *testing.T) {
	for name, behind := range map[string]time.Duration{
		"three hours": 3 * time.Hour, "a wrong zone": 7 * time.Hour, "just over a day": 25 * time.Hour, "two days": 48 * time.Hour,
		"two weeks": 14 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.now = c.now.AddDate(0, 0, 20)
			for _, hours := range []int{30, 20, 10, 1} {
				c.postEvent(t, oximeterEvent("OX-1", "gw-1", 95, 76, c.now.Add(-time.Duration(hours)*time.Hour))).want(200)
			}
			wantSame(t, "alerts of a right clock", c.openAlerts(patient), nil)
			for i, spo2 := range []int{79, 78, 77} {
				c.now = c.now.Add(4 * time.Minute)
				id := c.postEvent(t, oximeterEvent("OX-1", "gw-1", spo2, 132, c.now.Add(-behind))).want(200).at("observation_id").(string)
				c.wantInDoubt(patient, id, "pulse_oximetry", c.now)
				c.wantInDoubt(patient, id, "pulse", c.now)
				if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
					t.Fatalf("after %d: %q", i+1, stats)
				}
			}
			if clocks := c.alertsOf(patient, "device_clock"); len(clocks) != 1 || clocks[0]["status"] != "active" || clocks[0]["level"] != "warning" {
				t.Errorf("about the clock: %v", clocks)
			}
			if score := c.score(patient); score["risk_level"] != "critical" || score["risk_score"].(float64) < 86 {
				t.Errorf("ranked %v", score)
			}
			if notified := c.pushes(t); !slices.Contains(notified, "alert_raised critical") || !slices.Contains(notified, "device_alert_raised warning") {
				t.Errorf("notified: %q", notified)
			}
			// Normal readings of another device, or after the clock was set, resolve none of them.
			for i := range 4 {
				c.now = c.now.Add(time.Minute)
				c.postEvent(t, oximeterEvent([]string{"OX-1", "OX-2"}[i%2], "gw-1", 97, 80, c.now)).want(200)
			}
			for _, kind := range []string{"pulse_oximetry", "pulse"} {
				for _, alert := range c.alertsOf(patient, kind) {
					wantIn(t, alert, object{"status": "active"})
				}
			}
			// The next day there is one more alert about the clock.
			c.now = c.now.Add(24 * time.Hour)
			for range 3 {
				c.now = c.now.Add(time.Minute)
				c.postEvent(t, oximeterEvent("OX-1", "gw-1", 96, 80, c.now.Add(-behind-24*time.Hour))).want(200)
			}
			if clocks := c.alertsOf(patient, "device_clock"); len(clocks) != 2 {
				t.Errorf("%d alerts about the clock on two days", len(clocks))
			}
		})
	}
}

// A cuff that never had a right clock: assigned, and its time lies before its assignment, before the patient's enrollment, or years back.
func TestStoryClockNeverRight(t *testing.T) {
	for name, test := range map[string]struct {
		assigned bool
		at       func(now time.Time) time.Time
	}{
		"before assignment and enrollment": {true, func(now time.Time) time.Time { return now.AddDate(0, 0, -40) }},
		"before assignment":                {true, func(now time.Time) time.Time { return now.AddDate(0, 0, -12) }},
		"before enrollment":                {false, func(now time.Time) time.Time { return now.AddDate(0, 0, -40) }},
		"2019":                             {false, func(time.Time) time.Time { return time.Date(2019, 1, 1, 0, 3, 0, 0, time.UTC) }},
		"2019, assigned":                   {true, func(time.Time) time.Time { return time.Date(2019, 1, 1, 0, 3, 0, 0, time.UTC) }},
		"1970":                             {false, func(time.Time) time.Time { return time.Date(1970, 1, 1, 0, 2, 0, 0, time.UTC) }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.now = c.now.AddDate(0, 0, 10)
			if test.assigned {
				c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "BP-1", "patient_id": patient, "device_type": "blood_pressure"}).want(200)
			}
			c.now = c.now.AddDate(0, 0, 5)
			id := c.postEvent(t, cuffEvent("BP-1", "gw-1", 208, test.at(c.now))).want(200).at("observation_id").(string)
			c.wantInDoubt(patient, id, "blood_pressure", c.now)
			if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
				t.Errorf("escalations %q", stats)
			}
			if clocks := c.alertsOf(patient, "device_clock"); len(clocks) != 1 {
				t.Errorf("%d alerts about the clock", len(clocks))
			}
		})
	}
}

// A first, late reading of a device that is critical: stat, since nothing shows that its clock is right, nor that what another device measured
// is newer.
func TestStoryFirstReadingIsLate(t *testing.T) {
	for name, test := range map[string]struct {
		newer bool // the patient was measured since, by another device
		want  string
		stats int
	}{
		"newest":                {false, "critical active", 1},
		"beside another device": {true, "critical active", 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.now = c.now.AddDate(0, 0, 20)
			if test.newer {
				c.postEvent(t, cuffEvent("BP-2", "gw-1", 124, c.now.Add(-time.Hour))).want(200)
			}
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 206, c.now.AddDate(0, 0, -3))).want(200)
			alert := c.alertsOf(patient, "blood_pressure")[0]
			if got := fmt.Sprint(alert["level"], " ", alert["status"]); got != test.want || len(c.statEscalations(t)) != test.stats || alert["late"] != true {
				t.Errorf("%s, escalations %q, %v", got, c.statEscalations(t), alert)
			}
			// The rest of a true backlog, oldest first, stays late.
			for day := range 2 {
				id := c.postEvent(t, cuffEvent("BP-1", "gw-1", 124+day, c.now.AddDate(0, 0, day-2))).want(200).at("observation_id").(string)
				c.request(authz.Nurse, "GET", "/ingestion/observations/"+id+"/", nil).want(200).wantAt(object{"review_state": "accepted"})
			}
		})
	}
}
