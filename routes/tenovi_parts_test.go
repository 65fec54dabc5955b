package routes_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

func irregular(device, patient string, at time.Time, value int) string {
	return tenovi("irregular_heartbeat", device, patient, at, fmt.Sprintf(`"value_1":%d,"value_2":null`, value))
}

func array(parts ...string) string { return "[" + strings.Join(parts, ",") + "]" }

// indexed returns a measurement with another measurement_index.
func indexed(body string, index int) string {
	return strings.Replace(body, `"measurement_index":1`, fmt.Sprintf(`"measurement_index":%d`, index), 1)
}

// wantQuarantined compares the quarantine reasons, by measurement.
func (c *clinic) wantQuarantined(t testing.TB, want ...string) {
	t.Helper()
	if got := c.queryRows(t, `SELECT status || ' ' || measurement_type || ' ' || reason FROM gateway_events WHERE status IN ('open', 'rejected') ORDER BY received_at, measurement_type, reason`); !slices.Equal(got, want) {
		t.Errorf("waiting are %q, want %q", got, want)
	}
}

func (c *clinic) wantAlerts(t testing.TB, want ...string) {
	t.Helper()
	if got := c.queryRows(t, `SELECT type || ' ' || level FROM alerts ORDER BY type, level`); !slices.Equal(got, want) {
		t.Errorf("raised are %q, want %q", got, want)
	}
}

// A value that names one patient is never merged into another's reading, in any order and however the reading is
// assigned.
func TestTenoviPulseOfAnotherPatient(t *testing.T) {
	t.Run("assigned device", func(t *testing.T) {
		c := newIngestingClinic(t)
		c.enroll(object{"gateway_patient_id": "GW-77"})
		ben := c.enroll(object{"gateway_patient_id": "GW-78"})
		c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "T-1", "patient_id": ben, "device_type": "blood_pressure"}).want(200)
		c.now = c.now.Add(time.Hour)
		c.sendVendor(t, "tenovi", pulse("T-1", "GW-77", c.now, 36)).wantStatuses("quarantined patient_mismatch")
		c.sendVendor(t, "tenovi", pressure("T-1", "", c.now, 122)).wantStatuses("accepted")
		c.wantReadings(t, "blood_pressure 122.0/82.0 - ")
		c.wantQuarantined(t, "open pulse patient_mismatch")
	})
	t.Run("unassigned device", func(t *testing.T) {
		c := newIngestingClinic(t)
		c.enroll(object{"gateway_patient_id": "GW-77"})
		c.enroll(object{"gateway_patient_id": "GW-78"})
		c.sendVendor(t, "tenovi", pulse("T-1", "GW-77", c.now, 36)).wantStatuses("quarantined reading_missing")
		c.sendVendor(t, "tenovi", pressure("T-1", "GW-78", c.now, 122)).wantStatuses("accepted")
		c.wantReadings(t, "blood_pressure 122.0/82.0 - ")
		c.wantQuarantined(t, "open pulse reading_missing")
	})
	t.Run("reading assigned by a person", func(t *testing.T) {
		c := newIngestingClinic(t)
		ben := c.enroll(nil)
		c.sendVendor(t, "tenovi", pulse("T-1", "GW-77", c.now, 36)).wantStatuses("quarantined unknown_patient")
		id := c.sendVendor(t, "tenovi", pressure("T-1", "GW-78", c.now, 122)).wantStatuses("quarantined unknown_patient").delivered()[0]["event_id"].(string)
		c.request(authz.MA, "POST", "/ingestion/quarantine/"+id+"/release/", object{"patient_id": ben}).want(201)
		c.wantReadings(t, "blood_pressure 122.0/82.0 - ")
		c.wantQuarantined(t, "open pulse unknown_patient")
	})
	t.Run("in one array", func(t *testing.T) {
		c := newIngestingClinic(t)
		c.enroll(object{"gateway_patient_id": "GW-77"})
		c.enroll(object{"gateway_patient_id": "GW-78"})
		c.sendVendor(t, "tenovi", array(pressure("T-1", "GW-77", c.now, 122), pulse("T-1", "GW-78", c.now, 44))).
			wantStatuses("accepted", "quarantined conflicting_duplicate")
		c.wantReadings(t, "blood_pressure 122.0/82.0 - ")
	})
}

