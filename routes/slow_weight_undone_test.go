package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// Further weights of the day withdraw an alert that they undo. One that a person acknowledged stays as the person left it, and other bounds withdraw none.
func TestStorySlowWeightUndone(t *testing.T) {
	for name, test := range map[string]struct {
		before func(c *clinic, patient, alert string)
		kg     []float64
		want   object
	}{
		"weights of its day": {func(*clinic, string, string) {}, []float64{82, 82.1, 82, 82.1, 82, 82.1, 82}, object{"status": "auto_resolved", "resolution_reason": "withdrawn"}},
		"acknowledged": {func(c *clinic, _, alert string) {
			c.request(authz.Nurse, "POST", "/alerts/"+alert+"/acknowledge/", nil).want(200)
		}, []float64{82, 82.1, 82, 82.1, 82, 82.1, 82}, object{"status": "acknowledged", "resolution_reason": nil}},
		"another bound": {func(c *clinic, patient, _ string) {
			c.request(authz.Nurse, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "Diuretic changed", "weight": object{"slow_gain_kg": 4}}).want(200)
		}, []float64{86.5, 86.6}, object{"status": "active", "resolution_reason": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"time_zone": "America/New_York"})
			c.giveTemplate(patient, "heart_failure").want(200)
			start := c.now
			for day := range 20 {
				c.weigh(patient, float64(int((82+0.24*float64(day))*100+0.5))/100, start.AddDate(0, 0, day)).want(201)
			}
			slow := func() object {
				for _, alert := range c.alertsOf(patient, "weight") {
					if alert["parameter"] == "weight_slow_gain" {
						return alert
					}
				}
				t.Fatal("no alert")
				return nil
			}
			test.before(c, patient, formatID(slow()))
			for i, kg := range test.kg {
				c.weigh(patient, kg, start.AddDate(0, 0, 19).Add(time.Duration(1+i)*time.Hour)).want(201)
			}
			wantIn(t, slow(), test.want)
		})
	}
}
