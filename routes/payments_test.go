package routes_test

import (
	"strings"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
)

// submittedEntry creates a 99457 entry manually and advances it to submitted.
func (c *clinic) submittedEntry(patient, day string) string {
	c.t.Helper()
	c.request(authz.Provider, "POST", "/time-entries/", object{
		"patient_id": patient, "category": "interpretation", "started_at": day + "T14:00:00Z", "duration_seconds": 1800, "notes": "Read",
	}).want(201)
	id := c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{
		"patient_id": patient, "cpt_code": "99091", "service_date": day, "duration_minutes": 30,
	}).want(201).text("id")
	c.request(authz.DataMonitor, "POST", "/billing/entries/"+id+"/review/", nil).want(200)
	c.request(authz.DataMonitor, "POST", "/billing/entries/"+id+"/submit/", nil).want(200)
	return id
}

func (c *clinic) billablePatient() string {
	c.t.Helper()
	id := c.enroll(object{"icd10_codes": []string{"I10"}, "primary_provider_id": c.people[authz.Provider].Number()})
	c.consent(id)
	return id
}

func (c *clinic) move(id, name string, body any) reply {
	c.t.Helper()
	return c.request(authz.DataMonitor, "POST", "/billing/entries/"+id+"/"+name+"/", body)
}

func (c *clinic) importFees(csv string) reply {
	c.t.Helper()
	return c.request(authz.Admin, "POST", "/billing/fee-schedule/import/", csv, "Content-Type", "text/csv")
}

const feeHeader = "cpt_code,locality,effective_date,charge,expected,source\n"

// A submitted entry is voided once its payer confirms; a paid one is refunded, in any number of parts.
func TestVoidsAndRefunds(t *testing.T) {
	c := newClinic(t)
	patient := c.billablePatient()
	sent := c.submittedEntry(patient, "2026-01-14")
	c.move(sent, "request-void", object{"reason": strings.Repeat("x", 501)}).wantFields("reason")
	c.move(sent, "refund", object{"amount": 1, "date": "2026-01-15", "reference": "R"}).want(400, "invalid_transition")
	c.move(sent, "request-void", object{"reason": "The 16th day was withdrawn"}).want(200).wantAt(object{
		"lifecycle_status": "void_requested", "status": "void_requested", "claim_frequency_code": "8", "refund": nil, "repay_by": nil, "open": 56.0,
	})
	c.move(sent, "request-void", object{"reason": "Again"}).want(400, "invalid_transition")
	c.move(sent, "void", object{"reason": "The payer voided it"}).want(200).wantAt(object{"lifecycle_status": "voided"})

	paid := c.submittedEntry(patient, "2026-01-13")
	c.move(paid, "pay", object{"amount": 40.5, "payment_date": "2026-01-15", "reference": "EFT-1"}).want(200)
	c.move(paid, "request-void", object{"reason": "The 16th day was withdrawn"}).want(200).wantAt(object{
		"lifecycle_status": "refund_due", "paid_total": 40.5, "repay_by": "2026-03-16", "refund": nil,
	})
	c.move(paid, "void", object{"reason": "Gone"}).want(400, "invalid_transition")
	for _, wrong := range []object{
		{"amount": 0, "date": "2026-01-15", "reference": "R"}, {"amount": 40.51, "date": "2026-01-15", "reference": "R"}, {"amount": -1, "date": "2026-01-15", "reference": "R"},
	} {
		c.move(paid, "refund", wrong).wantFields("amount")
	}
	c.move(paid, "refund", object{"amount": 1, "date": "2026-01-16", "reference": "R"}).wantFields("date")
	c.move(paid, "refund", object{"amount": 1}).wantFields("date", "reference")
	c.move(paid, "refund", object{"amount": 30, "date": "2026-01-15", "reference": "CHK-1"}).want(200).wantAt(object{
		"lifecycle_status": "refund_due", "refund.amount": 30.0, "refund.reference": "CHK-1",
	})
	done := c.move(paid, "refund", object{"amount": 10.5, "date": "2026-01-15", "reference": "CHK-2"}).want(200)
	done.wantAt(object{"lifecycle_status": "refunded", "refund.amount": 40.5, "refund.reference": "CHK-2", "paid_total": 40.5})
	if list := done.at("payments").([]any); len(list) != 3 || list[2].(object)["kind"] != "refund" || list[2].(object)["amount"] != 10.5 {
		t.Errorf("the payments are %v", list)
	}
	history := done.at("history").([]any)
	if last := history[len(history)-1].(object); last["action"] != "refund" || last["from"] != "refund_due" || last["to"] != "refunded" || last["detail"] != "10.50 CHK-2" {
		t.Errorf("the history ends with %v", last)
	}
	c.move(paid, "refund", object{"amount": 1, "date": "2026-01-15", "reference": "R"}).want(400, "invalid_transition")
	// The service may be billed again manually, and a voided entry is no duplicate.
	again := c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{"patient_id": patient, "cpt_code": "99091", "service_date": "2026-01-13", "duration_minutes": 30}).want(201)
	if strings.Contains(again.body, "possible_duplicate") {
		t.Errorf("a duplicate of the voided entry: %s", again.body)
	}
	var notified int
	if err := c.app.DB().NewQuery("SELECT COUNT(*) FROM announcements WHERE kind = 'refund_due'").Row(&notified); err != nil || notified != 1 {
		t.Errorf("billing was notified %d times (%v)", notified, err)
	}
	for _, name := range []string{"request-void", "refund", "adjust"} {
		c.wantRoles("POST", "/billing/entries/"+paid+"/"+name+"/", object{}, authz.Admin, authz.DataMonitor)
	}
	entry, err := collections.FindBillingEntry(c.app, paid)
	if err != nil {
		t.Fatal(err)
	}
	trail, err := billing.EntryHistory(c.app, entry)
	if err != nil {
		t.Fatal(err)
	}
	if change := trail[len(trail)-1].Changes["refunded"]; change.Old != "30.00" || change.New != "40.50" {
		t.Errorf("the audit trail has %v", change)
	}
}

