package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A scale that sends its memory newest first pages for a gain once for each level, not for each older weight that changes it.
func TestStoryWeightsNewestFirst(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.request(authz.Provider, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "Heart failure", "weight": object{"daily_change_kg": 1.5}}).want(200)
	for i, kg := range []float64{90, 88, 87, 86, 85} {
		c.request(authz.Nurse, "POST", "/ingestion/weight/", object{
			"patient_id": patient, "weight_kg": kg, "measured_at": c.now.Add(-time.Duration(1+4*i) * time.Hour).Format(time.RFC3339),
		}).want(201)
	}
	active := c.request(authz.Nurse, "GET", "/alerts/?status=active&patient_id="+patient, nil).want(200).results()
	announced := c.queryColumn("SELECT key FROM announcements WHERE kind = 'alert_raised'")
	if len(active) != 3 || len(announced) != 4 { // the newest weight again when its gain became critical
		t.Errorf("%d active alerts, announced %v", len(active), announced)
	}
}
