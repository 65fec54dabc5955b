package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A clock that is always behind by the same time never goes back, so its readings look like a backlog: each critical one that is the
// patient's newest opens or joins the stat escalation, until a reading has arrived within an hour of its time.
func TestStoryClockAlwaysBehind(t *testing.T) {
	for name, behind := range map[string]time.Duration{"two days": 48 * time.Hour, "three months": 92 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			c.enroll(object{"gateway_patient_id": "gw-1"})
			c.now = c.now.AddDate(0, 6, 0)
			for range 4 {
				c.postEvent(t, oximeterEvent("OX-1", "gw-1", 96, 76, c.now.Add(-behind))).want(200)
				c.now = c.now.Add(10 * time.Hour)
			}
			wantSame(t, "escalations", c.statEscalations(t), nil)
			c.postEvent(t, oximeterEvent("OX-1", "gw-1", 79, 132, c.now.Add(-behind))).want(200)
			if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
				t.Errorf("escalations %q", stats)
			}
		})
	}
}

// A reading that arrived within an hour of its time proves a clock: from then on late readings are a backlog. One that goes back takes the
// proof away, also once its time has passed the newest one.
func TestStoryClockProven(t *testing.T) {
	c := newIngestingClinic(t)
	c.t = t
	c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 6, 0)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 124, c.now.Add(-50*time.Minute))).want(200)
	c.now = c.now.AddDate(0, 0, 9)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 206, c.now.AddDate(0, 0, -3))).want(200)
	wantSame(t, "of a backlog", c.statEscalations(t), nil)
	c.now = c.now.Add(time.Hour)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 124, c.now)).want(200)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 124, c.now.AddDate(0, 0, -2))).want(200) // goes back by two days
	c.now = c.now.AddDate(0, 0, 5)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 207, c.now.AddDate(0, 0, -2))).want(200) // later than any
	if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
		t.Errorf("of a clock that went back: %q", stats)
	}
}

// The first readings of a device, several in one delivery and all late: they prove nothing about each other.
func TestStoryFirstDeliveryIsLate(t *testing.T) {
	for name, test := range map[string]struct {
		systolic []int
		stats    int
	}{
		"all critical":      {[]int{206, 208, 211}, 1},
		"the last critical": {[]int{122, 124, 211}, 1},
		"the last in range": {[]int{206, 208, 124}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			c.enroll(object{"gateway_patient_id": "GW-1"})
			c.now = c.now.AddDate(0, 1, 0)
			var events []string
			for i, systolic := range test.systolic {
				events = append(events, pressure("T-1", "GW-1", c.now.AddDate(0, 0, -3).Add(time.Duration(i)*4*time.Minute), systolic))
			}
			c.sendVendor(t, "tenovi", "["+strings.Join(events, ",")+"]").want(200)
			if stats := c.statEscalations(t); len(stats) != test.stats {
				t.Errorf("escalations %q", stats)
			}
		})
	}
}

// Values out of any range from such a clock escalate too.
func TestStoryImplausibleFromUnprovenClock(t *testing.T) {
	c := newIngestingClinic(t)
	c.t = t
	c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 1, 0)
	for _, spo2 := range []int{96, 41} {
		c.postEvent(t, oximeterEvent("OX-1", "gw-1", spo2, 76, c.now.AddDate(0, 0, -3)))
		c.now = c.now.Add(5 * time.Hour)
	}
	if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
		t.Errorf("escalations %q", stats)
	}
}

// A late critical value that escalates is suppressed by a snooze of critical alerts like any other, and escalates when the snooze ends.
func TestStoryUnprovenClockAtTheEndOfASnooze(t *testing.T) {
	for proven, want := range map[bool]int{false: 1, true: 0} {
		t.Run(fmt.Sprint("proven ", proven), func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.now = c.now.AddDate(0, 1, 0)
			if proven {
				c.postEvent(t, cuffEvent("BP-1", "gw-1", 124, c.now)).want(200)
				c.now = c.now.AddDate(0, 0, 9)
			}
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 206, c.now.AddDate(0, 0, -3).Add(-time.Hour))).want(200)
			if !proven {
				c.request(authz.Nurse, "PATCH", "/escalations/1/", object{"status": "resolved", "resolution_notes": "Called."}).want(200)
			}
			c.request(authz.Nurse, "POST", "/patients/"+patient+"/snoozes/", object{
				"type": "blood_pressure", "reason": "Known.", "include_critical": true, "ends_at": c.now.Add(3 * time.Hour).Format(time.RFC3339),
			}).want(201)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 205, c.now.AddDate(0, 0, -3))).want(200)
			open := func() int { return len(c.queryRows(t, `SELECT id FROM escalations WHERE status = 'open'`)) }
			if open() != 0 {
				t.Errorf("while snoozed: %q", c.statEscalations(t))
			}
			c.now = c.now.Add(time.Hour)
			c.request(authz.Nurse, "POST", "/patients/"+patient+"/snoozes/1/end/", object{}).want(200)
			if open() != want {
				t.Errorf("escalations %q", c.statEscalations(t))
			}
			if alert := c.alertsOf(patient, "blood_pressure")[0]; alert["late"] != true || alert["status"] != "active" || (alert["escalation_id"] != nil) != (want == 1) {
				t.Errorf("alert %v", alert)
			}
		})
	}
}

