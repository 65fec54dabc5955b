package routes_test

import (
	"fmt"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The inbox holds what waits for its user: a message about an escalation waits until a user takes or closes it, and one about an alert
// never does, because the list of alerts has it. Both remain in the history.
func TestInboxWaiting(t *testing.T) {
	n := newNight(t, clock)
	manager, onCall := n.people[authz.ClinicalManager], vigiltest.User(t, n.app, authz.Nurse, vigiltest.Email("night@vigil.test"))
	n.register(onCall)
	n.request(authz.ClinicalManager, "PUT", "/on-call/", alwaysOnCall("UTC", onCall)).want(200)
	waiting := func(want int) {
		t.Helper()
		list := n.requestAs(manager, "GET", "/notifications/?waiting=true", nil).want(200)
		list.wantAt(object{"count": float64(want)})
		for _, one := range list.results() {
			if one["read"] != false || one["channel"] == "alerts" {
				t.Errorf("%v waits", one)
			}
		}
	}
	open := func(reason string) string {
		t.Helper()
		body := object{"patient_id": n.enroll(object{"primary_provider_id": n.people[authz.Provider].Number()}), "priority": "stat", "reason": reason}
		return fmt.Sprintf("/escalations/%v/", n.request(authz.MA, "POST", "/escalations/", body).want(201).at("id"))
	}
	first, second := open("SpO2 82 %."), open("204/124.")
	waiting(0)
	n.until(20)
	waiting(2) // both are overdue
	n.requestAs(onCall, "PATCH", first, object{"status": "in_progress", "assigned_to": onCall.Email()}).want(200)
	waiting(1) // taken by another user
	n.requestAs(manager, "PATCH", second, object{"status": "in_progress", "assigned_to": manager.Email()}).want(200)
	waiting(1) // taken by the user: until it is read or closed
	n.requestAs(manager, "PATCH", second, object{"status": "resolved", "resolution_notes": "Ambulance."}).want(200)
	waiting(0)
	n.requestAs(manager, "GET", "/notifications/", nil).wantAt(object{"count": 2.0, "unread_count": 2.0})
	n.requestAs(manager, "GET", "/notifications/?waiting=maybe", nil).wantFields("waiting")
}
