package routes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// slowCuff enrolls a patient with a cuff, sets the cuff's clock back by some time, and returns the first reading after that.
func (c *clinic) slowCuff(behind time.Duration, systolic int) (patient, observation string) {
	c.t.Helper()
	patient = c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 0, 30)
	c.postEvent(c.t, cuffEvent("BP-1", "gw-1", 124, c.now.Add(-time.Hour))).want(200)
	observation = c.postEvent(c.t, cuffEvent("BP-1", "gw-1", systolic, c.now.Add(-behind))).want(200).at("observation_id").(string)
	return patient, observation
}

// A person confirms a reading of a doubtful time, with or without its true time: it counts from then on, its alert stays the same one,
// and the question about the clock is closed once nothing waits for an answer.
func TestStoryTimeIsConfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		behind, true time.Duration // before receipt; 0 for no time given
	}{
		"as received": {48 * time.Hour, 0}, "an hour earlier": {48 * time.Hour, 90 * time.Minute}, "its own time": {30 * time.Hour, 30 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient, id := c.slowCuff(test.behind, 206)
			received := c.now
			other := c.postEvent(t, cuffEvent("BP-1", "gw-1", 128, c.now.Add(time.Minute-test.behind))).want(200).at("observation_id").(string)
			c.now = c.now.Add(20 * time.Minute)
			at, body := received.Add(-test.true), object{"notes": "She called."}
			if test.true > 0 {
				body["measured_at"] = at.Format(time.RFC3339)
			}
			path := "/ingestion/observations/" + id + "/confirm/"
			for _, wrong := range []time.Time{c.now.Add(time.Minute), received.Add(10 * time.Minute), time.Date(1940, 1, 1, 0, 0, 0, 0, time.UTC)} {
				c.request(authz.Nurse, "POST", path, object{"measured_at": wrong.Format(time.RFC3339)}).wantFields("measured_at")
			}
			for range 2 {
				c.request(authz.Nurse, "POST", path, body).want(200).wantAt(object{
					"review_state": "confirmed", "suspect_reason": "device_clock", "measured_at": at.UTC().Format(time.RFC3339), "fhir_status": "pending",
				})
			}
			list := c.alertsOf(patient, "blood_pressure")
			if len(list) != 1 || list[0]["status"] != "active" || list[0]["time_in_doubt"] != false {
				t.Errorf("alerts of the reading: %v", list)
			}
			wantSame(t, "open", c.openAlerts(patient), []string{"blood_pressure critical", "device_clock warning"})
			c.request(authz.Nurse, "POST", "/ingestion/observations/"+other+"/confirm/", object{}).want(200)
			wantSame(t, "open", c.openAlerts(patient), []string{"blood_pressure critical"})
			if totals := c.queryRows(t, `SELECT readings FROM daily_counts WHERE status = 'suspect' AND readings != 0`); len(totals) > 0 {
				t.Errorf("suspect readings counted: %q", totals)
			}
			// The same event again is a duplicate.
			c.postEvent(t, cuffEvent("BP-1", "gw-1", 206, received.Add(-test.behind))).want(200).wantAt(object{"status": "duplicate", "observation_id": id})
			c.wantRoles("POST", path, body, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse)
		})
	}
}

// A retracted reading takes its alerts and escalation with it, as any other.
func TestStoryDoubtfulReadingIsRetracted(t *testing.T) {
	c := newIngestingClinic(t)
	patient, id := c.slowCuff(48*time.Hour, 206)
	c.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/entered-in-error/", object{"reason": "A stuck event."}).want(200)
	wantSame(t, "open", c.openAlerts(patient), nil)
	wantSame(t, "escalations", c.statEscalations(t), []string{"stat cancelled system"})
}

// Several events of one delivery are judged in order of measurement: a true backlog, in any order, is no doubt.
func TestStoryBacklogInOneDelivery(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "GW-1"})
	c.now = c.now.AddDate(0, 0, 30)
	c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now.AddDate(0, 0, -9), 124)).wantStatuses("accepted")
	body, want := "[", []string{}
	for i, hours := range []int{3, 70, 9, 51, 26} {
		if i > 0 {
			body += ","
		}
		body += pressure("T-1", "GW-1", c.now.Add(-time.Duration(hours)*time.Hour), 120+i)
		want = append(want, "accepted")
	}
	c.sendVendor(t, "tenovi", body+"]").wantStatuses(want...)
	if states := c.queryRows(t, `SELECT DISTINCT review_state FROM observations`); !slices.Equal(states, []string{""}) {
		t.Errorf("states %q", states)
	}
	wantSame(t, "alerts", c.openAlerts(patient), nil)
	// Alone and out of order, one of them is in doubt; a repeat of a stored one is not.
	c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now.Add(-70*time.Hour), 121)).wantStatuses("duplicate")
	wantSame(t, "alerts", c.openAlerts(patient), nil)
	c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now.Add(-60*time.Hour), 122)).wantStatuses("accepted")
	wantSame(t, "alerts", c.openAlerts(patient), []string{"device_clock warning"})
}

// Parts of a reading in doubt are judged like it, in any order.
func TestStoryPartsInDoubt(t *testing.T) {
	for _, pulseFirst := range []bool{false, true} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		c.now = c.now.AddDate(0, 0, 30)
		c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now.Add(-time.Hour), 124)).wantStatuses("accepted")
		at := c.now.AddDate(0, 0, -3)
		parts := []string{pressure("T-1", "GW-1", at, 126), pulse("T-1", "GW-1", at, 36)}
		if pulseFirst {
			slices.Reverse(parts)
		}
		for _, part := range parts {
			c.sendVendor(t, "tenovi", part)
		}
		wantSame(t, fmt.Sprintf("pulse first %t: open", pulseFirst), c.openAlerts(patient), []string{"device_clock warning", "pulse critical"})
		wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
	}
}

