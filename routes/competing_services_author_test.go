package routes_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// The recorded author of a competing service must be a user who may record one: a caller cannot learn the name of a
// portal patient, or of a user hidden from clinical roles, by sending a number.
func TestAuthorsOfCompetingServices(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(nil)
	for _, role := range authz.Roles {
		answer := c.request(authz.Nurse, "POST", "/patients/"+patient+"/orders/", object{
			"kind": "competing_service", "dated": "2026-01-05", "author_id": c.people[role].Number(), "text": "RTM at the hip clinic",
		})
		if authz.ReachOf(role, authz.RecordOrders) == authz.All {
			answer.want(201).wantAt(object{"author_id": float64(c.people[role].Number())})
			continue
		}
		answer.wantFields("author_id")
	}
}
