package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

// A dangerous value that may be another patient's, or is of an unknown one, notifies staff at once, and not only of events in quarantine. It raises no alert of a
// patient.
func TestStoryDangerWithoutACertainPatient(t *testing.T) {
	for name, test := range map[string]struct {
		event func(c *clinic) string
		want  int
	}{
		"another's, critical":       {func(c *clinic) string { return oximeterEvent("OX-1", "GW-2", 79, 80, c.now) }, 1},
		"another's, out of range":   {func(c *clinic) string { return cuffEvent("OX-1", "GW-2", 320, c.now) }, 1},
		"another's, in range":       {func(c *clinic) string { return oximeterEvent("OX-1", "GW-2", 96, 80, c.now) }, 0},
		"nobody's, critical":        {func(c *clinic) string { return oximeterEvent("OX-9", "GW-9", 79, 80, c.now) }, 1},
		"nobody's, in range":        {func(c *clinic) string { return oximeterEvent("OX-9", "GW-9", 97, 80, c.now) }, 0},
		"the holder's own critical": {func(c *clinic) string { return oximeterEvent("OX-1", "GW-1", 79, 80, c.now) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			ada := c.enroll(object{"gateway_patient_id": "GW-1"})
			c.enroll(object{"gateway_patient_id": "GW-2", "first_name": "Bo"})
			c.request(authz.Admin, "POST", "/devices/assign/", object{"device_id": "OX-1", "device_type": "pulse_oximeter", "patient_id": ada, "assigned_at": c.now.AddDate(0, 0, -3).Format(time.RFC3339)}).want(200)
			for range 2 {
				c.now = c.now.Add(time.Minute)
				c.postEvent(t, test.event(c))
			}
			told := c.queryRows(t, `SELECT key FROM announcements WHERE kind = 'event_quarantined' AND severity = 'critical'`)
			if len(told) != test.want {
				t.Errorf("announced %q, want %d", told, test.want)
			}
			if alerts := c.queryRows(t, `SELECT type FROM alerts`); test.want > 0 && len(alerts) != 0 {
				t.Errorf("alerts %q", alerts)
			}
		})
	}
}

// A pulse that a device sends apart from its pressure waits for it: beyond a critical bound it notifies staff at once, and with the
// pressure it is an alert like any other.
func TestStoryLonePulseBeyondBounds(t *testing.T) {
	for bpm, want := range map[int]int{180: 1, 38: 1, 71: 0, 118: 0} {
		c := newIngestingClinic(t)
		c.t = t
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		for range 2 {
			c.sendVendor(t, "tenovi", pulse("T-1", "GW-1", c.now, bpm)).wantStatuses("quarantined reading_missing")
		}
		if told := c.queryRows(t, `SELECT key FROM announcements WHERE kind = 'event_quarantined' AND severity = 'critical'`); len(told) != want {
			t.Errorf("pulse %d: announced %q, want %d", bpm, told, want)
		}
		c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now, 122)).wantStatuses("accepted")
		if raised := c.alertsOf(patient, "pulse"); len(raised) != want && bpm != 118 {
			t.Errorf("pulse %d with its pressure: %d alerts, want %d", bpm, len(raised), want)
		}
	}
}

// A critical value in quarantine without an alert is counted for the operator until a person decides: released, discarded, or completed by its other part.
func TestStoryCriticalValueInQuarantine(t *testing.T) {
	c := newIngestingClinic(t)
	waiting := func(want int) {
		t.Helper()
		for _, queue := range collections.Queues {
			if queue.Name != "quarantine_critical" {
				continue
			}
			depth, since, err := queue.Depth(c.app)
			if err != nil || depth != want || since.IsZero() != (want == 0) {
				t.Errorf("%d wait since %s (%v), want %d", depth, since, err, want)
			}
			return
		}
		t.Error("there is no such queue")
	}
	events := func() []string {
		return c.queryRows(t, `SELECT id FROM gateway_events WHERE status = 'open' AND critical ORDER BY received_at`)
	}
	send := func(event string) {
		c.now = c.now.Add(time.Minute)
		c.postEvent(t, event)
	}
	ada := c.enroll(object{"gateway_patient_id": "GW-1"})
	gone := c.enroll(object{"gateway_patient_id": "GW-3", "first_name": "Cy"})
	send(oximeterEvent("OX-9", "GW-9", 97, 80, c.now))
	waiting(0) // harmless
	send(oximeterEvent("OX-1", "GW-1", 79, 80, c.now))
	waiting(0) // it has an alert
	send(oximeterEvent("OX-8", "GW-8", 79, 80, c.now))
	waiting(1)
	c.request(authz.Admin, "POST", "/patients/"+gone+"/archive/", object{"reason": "moved"}).want(200)
	send(oximeterEvent("OX-3", "GW-3", 78, 80, c.now))
	waiting(2)
	pending := events()
	if len(pending) != 2 {
		t.Fatal(pending)
	}
	c.request(authz.Admin, "POST", "/ingestion/quarantine/"+pending[0]+"/release/", object{"patient_id": ada}).want(201)
	waiting(1)
	c.request(authz.Admin, "POST", "/ingestion/quarantine/"+pending[1]+"/discard/", object{"reason": "the former patient was called"}).want(200)
	waiting(0)
	c.sendVendor(t, "tenovi", pulse("T-1", "GW-1", c.now, 180)).wantStatuses("quarantined reading_missing")
	waiting(1)
	c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now, 122)).wantStatuses("accepted")
	waiting(0)
}