// Two devices of one patient, one of them slow: the other one's readings end none of its alerts, and it puts nothing of the other in doubt.
func TestStoryOneOfTwoDevicesIsSlow(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 0, 30)
	for _, device := range []string{"BP-1", "BP-2"} {
		c.postEvent(t, cuffEvent(device, "gw-1", 124, c.now.Add(-2*time.Hour))).want(200)
	}
	for i := range 4 {
		c.now = c.now.Add(time.Minute)
		c.postEvent(t, cuffEvent("BP-1", "gw-1", 188+i, c.now.AddDate(0, 0, -2))).want(200)
		c.now = c.now.Add(time.Minute)
		c.postEvent(t, cuffEvent("BP-2", "gw-1", 122, c.now)).want(200)
	}
	wantSame(t, "open", c.openAlerts(patient), []string{
		"blood_pressure critical", "blood_pressure critical", "blood_pressure critical", "blood_pressure critical", "device_clock warning",
	})
	if doubted := c.queryRows(t, `SELECT DISTINCT device_id FROM observations WHERE review_state = 'suspect'`); !slices.Equal(doubted, []string{"BP-1"}) {
		t.Errorf("in doubt: %q", doubted)
	}
}

// A clock that goes back and forth: one alert about it a day, which a right time ends and a wrong one opens again.
func TestStoryClockBackAndForth(t *testing.T) {
	c := newIngestingClinic(t)
	patient, _ := c.slowCuff(48*time.Hour, 128)
	for i := range 6 {
		c.now = c.now.Add(time.Minute)
		c.postEvent(t, cuffEvent("BP-1", "gw-1", 126, c.now)).want(200)
		wantSame(t, "right", c.openAlerts(patient), nil)
		c.now = c.now.Add(time.Minute)
		c.postEvent(t, cuffEvent("BP-1", "gw-1", 130+i, c.now.Add(-48*time.Hour))).want(200)
		wantSame(t, "wrong", c.openAlerts(patient), []string{"device_clock warning"})
	}
	if notified := c.pushes(t); !slices.Equal(notified, []string{"device_alert_raised warning"}) {
		t.Errorf("notified %q", notified)
	}
}

// An implausible value at a doubtful time is as urgent as one at a right time.
func TestStoryImplausibleInDoubt(t *testing.T) {
	for name, behind := range map[string]time.Duration{"behind": 48 * time.Hour, "years": 9 * 366 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient, _ := c.slowCuff(behind, 128)
			c.now = c.now.Add(time.Minute)
			at := c.now.Add(-behind)
			c.postEvent(t, measured("BP-1", "gw-1", "blood_pressure", "mmHg", at, `"systolic":104,"diastolic":58,"pulse":26`)).want(400)
			alert := c.implausible(patient)
			wantIn(t, alert, object{"level": "critical", "status": "active", "late": false, "time_in_doubt": true})
			wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
			id := c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+alert["quarantine_id"].(string)+"/confirm/", object{"notes": "Seen."}).want(201).
				wantAt(object{"review_state": "suspect", "suspect_reason": "device_clock", "pulse": 26.0}).at("id").(string)
			c.wantInDoubt(patient, id, "pulse", c.now)
		})
	}
}

// Vendors that name no patient: a time before the assignment, or before the present holder's readings, belongs to the present holder.
func TestStoryUnnamedDeviceInDoubt(t *testing.T) {
	for name, test := range map[string]struct {
		right bool // the present holder had a right reading
		at    func(now time.Time) time.Time
	}{
		"just before the assignment":         {false, func(now time.Time) time.Time { return now.Add(-7 * time.Hour) }},
		"before anybody had it":              {false, func(now time.Time) time.Time { return now.AddDate(0, 0, -60) }},
		"while the former holder had it":     {true, func(now time.Time) time.Time { return now.AddDate(0, 0, -20) }},
		"back to a time before its delivery": {true, func(time.Time) time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			former, patient := c.enroll(nil), c.enroll(object{"gateway_patient_id": "gw-2"})
			assign := func(patient string) {
				c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "tel", "patient_id": patient, "device_type": "blood_pressure"}).want(200)
			}
			assign(former)
			c.now = c.now.AddDate(0, 0, 30)
			c.request(authz.Nurse, "POST", "/devices/tel/unassign/", object{"reason": "returned"}).want(200)
			c.now = c.now.AddDate(0, 0, 9)
			assign(patient)
			c.now = c.now.Add(5 * time.Hour)
			if test.right {
				c.sendVendor(t, "telli", telli("BloodPressure", "tel", c.now, `"systolic":124,"diastolic":80`)).wantStatuses("accepted")
				c.now = c.now.Add(time.Hour)
			}
			c.sendVendor(t, "telli", telli("BloodPressure", "tel", test.at(c.now), `"systolic":206,"diastolic":126`)).wantStatuses("accepted")
			if list := c.alertsOf(patient, "blood_pressure"); len(list) != 1 || list[0]["status"] != "active" || list[0]["time_in_doubt"] != true {
				t.Errorf("alerts %v", list)
			}
			wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
			wantSame(t, "of the former holder", c.openAlerts(former), nil)
		})
	}
}