// A waiting part is merged into its reading even if the reading arrives with another part.
func TestTenoviWaitingPulseAndAnotherAddition(t *testing.T) {
	for _, together := range []string{"irregular", "all"} {
		c := newIngestingClinic(t)
		c.enroll(object{"gateway_patient_id": "GW-1"})
		c.sendVendor(t, "tenovi", pulse("T-1", "GW-1", c.now, 36)).wantStatuses("quarantined reading_missing")
		parts := []string{pressure("T-1", "GW-1", c.now, 128), irregular("T-1", "GW-1", c.now, 1)}
		if together == "all" {
			parts = append(parts, pulse("T-1", "GW-1", c.now, 36))
		}
		for _, want := range []string{"accepted", "duplicate"} {
			c.sendVendor(t, "tenovi", array(parts...)).wantStatuses(want)
			c.wantReadings(t, "blood_pressure 128.0/82.0 36 yes")
			c.wantAlerts(t, "device_info normal", "pulse critical")
			c.wantQuarantined(t)
		}
	}
}

// A value that contradicts a waiting one is quarantined for a person.
func TestTenoviWaitingPulseContradicts(t *testing.T) {
	c := newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	c.sendVendor(t, "tenovi", pulse("T-1", "GW-1", c.now, 36)).wantStatuses("quarantined reading_missing")
	c.sendVendor(t, "tenovi", array(pressure("T-1", "GW-1", c.now, 128), pulse("T-1", "GW-1", c.now, 71))).wantStatuses("accepted")
	c.wantReadings(t, "blood_pressure 128.0/82.0 71 ")
	c.wantQuarantined(t, "open pulse conflicting_duplicate")
}

// A repeated part is a duplicate however its reading was merged, and a further part completes the reading.
func TestTenoviRepeatsOfCompletedReadings(t *testing.T) {
	c := newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	first := array(pressure("T-1", "GW-1", c.now, 128), pulse("T-1", "GW-1", c.now, 70))
	for _, step := range []struct{ body, want string }{
		{first, "accepted"},
		{irregular("T-1", "GW-1", c.now, 1), "accepted"},
		{first, "duplicate"},
		{pressure("T-1", "GW-1", c.now, 128), "duplicate"},
		{array(pressure("T-1", "GW-1", c.now, 128), pulse("T-1", "GW-1", c.now, 71)), "quarantined conflicting_duplicate"},
	} {
		c.sendVendor(t, "tenovi", step.body).wantStatuses(step.want)
	}
	c.wantReadings(t, "blood_pressure 128.0/82.0 70 yes")

	c = newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	whole := array(pressure("T-1", "GW-1", c.now, 120), pulse("T-1", "GW-1", c.now, 35))
	c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now, 120)).wantStatuses("accepted")
	c.wantAlerts(t)
	c.sendVendor(t, "tenovi", whole).wantStatuses("accepted")
	c.wantReadings(t, "blood_pressure 120.0/82.0 35 ")
	c.wantAlerts(t, "pulse critical")
	c.wantQuarantined(t)
	c.sendVendor(t, "tenovi", whole).wantStatuses("duplicate")
	if n := c.queryRows(t, `SELECT (SELECT SUM(readings) FROM reading_days) || ' ' || (SELECT COUNT(*) FROM transmissions) || ' ' || (SELECT SUM(readings) FROM daily_counts)`); n[0] != "1 1 1" {
		t.Errorf("days, deliveries, readings: %s", n[0])
	}
}

