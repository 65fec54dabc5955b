package routes_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A misspelled member of a schedule or a hold is rejected with its path: it would be missed only when it is needed.
func TestUnknownMembersOfSchedulesAndHolds(t *testing.T) {
	c := newIngestingClinic(t)
	patient := "/patients/" + c.enroll(object{}) + "/"
	until := c.now.AddDate(0, 0, 5).Format("2006-01-02")
	for path, send := range map[string]func() reply{
		"monitoring_schedule.weight.per_week": func() reply {
			return c.request(authz.ClinicalManager, "PATCH", patient, object{"monitoring_schedule": object{"weight": object{"per_day": 1, "per_week": 2}}})
		},
		"monitoring_schedule.blood_pressure.day": func() reply {
			return c.request(authz.ClinicalManager, "PATCH", patient, object{"monitoring_schedule": object{"blood_pressure": object{"per_day": 1, "day": []string{"monday"}}}})
		},
		"note": func() reply {
			return c.request(authz.Nurse, "POST", patient+"hold/", object{"reason": "travel", "until": until, "note": "In Rome."})
		},
		"from": func() reply {
			return c.request(authz.Nurse, "POST", patient+"hold/", object{"reason": "travel", "until": until, "from": "2020-01-01"})
		},
	} {
		answer := send().want(400, "validation_error")
		if errors, _ := answer.at("field_errors").(object); errors[path] == nil {
			t.Errorf("%s: %v", path, errors)
		}
	}
	c.request(authz.ClinicalManager, "PATCH", patient, object{"monitoring_schedule": object{"weight": object{"per_day": 2}}}).want(200)
	c.request(authz.Nurse, "POST", patient+"hold/", object{"reason": "travel", "until": until, "notes": "In Rome."}).want(201)
}
