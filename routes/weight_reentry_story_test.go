package routes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A mistyped weight is retracted and entered again: the newest weight alerts against the corrected one, although it had
// alerted against the wrong one.
func TestStoryWeightEnteredAgain(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	monday, tuesday := c.now.AddDate(0, 0, -1), c.now.Add(-time.Hour)
	mistyped := c.weigh(patient, 80, monday).want(201)
	c.weigh(patient, 85, tuesday).want(201).wantAt(object{"alert_details.level": "critical"})
	wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
	c.request(authz.Nurse, "POST", "/ingestion/observations/"+mistyped.at("id").(string)+"/entered-in-error/", object{"reason": "Mistyped."}).want(200)
	wantSame(t, "escalations, retracted", c.statEscalations(t), []string{"stat cancelled system"})
	c.weigh(patient, 80.2, monday).want(201)
	wantSame(t, "alerts", c.alertsRaised(patient), []string{"weight critical weight_change 5/4.6", "weight critical weight_change 4.8/4.6"})
	wantSame(t, "open", c.openAlerts(patient), []string{"weight critical"})
	wantSame(t, "escalations, entered again", c.statEscalations(t), []string{"stat cancelled system", "stat open system"})
}

// An older suspect weight is confirmed after the newest one was evaluated: the newest one alerts against it.
func TestStoryOlderWeightIsConfirmed(t *testing.T) {
	for name, confirm := range map[string]func(c *clinic, first reply, at time.Time){
		"by the nurse": func(c *clinic, first reply, _ time.Time) { c.confirmReading(authz.Nurse, first.at("id")).want(200) },
		"by one like it": func(c *clinic, _ reply, at time.Time) {
			c.sendWeightFrom("W-2", "GW-1", 76.4, at.Add(time.Minute)).wantAt(object{"review_state": "confirmed"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient, at := c.weighedDaily(88, 88, 88, 88, 88)
			first := c.sendWeight("GW-1", 76, at).wantAt(object{"review_state": "suspect"})
			c.sendWeight("GW-1", 86, at.Add(25*time.Hour)).wantAt(object{"review_state": "accepted"})
			wantSame(t, "escalations, in doubt", c.statEscalations(t), nil)
			confirm(c, first, at)
			wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
			var critical []string
			for _, raised := range c.alertsRaised(patient) {
				if strings.HasPrefix(raised, "weight critical") {
					critical = append(critical, raised)
				}
			}
			wantSame(t, "critical ones", critical, []string{"weight critical weight_change 10/4.6"})
		})
	}
}