// An unreadable part is reported to staff and counted when the rest of its delivery is stored; if the whole delivery is
// refused, only its sender gets the error.
func TestRejectedPartIsReported(t *testing.T) {
	var counted []string
	c := newIngestingClinic(t, func(e *routes.Engines) {
		e.Observer.Rejected = func(reason string) { counted = append(counted, reason) }
	})
	c.enroll(object{"gateway_patient_id": "GW-1"})
	const notified = `SELECT body FROM announcements WHERE kind = 'event_quarantined'`
	c.sendVendor(t, "tenovi", array(pressure("T-1", "GW-1", c.now, 310), pulse("T-1", "GW-1", c.now, 24))).want(400)
	if got := c.queryRows(t, notified); len(got) != 0 || !slices.Equal(counted, []string{"validation_error"}) {
		t.Errorf("of a whole refusal staff are notified of %q, and %q are counted", got, counted)
	}
	c.now, counted = c.now.Add(time.Minute), nil
	body := array(pressure("T-1", "GW-1", c.now, 120), pulse("T-1", "GW-1", c.now, 24))
	for range 2 {
		if status := c.sendVendor(t, "tenovi", body).eventStatuses()[1]; status != "rejected validation_error" {
			t.Errorf("the part is answered as %s", status)
		}
		if got := c.queryRows(t, notified); len(got) != 1 || !slices.Equal(counted, []string{"validation_error"}) {
			t.Errorf("staff are notified of %q, and %q are counted", got, counted)
		}
	}
	c.request(authz.MA, http.MethodGet, "/ingestion/quarantine/?status=rejected", nil).want(200)
}

// An unreadable reading does not block its parts: its pulse waits for a corrected reading.
func TestTenoviPulseOfUnreadableReading(t *testing.T) {
	c := newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	c.sendVendor(t, "tenovi", array(pressure("T-1", "GW-1", c.now, 310), pulse("T-1", "GW-1", c.now, 36))).
		wantStatuses("rejected validation_error", "quarantined reading_missing")
	if notified := c.queryRows(t, `SELECT key FROM announcements WHERE alert = '' ORDER BY key`); len(notified) != 3 { // the pulse is critical
		t.Errorf("staff are notified of %q", notified)
	}
	c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now, 210)).wantStatuses("accepted")
	c.wantReadings(t, "blood_pressure 210.0/82.0 36 ")
	c.wantQuarantined(t, "rejected blood_pressure validation_error")
}

// A part of a measurement with repeated values belongs to the reading that is stored for both.
func TestTenoviPulseOfRepeatedValues(t *testing.T) {
	send := func(t *testing.T) *clinic {
		c := newIngestingClinic(t)
		c.enroll(object{"gateway_patient_id": "GW-1"})
		c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now, 120)).wantStatuses("accepted")
		c.sendVendor(t, "tenovi", indexed(pressure("T-1", "GW-1", c.now, 120), 2)).wantStatuses("duplicate")
		return c
	}
	c := send(t)
	c.sendVendor(t, "tenovi", indexed(pulse("T-1", "GW-1", c.now, 35), 2)).wantStatuses("accepted")
	c.wantReadings(t, "blood_pressure 120.0/82.0 35 ")
	c.wantAlerts(t, "pulse critical")
	before := vigiltest.RowCounts(t, c.app)
	c.sendVendor(t, "tenovi", indexed(pressure("T-1", "GW-1", c.now, 120), 2)).wantStatuses("duplicate")
	c.sendVendor(t, "tenovi", indexed(pulse("T-1", "GW-1", c.now, 35), 2)).wantStatuses("duplicate")
	c.sendVendor(t, "tenovi", pulse("T-1", "GW-1", c.now, 35)).wantStatuses("duplicate")
	if added := vigiltest.RowsAdded(t, c.app, before); len(added) != 0 {
		t.Errorf("repeats add %v", added)
	}
	c.wantQuarantined(t)

	c = send(t)
	c.sendVendor(t, "tenovi", pulse("T-1", "GW-1", c.now, 70)).wantStatuses("accepted")
	c.sendVendor(t, "tenovi", indexed(pulse("T-1", "GW-1", c.now, 35), 2)).wantStatuses("quarantined conflicting_duplicate")
	c.wantReadings(t, "blood_pressure 120.0/82.0 70 ")
}

