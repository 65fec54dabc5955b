package routes_test

import "testing"

// How readings are delivered is shown before and after the EMR's CapabilityStatement is read, and not without an EMR.
func TestEMRDeliveryPlan(t *testing.T) {
	c := newEMRClinicOf(t, 0, nil)
	c.request("admin", "GET", "/emr/auth/status/", nil).want(200).wantAt(object{
		"delivery.way": "observation", "delivery.reason": "no_statement", "delivery.statement_read_at": nil, "delivery.conditional_create": false,
	})
	read := object{"delivery.way": "observation", "delivery.reason": "create_offered", "delivery.statement_read_at": "2026-01-15T13:45:00Z"}
	c.request("admin", "POST", "/emr/test/connection/", nil).want(200).wantAt(read)
	c.request("admin", "GET", "/emr/auth/status/", nil).want(200).wantAt(read)
	newClinic(t).request("admin", "GET", "/emr/auth/status/", nil).want(200).wantAt(object{"delivery": nil})
}
