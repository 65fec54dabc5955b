package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// tasks returns the report of open tasks.
func (c *clinic) tasks() reply {
	c.t.Helper()
	return c.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/", nil).want(200)
}

// A claim that was paid twice stays paid. The excess is a task until it is refunded, in parts, to its payer, and never
// more than that payer paid.
func TestCreditIsRefunded(t *testing.T) {
	c := newClinic(t)
	id := c.submittedEntry(c.billablePatient(), "2026-01-14") // 56.00
	refund := func(more object) reply {
		body := object{"amount": 1, "date": "2026-01-15", "reference": "CHK-1"}
		for k, v := range more {
			body[k] = v
		}
		return c.move(id, "refund", body)
	}
	refund(nil).want(400).wantAt(object{"code": "invalid_transition"})
	c.move(id, "pay", object{"amount": 56, "payment_date": "2026-01-15", "reference": "EFT-1"}).want(200)
	refund(nil).want(400).wantAt(object{"code": "invalid_transition"})
	c.tasks().wantAt(object{"credits": 0.0})
	c.move(id, "pay", object{"amount": 20, "payment_date": "2026-01-15", "reference": "CASH", "payer": "patient", "overpayment_reason": "Paid at the desk"}).want(200)
	c.move(id, "pay", object{"amount": 56, "payment_date": "2026-01-15", "reference": "EFT-2", "overpayment_reason": "Paid twice"}).want(200).
		wantAt(object{"paid_total": 132.0, "open": -76.0, "lifecycle_status": "paid"})
	if now := c.tasks().wantAt(object{"credits": 1.0, "refund_due": 0.0}); !strings.Contains(now.body, `"entry_id":"`+id+`","task":"credit"`) {
		t.Errorf("the tasks are %s", now.body)
	}

	refund(object{"amount": 76.01}).wantFields("amount")
	refund(object{"amount": 0}).wantFields("amount")
	refund(object{"amount": 21, "payer": "patient"}).wantFields("payer")
	refund(object{"payer": "secondary"}).wantFields("payer")
	refund(object{"payer": "nobody"}).wantFields("payer")
	refund(object{"amount": 20, "payer": "patient"}).want(200).wantAt(object{"paid_total": 112.0, "open": -56.0, "lifecycle_status": "paid", "refund": nil})
	c.tasks().wantAt(object{"credits": 1.0})
	whole := refund(object{"amount": 56, "reference": "CHK-2"}).want(200)
	whole.wantAt(object{"paid_total": 56.0, "open": 0.0, "lifecycle_status": "paid", "payment.amount": 56.0})
	if rows := whole.at("payments").([]any); len(rows) != 5 {
		t.Errorf("its payments are %v", rows)
	} else if last := rows[4].(object); fmt.Sprint(last["kind"], last["amount"], last["payer"], last["source"], last["reference"]) != "reversal-56primaryhandCHK-2" {
		t.Errorf("the last of its payments is %v", last)
	}
	history := whole.at("history").([]any)
	if last := history[len(history)-1].(object); last["action"] != "refund" || last["from"] != "paid" || last["to"] != "paid" || last["detail"] != "56.00 CHK-2" {
		t.Errorf("the history ends with %v", last)
	}
	refund(nil).want(400).wantAt(object{"code": "invalid_transition"})
	if now := c.tasks().wantAt(object{"credits": 0.0}); !strings.Contains(now.body, `"items":[]`) {
		t.Errorf("the tasks are %s", now.body)
	}
	between := "?date_from=2026-01-01&date_to=2026-01-15"
	c.request(authz.Admin, "GET", "/billing/reports/revenue/"+between, nil).want(200).wantAt(object{"billed": 56.0, "paid": 56.0, "open": 0.0, "refunded": 0.0})

	// After a later void, only the rest is owed.
	c.move(id, "request-void", object{"reason": "Wrong"}).want(200)
	refund(object{"amount": 56.01}).wantFields("amount")
	refund(object{"amount": 56, "reference": "CHK-3"}).want(200).wantAt(object{"lifecycle_status": "refunded", "refund.amount": 56.0})
	c.wantRoles("POST", "/billing/entries/"+id+"/refund/", object{}, authz.Admin, authz.DataMonitor)
}

// A denied claim is replaced (frequency code 7) and paid, and then the original is paid too, without a reversal: the
// credit is reported.
func TestReplacementAndOriginalPaid(t *testing.T) {
	c := newClinic(t)
	id := c.submittedEntry(c.billablePatient(), "2026-01-14")
	c.move(id, "deny", object{"code": "CO-16", "description": "Lacks information"}).want(200)
	c.move(id, "resubmit", object{"corrections": object{}}).want(200).wantAt(object{"claim_frequency_code": "7", "lifecycle_status": "submitted"})
	c.move(id, "pay", object{"amount": 50, "payment_date": "2026-01-15", "reference": "EFT-7"}).want(200)
	c.move(id, "adjust", object{"amount": 6, "group": "CO", "carc": "45", "reason": "Contract"}).want(200).wantAt(object{"open": 0.0})
	c.tasks().wantAt(object{"credits": 0.0})
	c.move(id, "pay", object{"amount": 50, "payment_date": "2026-01-15", "reference": "EFT-1", "overpayment_reason": "The first claim was paid, too"}).want(200).
		wantAt(object{"open": -50.0})
	if now := c.tasks().wantAt(object{"credits": 1.0}); !strings.Contains(now.body, `"task":"credit"`) {
		t.Errorf("the tasks are %s", now.body)
	}
	c.move(id, "adjust", object{"amount": -6, "group": "CO", "carc": "45", "reason": "Counted twice"}).want(200).wantAt(object{"open": -44.0})
	c.move(id, "refund", object{"amount": 50, "date": "2026-01-15", "reference": "CHK"}).wantFields("amount")
	c.move(id, "refund", object{"amount": 44, "date": "2026-01-15", "reference": "CHK"}).want(200).wantAt(object{"open": 0.0, "paid_total": 56.0})
	c.tasks().wantAt(object{"credits": 0.0})
}