// Payments may reach the charge, and exceed it only with a reason; a balance is adjusted with one.
func TestPaymentsAddUp(t *testing.T) {
	c := newClinic(t)
	c.importFees(feeHeader + "99091,,2026-01-01,100.00,,Practice\n").want(200)
	id := c.submittedEntry(c.billablePatient(), "2026-01-14")
	pay := func(amount float64, more object) reply {
		body := object{"amount": amount, "payment_date": "2026-01-15", "reference": "EFT-1"}
		for k, v := range more {
			body[k] = v
		}
		return c.move(id, "pay", body)
	}
	pay(100.01, nil).wantFields("overpayment_reason")
	pay(56, nil).want(200).wantAt(object{"charge": 100.0, "expected": 56.0, "amount": 56.0, "paid_total": 56.0, "open": 44.0, "lifecycle_status": "paid"})
	c.move(id, "adjust", object{"amount": 44.01, "group": "CO", "carc": "45", "reason": "Contract"}).wantFields("amount")
	c.move(id, "adjust", object{"amount": 1, "group": "XX", "carc": "?", "rarc": []string{"n"}}).wantFields("group", "carc", "rarc.0", "reason")
	c.move(id, "adjust", object{"amount": 30, "group": "CO", "carc": "45", "rarc": []string{"N130"}, "reason": "Contract"}).want(200).wantAt(object{"adjusted": 30.0, "open": 14.0})
	c.move(id, "adjust", object{"amount": 14, "group": "PR", "carc": "2", "reason": "Coinsurance"}).want(200).wantAt(object{"patient_responsibility": 14.0, "open": 0.0})
	pay(12, object{"payer": "secondary"}).want(200).wantAt(object{"paid_total": 68.0, "patient_responsibility": 2.0, "open": 0.0})
	pay(2, object{"payer": "patient", "reference": "CASH"}).want(200).wantAt(object{"paid_total": 70.0, "patient_responsibility": 0.0, "payment.amount": 70.0, "payment.reference": "CASH"})
	c.move(id, "adjust", object{"amount": -31, "group": "CO", "carc": "45", "rarc": []string{"N130"}, "reason": "Too much"}).wantFields("amount")
	c.move(id, "adjust", object{"amount": -30, "group": "CO", "carc": "45", "rarc": []string{"N130"}, "reason": "Wrong"}).want(200).wantAt(object{"adjusted": 0.0, "open": 30.0})
	pay(30.01, nil).wantFields("overpayment_reason")
	pay(30, nil).want(200).wantAt(object{"paid_total": 100.0, "open": 0.0})
	last := pay(5, object{"overpayment_reason": "Paid twice"}).want(200)
	last.wantAt(object{"paid_total": 105.0, "open": -5.0})
	report := c.request(authz.Admin, "GET", "/billing/reports/revenue/?date_from=2026-01-01&date_to=2026-01-15", nil).want(200)
	report.wantAt(object{"billed": 100.0, "expected": 56.0, "paid": 105.0, "adjusted": 0.0, "patient_responsibility": 0.0, "open": -5.0, "refunded": 0.0, "total_revenue": 56.0, "collected_revenue": 105.0})
	c.request(authz.Admin, "GET", "/billing/reports/executive-dashboard/?refresh=true", nil).want(200).wantAt(object{"billed": 100.0, "open": -5.0, "left_out.voided.claims": 0.0})
	c.move(id, "request-void", object{"reason": "Wrong"}).want(200)
	c.move(id, "refund", object{"amount": 105, "date": "2026-01-15", "reference": "CHK"}).want(200).wantAt(object{"lifecycle_status": "refunded"})
	c.request(authz.Admin, "GET", "/billing/reports/revenue/?date_from=2026-01-01&date_to=2026-01-15", nil).want(200).wantAt(object{
		"billed": 0.0, "paid": 0.0, "open": 0.0, "refunded": 105.0, "left_out.refunded.claims": 1.0, "left_out.refunded.billed": 100.0, "left_out.refunded.refunded": 105.0,
	})
	c.request(authz.Admin, "GET", "/billing/reports/claims-status/?date_from=2026-01-01&date_to=2026-01-15", nil).want(200)
}

