package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/access"
)

// A mistyped weight is withdrawn and entered anew: what the newest is beside the right one is told, although it was told beside the wrong one.
func TestStoryWeightEnteredAnew(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enrol(nil)
	monday, tuesday := c.now.AddDate(0, 0, -1), c.now.Add(-time.Hour)
	mistyped := c.weigh(patient, 80, monday).want(201)
	c.weigh(patient, 85, tuesday).want(201).wantAt(object{"alert_details.level": "critical"})
	wantSame(t, "escalations", c.stats(t), []string{"stat open system"})
	c.ask(access.Nurse, "POST", "/ingestion/observations/"+mistyped.at("id").(string)+"/entered-in-error/", object{"reason": "Mistyped."}).want(200)
	wantSame(t, "escalations, withdrawn", c.stats(t), []string{"stat cancelled system"})
	c.weigh(patient, 80.2, monday).want(201)
	wantSame(t, "alerts", c.raisedAbout(patient), []string{"weight critical weight_change 5/4.6", "weight critical weight_change 4.8/4.6"})
	wantSame(t, "open", c.open(patient), []string{"weight critical"})
	wantSame(t, "escalations, entered anew", c.stats(t), []string{"stat cancelled system", "stat open system"})
}