// While nothing proves the clock of a device, readings of other devices, also of other kinds, do not supersede its late ones: that they are
// newer is not known.
func TestStoryUnprovenClockBesideAnotherDevice(t *testing.T) {
	for name, other := range map[string]func(at time.Time) string{
		"of the same kind": func(at time.Time) string { return oximeterEvent("OX-2", "gw-1", 97, 72, at) },
		"a pulse of a cuff": func(at time.Time) string {
			return measured("BP-1", "gw-1", "blood_pressure", "mmHg", at, `"systolic":122,"diastolic":74,"pulse":70`)
		},
	} {
		for _, values := range [][2]int{{79, 92}, {96, 146}, {41, 76}} { // a saturation, a pulse, a value out of any range
			t.Run(fmt.Sprint(name, values), func(t *testing.T) {
				c := newIngestingClinic(t)
				c.t = t
				patient := c.enroll(object{"gateway_patient_id": "gw-1"})
				c.now = c.now.AddDate(0, 6, 0)
				behind := 50 * time.Hour
				for range 3 {
					c.postEvent(t, oximeterEvent("OX-1", "gw-1", 96, 76, c.now.Add(-behind))).want(200)
					c.now = c.now.Add(9 * time.Hour)
					c.postEvent(t, other(c.now)).want(200)
					c.now = c.now.Add(time.Hour)
				}
				c.postEvent(t, oximeterEvent("OX-1", "gw-1", values[0], values[1], c.now.Add(-behind)))
				if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
					t.Fatalf("escalations %q", stats)
				}
				// What another device measured before the receipt ends nothing, even if it arrives later.
				for minutes := range 3 {
					c.postEvent(t, other(c.now.Add(-time.Duration(50-minutes)*time.Minute))).want(200)
				}
				if open := c.openAlerts(patient); !slices.ContainsFunc(open, func(a string) bool { return strings.HasSuffix(a, "critical") }) {
					t.Errorf("after older readings of the other device: open are %q", open)
				}
			})
		}
	}
}

// The device's own newer readings supersede its late ones, in any order of arrival; if they are retracted, what they superseded escalates.
func TestStoryUnprovenClockSupersededByItself(t *testing.T) {
	c := newIngestingClinic(t)
	c.t = t
	patient := c.enroll(object{"gateway_patient_id": "GW-1"})
	c.now = c.now.AddDate(0, 3, 0)
	c.sendVendor(t, "tenovi", "["+pressure("T-1", "GW-1", c.now.AddDate(0, 0, -3), 211)+","+pressure("T-1", "GW-1", c.now.AddDate(0, 0, -2), 124)+"]").want(200)
	wantSame(t, "superseded by the device itself", c.statEscalations(t), nil)
	normal := c.queryRows(t, `SELECT id FROM observations WHERE systolic = 124`)[0]
	c.request(authz.Nurse, "POST", "/ingestion/observations/"+normal+"/entered-in-error/", object{"reason": "Not hers."}).want(200)
	if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
		t.Errorf("reopened: %q, alerts %v", stats, c.alertsOf(patient, "blood_pressure"))
	}
}

// A clock that was set back after a right reading, to a time after it, looks like a backlog at first. A reading that the device would have
// delivered with the one before, or each one equally late, ends the proof.
func TestStoryClockSetBackAfterARightReading(t *testing.T) {
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		silence, behind, every time.Duration
	}{
		"daily, three days back":   {6 * day, 3 * day, day},
		"daily, a day back":        {6 * day, 25 * time.Hour, day},
		"weekly, three days back":  {14 * day, 3 * day, 7 * day},
		"twice a day, a week back": {9 * day, 7 * day, 12 * time.Hour},
		"measured again at once":   {6 * day, 25 * time.Hour, 4 * time.Minute},
		"two minutes apart":        {30 * time.Hour, 29 * time.Hour, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			c.enroll(object{"gateway_patient_id": "gw-1"})
			c.now = c.now.AddDate(0, 6, 0)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 124, c.now)).want(200)
			c.now = c.now.Add(test.silence)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 126, c.now.Add(-test.behind))).want(200)
			c.now = c.now.Add(test.every)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 206, c.now.Add(-test.behind))).want(200)
			if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
				t.Errorf("escalations %q", stats)
			}
		})
	}
	t.Run("a backlog", func(t *testing.T) { // of six days without a connection, event by event
		c := newIngestingClinic(t)
		c.t = t
		c.enroll(object{"gateway_patient_id": "gw-1"})
		c.now = c.now.AddDate(0, 6, 0)
		c.postEvent(t, cuffEvent("BP-1", "gw-1", 124, c.now)).want(200)
		c.now = c.now.Add(8 * day)
		for days := 7; days > 1; days-- {
			c.now = c.now.Add(time.Minute)
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 190+days, c.now.Add(-time.Duration(days)*day))).want(200)
		}
		wantSame(t, "escalations", c.statEscalations(t), nil)
	})
}

// A measurement that was ahead and is sent again once its time has come proves nothing: the next late one escalates.
func TestStoryResendProvesNoClock(t *testing.T) {
	c := newIngestingClinic(t)
	c.t = t
	c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 6, 0)
	ahead := cuffEvent("BP-1", "gw-1", 124, c.now.Add(7*time.Hour))
	c.postEvent(t, ahead).want(400)
	c.now = c.now.Add(7*time.Hour + 5*time.Minute)
	c.postEvent(t, ahead).want(200)
	c.now = c.now.AddDate(0, 0, 9)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 206, c.now.AddDate(0, 0, -3))).want(200)
	if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
		t.Errorf("escalations %q", stats)
	}
}