// Errors in a fee schedule are reported by row and column, and nothing is imported; importing the same schedule again
// changes nothing.
func TestFeeSchedule(t *testing.T) {
	c := newClinic(t)
	c.request(authz.Admin, "POST", "/billing/fee-schedule/import/", feeHeader).want(415)
	c.importFees("").wantFields("row 1")
	c.importFees("cpt_code,locality\n").wantFields("row 1")
	c.importFees(feeHeader).wantFields("row 2")
	c.importFees(feeHeader + "99454,,2026-01-01,95,52.11\n").wantFields("row 2")
	c.importFees(feeHeader+"99454,,2026-01-01,95,52.11,CMS\n"+"12345,?,2026-02-30,9.999,-1,CMS\n"+"99454,,2026-01-01,,,CMS\n").
		wantFields("row 3.cpt_code", "row 3.locality", "row 3.effective_date", "row 3.charge", "row 3.expected", "row 4.cpt_code", "row 4.charge")
	if n := len(c.request(authz.Admin, "GET", "/billing/fee-schedule/", nil).results()); n != 0 {
		t.Fatalf("%d rows of lists that were refused", n)
	}
	list := feeHeader + "99454,,2026-01-01,95,52.11,CMS\n" + "99454,05,2026-02-01,120.5,,Practice\n" + "99457,,2026-01-01,,51.77,CMS\n"
	c.importFees(list).want(200).wantAt(object{"rows": 3.0, "created": 3.0, "replaced": 0.0, "unchanged": 0.0})
	c.importFees(list).want(200).wantAt(object{"created": 0.0, "replaced": 0.0, "unchanged": 3.0})
	next := strings.ReplaceAll(list, "52.11", "52.12") + "99454,,2026-01-10,,60,CMS\n"
	preview := c.request(authz.Admin, "POST", "/billing/fee-schedule/import/?preview=true", next, "Content-Type", "text/csv").want(200).wantAt(object{"created": 1.0, "replaced": 1.0, "unchanged": 2.0})
	for i, row := range preview.at("changes").([]any) {
		wantMembers(t, "change", row.(object), []object{{"charge_before": 95.0, "expected_before": 52.11, "expected": 52.12}, {"effective_date": "2026-01-10", "expected_before": 52.11, "expected": 60.0, "charge": nil}}[i])
	}
	c.importFees(list).want(200).wantAt(object{"unchanged": 3.0}) // the preview stored nothing
	c.importFees(strings.ReplaceAll(list, "52.11", "52.12")).want(200).wantAt(object{"created": 0.0, "replaced": 1.0, "unchanged": 2.0})
	rows := c.request(authz.DataMonitor, "GET", "/billing/fee-schedule/", nil).results()
	if len(rows) != 3 || rows[0]["expected"] != 52.12 || rows[1]["charge"] != 120.5 || rows[1]["expected"] != nil || rows[1]["locality"] != "05" || rows[2]["charge"] != nil {
		t.Errorf("the rows are %v", rows)
	}
	var traces int
	err := c.app.DB().NewQuery("SELECT COUNT(*) FROM audit_log WHERE event = 'settings.update' AND resource_type = 'Fee'").Row(&traces)
	if err != nil || traces != 4 {
		t.Errorf("%d traces (%v)", traces, err)
	}
	c.wantRoles("GET", "/billing/fee-schedule/", nil, authz.Admin, authz.DataMonitor)
}

