package routes_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// Whoever heard of a competing service is one of those who may record it: nobody learns the name of a patient who signs in at the portal, or of
// somebody else whom the clinical roles cannot look up, by naming a number.
func TestAuthorsOfCompetingServices(t *testing.T) {
	c := newClinic(t)
	patient := c.enrol(nil)
	for _, role := range authz.Roles {
		answer := c.ask(authz.Nurse, "POST", "/patients/"+patient+"/orders/", object{
			"kind": "competing_service", "dated": "2026-01-05", "author_id": c.people[role].Number(), "text": "RTM at the hip clinic",
		})
		if authz.Reach(role, authz.RecordOrders) == authz.All {
			answer.want(201).wantAt(object{"author_id": float64(c.people[role].Number())})
			continue
		}
		answer.wantFields("author_id")
	}
}
