package routes_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// A competing practice's billing blocks entries from its first to its last day, until a user gives a reason to override
// it.
func TestCompetingServices(t *testing.T) {
	c := newClinic(t)
	patient := c.billablePatient()
	c.logCall(patient, "2026-01-10T14:00:00Z", 40)
	c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "time"}).want(200)
	first, next := c.entryOf(patient, "99457"), c.entryOf(patient, "99458")
	record := func(dated string, until any) reply {
		t.Helper()
		return c.request(authz.Nurse, "POST", "/patients/"+patient+"/orders/", object{"kind": "competing_service", "dated": dated, "until": until, "text": "RTM at the hip clinic"})
	}
	record("2026-01-05", "2026-01-04").wantFields("until")
	c.request(authz.Provider, "POST", "/patients/"+patient+"/orders/", object{"kind": "rpm_order", "dated": "2026-01-05", "until": "2026-01-06"}).wantFields("until")
	review := func(entry string, reason any) reply {
		t.Helper()
		return c.move(entry, "review", object{"override_reason": reason})
	}

	record("2025-11-03", "2025-12-31").want(201).wantAt(object{"kind": "competing_service", "until": "2025-12-31"}) // ended before the month
	review(first, nil).want(200)
	record("2026-01-15", nil).want(201).wantAt(object{"until": nil}) // open-ended
	if r := c.move(first, "submit", nil).want(400, "invalid_state"); !strings.Contains(r.body, `"competing_service"`) {
		t.Errorf("submitted: %s", r.body)
	}
	if r := review(next, nil).want(400, "invalid_state"); !strings.Contains(r.body, `"warnings":["competing_service"]`) {
		t.Errorf("reviewed: %s", r.body)
	}
	warned := review(next, "They bill knees, and nothing of Medicare").want(200)
	if !strings.Contains(warned.body, `"competing_service"`) {
		t.Errorf("reviewed with a reason as %s", warned.body)
	}
	c.move(first, "return", object{"reason": "Ask them"}).want(200)
	record("2026-01-15", "2026-01-15").want(201) // one day, still in the month
	review(first, nil).want(400, "invalid_state")
	review(first, "They bill knees, and nothing of Medicare").want(200)
	c.move(first, "submit", nil).want(200)
	if r := c.move(next, "submit", nil).want(200); !strings.Contains(r.body, `"competing_service"`) {
		t.Errorf("submitted as %s", r.body)
	}
	if list := c.request(authz.DataMonitor, "GET", "/patients/"+patient+"/orders/?kind=competing_service", nil).want(200).results(); len(list) != 3 {
		t.Errorf("recorded are %v", list)
	}
}

// A claim that is being voided stays among the tasks until the void is complete.
func TestTasksOfVoids(t *testing.T) {
	c := newClinic(t)
	voiding, paid := c.submittedEntry(c.billablePatient(), "2026-01-13"), c.submittedEntry(c.billablePatient(), "2026-01-14")
	c.move(voiding, "request-void", nil).want(200)
	c.move(paid, "pay", object{"amount": 56, "payment_date": "2026-01-15", "reference": "EFT"}).want(200)
	c.move(paid, "request-void", nil).want(200)
	tasks := func() reply {
		t.Helper()
		return c.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/", nil).want(200)
	}
	now := tasks().wantAt(object{"void_requested": 1.0, "refund_due": 1.0})
	if !strings.Contains(now.body, `"entry_id":"`+voiding+`","task":"void_requested"`) || !strings.Contains(now.body, `"entry_id":"`+paid+`","task":"refund_due"`) ||
		!strings.Contains(now.body, `"repay_by":"2026-03-16"`) {
		t.Errorf("the tasks are %s", now.body)
	}
	c.move(voiding, "void", object{"reason": "The payer voided it"}).want(200)
	c.move(paid, "refund", object{"amount": 56, "date": "2026-01-15", "reference": "CHK"}).want(200)
	if last := tasks().wantAt(object{"void_requested": 0.0, "refund_due": 0.0}); !strings.Contains(last.body, `"items":[]`) {
		t.Errorf("the tasks are %s", last.body)
	}
}

// A competing service found after submission blocks the resubmission until a user gives a reason.
func TestCompetingServiceOfADeniedClaim(t *testing.T) {
	c := newClinic(t)
	patient := c.billablePatient()
	c.logCall(patient, "2026-01-10T14:00:00Z", 20)
	c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "time"}).want(200)
	entry := c.entryOf(patient, "99457")
	c.move(entry, "review", nil).want(200)
	c.move(entry, "submit", nil).want(200)
	c.request(authz.Nurse, "POST", "/patients/"+patient+"/orders/", object{"kind": "competing_service", "dated": "2026-01-01", "text": "RTM at the hip clinic"}).want(201)
	c.move(entry, "deny", object{"code": "CO-16", "description": "Incomplete"}).want(200)
	c.wantRefusal(entry, "resubmit", nil, "competing_service")
	c.move(entry, "resubmit", object{"override_reason": strings.Repeat("x", 501)}).wantFields("override_reason")
	sent := c.move(entry, "resubmit", object{"override_reason": "They bill hips, and nothing of Medicare"}).want(200)
	if sent.wantAt(object{"lifecycle_status": "submitted"}); !strings.Contains(sent.body, `"competing_service"`) {
		t.Errorf("sent again as %s", sent.body)
	}
	c.move(entry, "deny", object{"code": "CO-16", "description": "Incomplete"}).want(200)
	c.move(entry, "resubmit", nil).want(200)
	// The reason was about the hip clinic and does not cover a second competing service in the month.
	c.move(entry, "deny", object{"code": "CO-16", "description": "Incomplete"}).want(200)
	c.manualEntry(patient, "99457", "2026-01-11", 20)
	c.move(entry, "resubmit", nil).want(400, "duplicate_entry")
	again := c.move(entry, "resubmit", object{"override_reason": "The first was of another day"}).want(200)
	if again.wantAt(object{"lifecycle_status": "submitted"}); !strings.Contains(again.body, `"possible_duplicate"`) || !strings.Contains(again.body, `"competing_service"`) {
		t.Errorf("sent again as %s", again.body)
	}
}
