package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// slowSign sends a reading of a device with a slow clock.
func (c *clinic) slowSign(s vitalSign, behind time.Duration) reply {
	c.t.Helper()
	return c.postEvent(c.t, fmt.Sprintf(`{"event_type":"measurement.created","device_id":"SLOW-%s","patient_id":"gw-1","measurement_type":%q,"unit":%q,"values":{%s},"timestamp":%q}`,
		s.kind, s.kind, signUnits[s.kind], s.values, c.now.Add(-s.ago-behind).Format(time.RFC3339))).want(200)
}

// Values of a doubtful time count for the early warning score as of receipt, for any of the devices, and no longer once retracted.
func TestStoryEarlyWarningWithDoubtfulTimes(t *testing.T) {
	for slow := range 3 {
		for _, last := range []int{slow, (slow + 1) % 3} { // the doubtful reading arrives last, or before another
			t.Run(fmt.Sprint(septic[slow].kind, ", last is ", septic[last].kind), func(t *testing.T) {
				c := newScoringClinic(t)
				patient := c.enroll(object{"gateway_patient_id": "gw-1"})
				c.now = c.now.AddDate(0, 1, 0)
				c.slowSign(vitalSign{septic[slow].kind, strings.NewReplacer("93", "124", "127", "72", "89", "97", "38.9", "36.8").Replace(septic[slow].values), 0}, 0)
				c.now = c.now.Add(2 * time.Hour)
				order := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == last })
				var doubtful reply
				for _, i := range append(order, last) {
					if i == slow {
						doubtful = c.slowSign(septic[i], 48*time.Hour)
					} else {
						c.measureSign(patient, septic[i])
					}
				}
				if got := c.earlyWarnings(patient); !slices.Contains(got, "8/7 critical active") {
					t.Fatalf("early warnings %q", got)
				}
				if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
					t.Errorf("escalations %q", stats)
				}
				c.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", doubtful.at("observation_id")), object{"reason": "A stuck event."}).want(200)
				if got := c.earlyWarnings(patient); slices.Contains(got, "8/7 critical active") {
					t.Errorf("without the reading: %q", got)
				}
			})
		}
	}
}

// An early warning without an answer for more than a day is retracted with a reading that it needs, and ends with fresh values like any other.
func TestStoryOldEarlyWarning(t *testing.T) {
	for _, days := range []int{1, 2, 9} {
		for _, acknowledged := range []bool{false, true} {
			t.Run(fmt.Sprint(days, " days, acknowledged ", acknowledged), func(t *testing.T) {
				c := newScoringClinic(t)
				patient := c.enroll(object{"gateway_patient_id": "gw-1"})
				var ids []any
				for _, s := range septic {
					ids = append(ids, c.measureSign(patient, s).at("observation_id"))
				}
				if acknowledged {
					c.request(authz.Nurse, "POST", "/alerts/"+formatID(c.alertsOf(patient, "early_warning")[0])+"/acknowledge/", nil).want(200)
				}
				c.now = c.now.AddDate(0, 0, days).Add(time.Hour)
				c.request(authz.Nurse, "POST", fmt.Sprintf("/ingestion/observations/%v/entered-in-error/", ids[0]), object{"reason": "Not hers."}).want(200)
				if newest := c.alertsOf(patient, "early_warning")[0]; newest["status"] != "resolved" || newest["resolution_reason"] != "withdrawn" {
					t.Errorf("after the retraction: %v", newest)
				}
			})
		}
	}
	c := newScoringClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.measureAll(patient, septic...)
	c.now = c.now.Add(2 * time.Hour)
	c.measureAll(patient, septic...)
	c.now = c.now.Add(23 * time.Hour)
	c.measureAll(patient, vitalSign{"blood_pressure", `"systolic":121,"diastolic":72,"pulse":74`, time.Minute})
	if got := c.earlyWarnings(patient); !slices.Contains(got, "8/7 critical active") {
		t.Errorf("a day later, with one value in range: %q", got)
	}
	c = newScoringClinic(t)
	patient = c.enroll(object{"gateway_patient_id": "gw-1"})
	c.measureAll(patient, septic...)
	c.now = c.now.Add(24*time.Hour + 5*time.Minute)
	c.measureAll(patient, vitalSign{"blood_pressure", `"systolic":124,"diastolic":78,"pulse":76`, 3 * time.Minute}, vitalSign{"pulse_oximetry", `"spo2":97`, 2 * time.Minute})
	if got := c.earlyWarnings(patient); !slices.Contains(got, "8/7 critical active") {
		t.Errorf("before the temperature is measured again: %q", got)
	}
	c.measureAll(patient, vitalSign{"body_temperature", `"temperature":36.9`, time.Minute})
	if got := c.earlyWarnings(patient); slices.ContainsFunc(got, func(a string) bool { return strings.HasSuffix(a, " active") }) {
		t.Errorf("the next morning, all in range: %q", got)
	}
}
