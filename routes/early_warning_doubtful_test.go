package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// wellSigns are the kinds of the septic picture in range.
var wellSigns = []vitalSign{
	{"blood_pressure", `"systolic":124,"diastolic":78,"pulse":72`, 3 * time.Minute},
	{"pulse_oximetry", `"spo2":97`, 2 * time.Minute},
	{"body_temperature", `"temperature":36.8`, time.Minute},
}

// newSlowClinic returns a clinic where the patient "gw-1" has, besides other devices, a slow one of each kind that was right hours ago.
func newSlowClinic(t *testing.T) (c *clinic, patient string) {
	t.Helper()
	c = newScoringClinic(t)
	patient = c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 1, 0)
	for _, s := range wellSigns {
		c.slowSign(s, 0)
	}
	c.now = c.now.Add(2 * time.Hour)
	return c, patient
}

// A value in range at a doubtful time takes no points away: neither before the others arrive nor after.
func TestStoryDoubtfulValuesHideNoEarlyWarning(t *testing.T) {
	for slow := range wellSigns {
		t.Run(wellSigns[slow].kind, func(t *testing.T) {
			c, patient := newSlowClinic(t)
			c.measureSign(patient, septic[slow])
			c.now = c.now.Add(10 * time.Minute)
			c.slowSign(wellSigns[slow], 48*time.Hour)
			c.now = c.now.Add(10 * time.Minute)
			for i, s := range septic {
				if i != slow {
					c.measureSign(patient, s)
				}
			}
			if got := c.earlyWarnings(patient); !slices.Contains(got, "8/7 critical active") {
				t.Errorf("early warnings %q", got)
			}
		})
	}
	t.Run("all of them after", func(t *testing.T) {
		c, patient := newSlowClinic(t)
		c.measureAll(patient, septic...)
		for range 2 {
			c.now = c.now.Add(15 * time.Minute)
			for _, s := range wellSigns {
				c.slowSign(s, 48*time.Hour)
			}
		}
		if got := c.earlyWarnings(patient); !slices.Contains(got, "8/7 critical active") {
			t.Errorf("early warnings %q", got)
		}
		c.measureAll(patient, wellSigns...)
		if got := c.earlyWarnings(patient); slices.ContainsFunc(got, func(a string) bool { return strings.HasSuffix(a, " active") }) {
			t.Errorf("after values of a right clock: %q", got)
		}
	})
}

// An emergency of yesterday without an answer stays open when the patient is still ill, but less.
func TestStoryOldEmergencyAndALesserScore(t *testing.T) {
	for _, hours := range []int{25, 40, 72} {
		t.Run(fmt.Sprint(hours), func(t *testing.T) {
			c := newScoringClinic(t)
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.measureAll(patient, septic...)
			c.now = c.now.Add(time.Duration(hours) * time.Hour)
			c.measureAll(patient,
				vitalSign{"blood_pressure", `"systolic":98,"diastolic":62,"pulse":112`, 3 * time.Minute}, vitalSign{"pulse_oximetry", `"spo2":95`, 2 * time.Minute})
			if got := c.earlyWarnings(patient); !slices.Contains(got, "8/7 critical active") || !slices.Contains(got, "5/5 warning active") {
				t.Errorf("less ill: %q", got)
			}
			c.now = c.now.Add(10 * time.Minute)
			c.measureAll(patient, septic...)
			if got := c.earlyWarnings(patient); len(slices.DeleteFunc(got, func(a string) bool { return !strings.HasSuffix(a, "critical active") })) != 1 {
				t.Errorf("as ill again: %q", c.earlyWarnings(patient))
			}
		})
	}
}

// A value of a doubtful time that waited in the quarantine counts as of its receipt, not as of its release, and is dated by it when confirmed.
func TestStoryDoubtfulValueReleasedLater(t *testing.T) {
	c := newScoringClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.now = c.now.AddDate(0, 1, 0)
	received := c.now
	waits := c.postEvent(t, oximeterEvent("OX-9", "nobody", 87, 96, time.Date(2019, 1, 1, 0, 9, 0, 0, time.UTC))).want(200).at("event_id").(string)
	c.now = c.now.Add(20 * time.Hour)
	c.measureAll(patient, septic[0], septic[2])
	released := c.request(authz.MA, "POST", "/ingestion/quarantine/"+waits+"/release/", object{"patient_id": patient}).want(201).at("id").(string)
	if got := c.earlyWarnings(patient); slices.ContainsFunc(got, func(a string) bool { return strings.Contains(a, "critical") }) {
		t.Errorf("a value of twenty hours ago counts as new: %q", got)
	}
	c.request(authz.Nurse, "POST", "/ingestion/observations/"+released+"/confirm/", object{}).want(200).
		wantAt(object{"measured_at": received.UTC().Format("2006-01-02T15:04:05Z")})
}