// A waiting pulse is released when its reading turns out to be a duplicate.
func TestTenoviWaitingPulseOfRepeatedValues(t *testing.T) {
	c := newIngestingClinic(t)
	c.enroll(object{"gateway_patient_id": "GW-1"})
	c.sendVendor(t, "tenovi", array(pressure("T-1", "GW-1", c.now, 120), pulse("T-1", "GW-1", c.now, 70))).wantStatuses("accepted")
	c.sendVendor(t, "tenovi", indexed(pulse("T-1", "GW-1", c.now, 70), 2)).wantStatuses("quarantined reading_missing")
	c.sendVendor(t, "tenovi", indexed(pressure("T-1", "GW-1", c.now, 120), 2)).wantStatuses("duplicate")
	c.wantReadings(t, "blood_pressure 120.0/82.0 70 ")
	c.wantQuarantined(t)
}

// An unreadable battery level is left out by name, and two different levels of one moment are both kept.
func TestTenoviBattery(t *testing.T) {
	c := newIngestingClinic(t)
	battery := func(level string) string {
		return tenovi("battery_percentage", "T-1", "", c.now, `"value_1":"`+level+`","value_2":null`)
	}
	for _, level := range []string{"fair", "101"} {
		answer := c.sendVendor(t, "tenovi", battery(level)).wantStatuses("accepted")
		if left, _ := answer.delivered()[0]["left_out"].([]any); len(left) != 1 || left[0] != "battery_level" {
			t.Errorf("%s: left out %v", level, left)
		}
	}
	c.request(authz.Nurse, http.MethodGet, "/devices/T-1/", nil).want(200).wantAt(object{"battery_level": nil, "status": "connected"})
	c.sendVendor(t, "tenovi", battery("14.5%")).wantStatuses("accepted")
	c.sendVendor(t, "tenovi", battery("4")).wantStatuses("accepted")
	for range 2 {
		c.request(authz.Nurse, http.MethodGet, "/devices/T-1/", nil).want(200).wantAt(object{"battery_level": 4.0, "battery_state": "critical"})
		if n := c.queryRows(t, `SELECT COUNT(*) FROM gateway_events WHERE status = 'handled'`); n[0] != "4" {
			t.Errorf("%s words of the device are kept", n[0])
		}
		c.sendVendor(t, "tenovi", battery("14.5%")).wantStatuses("duplicate")
		c.sendVendor(t, "tenovi", battery("4")).wantStatuses("duplicate")
	}
}

// A reading that a person releases beside the one it contradicts takes its waiting parts with it; the other gets none.
func TestTenoviReleaseIncludesItsPulse(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "GW-1"})
	id := c.sendVendor(t, "tenovi", pressure("T-1", "", c.now, 130)).wantStatuses("quarantined unknown_patient").delivered()[0]["event_id"].(string)
	c.sendVendor(t, "tenovi", pulse("T-1", "", c.now, 36)).wantStatuses("quarantined unknown_patient")
	c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now, 120)).wantStatuses("accepted")
	c.request(authz.MA, http.MethodPost, "/ingestion/quarantine/"+id+"/release/", object{"patient_id": patient}).want(201).wantAt(object{"pulse": 36.0})
	c.wantReadings(t, "blood_pressure 120.0/82.0 - ", "blood_pressure 130.0/82.0 36 ")
	c.wantAlerts(t, "pulse critical")
	c.wantQuarantined(t)
}