// The expected amount is the payer's rate, else the schedule's, else the catalog's; the charge is the schedule's, else
// the expected amount. Both are fixed when the entry is created.
func TestChargeAndExpected(t *testing.T) {
	c := newClinic(t)
	patient := c.billablePatient()
	payer := c.request(authz.DataMonitor, "POST", "/billing/payers/", object{"name": "Acme", "payer_id": "AC"}).want(201).object()
	make := func(day string) reply {
		return c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{"patient_id": patient, "cpt_code": "99091", "service_date": day, "duration_minutes": 30}).want(201)
	}
	first := make("2026-01-12")
	first.wantAt(object{"charge": 56.0, "expected": 56.0, "amount": 56.0})
	c.importFees(feeHeader + "99091,,2026-01-13,110,55.45,CMS\n" + "99091,,2025-01-01,90,,CMS\n" + "99091,07,2026-01-01,300,99,Elsewhere\n").want(200)
	make("2026-01-12").wantAt(object{"charge": 90.0, "expected": 56.0})
	make("2026-01-13").wantAt(object{"charge": 110.0, "expected": 55.45, "amount": 55.45})
	c.request(authz.Admin, "POST", "/billing/payer-rates/", object{"payer_id": payer["id"], "cpt_code": "99091", "rate": 70, "effective_date": "2026-01-14"}).want(201)
	if _, err := c.app.NonconcurrentDB().Update("patients", dbx.Params{"insurance_payer": payer["id"]}, dbx.HashExp{"id": patient}).Execute(); err != nil {
		t.Fatal(err)
	}
	make("2026-01-13").wantAt(object{"charge": 110.0, "expected": 55.45, "payer": "Acme"})
	make("2026-01-14").wantAt(object{"charge": 110.0, "expected": 70.0})
	c.request(authz.DataMonitor, "GET", "/billing/entries/"+first.text("id")+"/", nil).want(200).wantAt(object{"charge": 56.0, "expected": 56.0})
	if entry, err := collections.FindBillingEntry(c.app, first.text("id")); err != nil || entry.OpenCents() != 5600 {
		t.Errorf("open is %d (%v)", entry.OpenCents(), err)
	}
}
