package routes_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/x12"
)

// wantDeposits checks each stored payment: what was posted and what was not, less the provider adjustments, is what the bank has.
func (s *sentClaim) wantDeposits(count int) []object {
	s.t.Helper()
	list := s.request(authz.DataMonitor, "GET", "/billing/remittances/", nil).want(200).results()
	if len(list) != count {
		s.t.Fatalf("%d payments, want %d", len(list), count)
	}
	for _, r := range list {
		sum := r["posted"].(float64) + r["unposted"].(float64)
		for _, a := range r["provider_adjustments"].([]any) {
			sum -= a.(object)["amount"].(float64)
		}
		if math.Abs(sum-r["payment_amount"].(float64)) > 0.001 {
			s.t.Errorf("%v does not add up: %v", sum, r)
		}
	}
	return list
}

// What a payment leaves over is a worklist until a person closes it, and no money moves.
func TestRemittanceWorklist(t *testing.T) {
	s := newSentClaim(t, 1)
	tasks := func(open, balances float64) {
		t.Helper()
		s.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/", nil).want(200).wantAt(object{"unposted_remittances": open, "open_balances": balances})
	}
	tasks(0, 0)
	claim := append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)
	file := append(claim, "CLP*UNKNOWN1*1*50*50**12*ICN7*11*1", "PLB*1234567893*20261231*WO:OLD-7*20*L6:INT*-1.5")
	s.remit(5150, file...).wantAt(object{"applied": 1.0, "unmatched": 3.0})
	list := s.wantDeposits(1)
	r := list[0]
	if fmt.Sprintf("%v %v %v %v %v %v %v", r["payer"], r["trace_number"], r["payment_date"], r["method"], r["posted"], r["unposted"], r["status"]) != "ACME HEALTH EFT1 2026-01-15 ACH 20 50 open" {
		t.Errorf("stored %v", r)
	}
	items := r["items"].([]any)
	for i, want := range []string{"1 unknown_claim 50", "2 PLB WO 20", "3 PLB L6 -1.5"} {
		if item := items[i].(object); fmt.Sprint(item["ordinal"], " ", item["reason"], " ", item["amount"]) != want || item["reason_text"] == "" || item["closed_at"] != nil {
			t.Errorf("item %v, want %s", item, want)
		}
	}
	tasks(1, 0)
	path := fmt.Sprint("/billing/remittances/", r["id"], "/")
	s.request(authz.DataMonitor, "POST", path+"items/1/close/", object{}).wantFields("notes")
	notes := object{"notes": "Recovered for the claim of March"}
	s.request(authz.DataMonitor, "POST", path+"items/0/close/", notes).want(404)
	s.request(authz.DataMonitor, "POST", path+"items/4/close/", notes).want(404)
	s.request(authz.Nurse, "POST", path+"close/", notes).want(403)
	s.request(authz.DataMonitor, "POST", path+"items/1/close/", notes).want(200).wantAt(object{"status": "open", "posted": 20.0, "unposted": 50.0})
	s.request(authz.DataMonitor, "POST", path+"items/1/close/", notes).want(400, "invalid_state")
	closed := s.request(authz.Admin, "POST", path+"close/", notes).want(200)
	closed.wantAt(object{"status": "closed"})
	if line := closed.at("lines").([]any)[0].(object); line["entry_id"] != s.entries[0] || line["amount"] != 20.0 {
		t.Errorf("posted %v", line)
	}
	s.request(authz.Admin, "POST", path+"close/", notes).want(400, "invalid_state")
	tasks(0, 0)
	s.wantEntry(0, object{"paid_total": 20.0, "open": 0.0})

	// The same payment in another envelope is stored once; the same decision with another payment waits; a check of nothing is listed.
	s.upload(remittances("OTHER", paymentSegments("EFT1", 5150, file...))).want(200).wantAt(object{"applied": 0.0, "repeated": false})
	s.wantDeposits(1)
	tasks(0, 0)
	s.wantReasons(s.upload(s.remittance("EFT1", 2000, claim...)).want(200), "already_posted 20")
	s.remit(0)
	s.wantDeposits(3)
	tasks(1, 0)
}

// Payments that are open drop out of no list: a paid claim with an open amount is a task, and the ages of what is open add up to the revenue report's
// open amount.
func TestOpenBalancesAreListed(t *testing.T) {
	s := newSentClaim(t, 2)
	first := s.claim.Lines[0].Charge
	s.remit(1000, append([]string{fmt.Sprintf("CLP*%s*1*%s*10", s.claim.ControlNumber, usd(first-500)), "CAS*CO*45*" + usd(first-1500)},
		fmt.Sprintf("SVC*HC:99457*%s*%s", usd(first-500), usd(first-500)), "REF*6R*"+s.claim.Lines[0].ControlNumber)...)
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 10.0, "open": 5.0})
	s.wantEntry(1, object{"lifecycle_status": "submitted"})
	tasks := s.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/", nil).want(200)
	tasks.wantAt(object{"open_balances": 1.0})
	if item := tasks.at("items").([]any)[0].(object); item["task"] != "open_balance" || item["entry_id"] != s.entries[0] {
		t.Errorf("the task is %v", item)
	}
	aging := s.request(authz.Admin, "GET", "/billing/reports/aging/", nil).want(200)
	revenue := s.request(authz.Admin, "GET", "/billing/reports/revenue/?date_from=2025-12-01&date_to=2026-01-31", nil).want(200)
	sum := 0.0
	for _, b := range aging.at("buckets").([]any) {
		sum += b.(object)["open"].(float64)
	}
	revenue.wantAt(object{"open_submitted": revenue.at("open")})
	if total := aging.at("total_open"); total != revenue.at("open") || math.Abs(sum-total.(float64)) > 0.001 || total == 0.0 {
		t.Errorf("open are %v by age, %v by bucket, %v in the revenue report", total, sum, revenue.at("open"))
	}
}

// Each payment of a file is its own: several in one interchange, one twice, and one with adjustments that exceed it.
func TestSeveralPaymentsInAFile(t *testing.T) {
	s := newSentClaim(t, 1)
	claim := append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)
	one, debt := paymentSegments("E1", 2000, claim...), paymentSegments("E2", 0, "CLP*UNKNOWN1*1*50*50**12*ICN7*11*1", "PLB*1234567893*20261231*WO:OLD*80")
	s.wantReasons(s.upload(remittances("JOINED", one, debt, one)).want(200).wantAt(object{"applied": 1.0}), "unknown_claim 50", "PLB WO 80", "debt_not_carried 30")
	s.wantDeposits(2)
	s.wantEntry(0, object{"paid_total": 20.0})
	s.upload(s.remittance("E3", 2001, "CLP*UNKNOWN2*1*20*20**12*ICN8*11*1")).want(400, "invalid_x12").wantAt(object{"segment": "BPR", "position": 2.0})
	s.wantDeposits(2)
}

// A file that corrects a claim which could not be read is the same payment: what waited is posted, and the payment is on record once.
func TestCorrectedFile(t *testing.T) {
	s := newSentClaim(t, 1)
	claim := append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)
	other := []string{"CLP*NOBODY*1*10*10**12*ICN9*11*1"}
	for _, c := range []struct{ from, to, want string }{
		{"CAS*CO*", "CAS*XX*", "[unreadable 20 unknown_claim 10]"}, {"*" + usd(s.claim.Charge) + "*20.00", "*" + usd(s.claim.Charge+100) + "*20.00", "[unbalanced 20 unknown_claim 10]"}, {"", "", "[unknown_claim 10]"}, {"", "", "[unknown_claim 10]"},
	} {
		s.count++
		segments := strings.Split(strings.Replace(strings.Join(append(append([]string{}, claim...), other...), "~"), c.from, c.to, 1), "~")
		answer := s.upload(remittances(fmt.Sprint("E", s.count), paymentSegments("EFT1", 3000, segments...))).want(200)
		if got := fmt.Sprint(s.reasons(answer)); got != c.want {
			t.Errorf("waits for %s, want %s", got, c.want)
		}
		rows := s.request(authz.Admin, "GET", "/billing/remittances/", nil).want(200).results()
		if len(rows) != 1 || rows[0]["payment_amount"] != 30.0 || rows[0]["status"] != "open" {
			t.Fatalf("on record are %v", rows)
		}
	}
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0, "open": 0.0})
}

// Payers number payments without money alike, so another file of the number corrects nothing: what waits of the first stays on the list.
func TestOtherPaymentOfTheSameNumber(t *testing.T) {
	s := newSentClaim(t, 1)
	denied := append([]string{s.clp("4", 0)}, s.svc(0, 0, "CAS*XX*50*"+usd(s.claim.Charge))...)
	for i, c := range []struct {
		trace    string
		total    x12.Cents
		segments []string
	}{
		{"0", 0, denied},
		{"0", 0, []string{"CLP*NOBODY*4*10*0**12*ICN9*11*1", "CAS*CO*50*10"}},
		{"EFT1", 2000, strings.Split(strings.ReplaceAll(strings.Join(append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*XX*45*1")...), "~"), "ICN1", "ICN2"), "~")},
		{"EFT1", 2000, []string{"CLP*NOBODY*1*20*20**12*ICN8*11*1"}},
	} {
		s.upload(remittances(fmt.Sprint("N", i), paymentSegments(c.trace, c.total, c.segments...))).want(200)
		if rows := s.wantDeposits(i + 1); rows[0]["status"] != "open" {
			t.Errorf("payment %d is %v", i, rows[0])
		}
	}
	unreadable := 0
	for _, row := range s.wantDeposits(4) {
		for _, item := range s.request(authz.Admin, "GET", fmt.Sprint("/billing/remittances/", row["id"], "/"), nil).want(200).at("items").([]any) {
			if item.(object)["reason"] == "unreadable" && item.(object)["closed_at"] == nil {
				unreadable++
			}
		}
	}
	if unreadable != 2 {
		t.Errorf("%d unreadable claims wait, want 2", unreadable)
	}
}

// A corrected file that states a posted claim otherwise, and a correction with an unreadable reversal, add no money that did not come.
func TestCorrectedFileAddsNoMoneyTwice(t *testing.T) {
	h := newClaimsClinic(t)
	ids := []string{h.insured("Ada", 20, nil), h.insured("Bea", 20, nil)}
	byCode := h.reviewed()
	a, b := byCode[ids[0]+" 99457"], byCode[ids[1]+" 99457"]
	_, file := h.send(a, b)
	s := &sentClaim{claimsClinic: h, entries: []string{a, b}}
	claim := func(entry string, paid x12.Cents, group string) []string {
		for _, c := range file.Claims {
			if c.ControlNumber == h.claimOf(entry, file) {
				s.claim = c
			}
		}
		return append([]string{s.clp("1", paid)}, s.svc(0, paid, "CAS*"+group+"*45*"+usd(s.claim.Charge-paid))...)
	}
	s.wantReasons(s.upload(remittances("C1", paymentSegments("EFT1", 4000, append(claim(a, 2000, "CO"), claim(b, 2000, "XX")...)...))).want(200), "unreadable 20")
	answer := s.upload(remittances("C2", paymentSegments("EFT1", 4000, append(claim(a, 2500, "CO"), claim(b, 1500, "CO")...)...))).want(200)
	s.wantReasons(answer, "already_posted 25", "total_differs -20")
	s.wantEntry(0, object{"paid_total": 20.0})
	s.wantEntry(1, object{"paid_total": 15.0})
	s.wantDeposits(1)

	for i, damage := range []func([]string){
		func(r []string) { r[1] = strings.Replace(r[1], "SVC*HC:", "SVC*XX:", 1); r[2] = "DTM*472*2026XXXX" },
		func(r []string) { r[0] = strings.Replace(r[0], "*22*", "*99*", 1) },
		func(r []string) { r[0] = strings.Replace(r[0], "*22*", "**", 1) },
		func(r []string) { r[0] = strings.Replace(r[0], "*22*", "*1*", 1) },
		func(r []string) { r[0] = "CLP**22*" + strings.SplitN(r[0], "*22*", 2)[1] },
	} {
		reversal := claim(a, 2000, "CO")
		for n, segment := range reversal {
			for _, amount := range []string{usd(s.claim.Charge), "20.00", usd(s.claim.Charge - 2000)} {
				segment = strings.Replace(segment, "*"+amount, "*-"+amount, 1)
			}
			reversal[n] = segment
		}
		reversal[0] = strings.Replace(reversal[0], "*1*", "*22*", 1)
		damage(reversal)
		answer = s.upload(remittances(fmt.Sprint("D", i), paymentSegments(fmt.Sprint("DAMAGED", i), 1000, append(reversal, claim(a, 3000, "CO")...)...))).want(200)
		if got := fmt.Sprint(s.reasons(answer)); !strings.Contains(got, "reversal_not_posted 30") {
			t.Errorf("damage %d waits for %s", i, got)
		}
		s.wantEntry(0, object{"paid_total": 20.0})
	}

	reversal := claim(a, 2000, "XX")
	reversal[0] = strings.Replace(s.clp("22", -2000), usd(s.claim.Charge), usd(-s.claim.Charge), 1)
	answer = s.upload(remittances("C3", paymentSegments("EFT2", 1000, append(reversal, claim(a, 3000, "CO")...)...))).want(200)
	s.wantReasons(answer, "unreadable -20", "reversal_not_posted 30")
	s.wantEntry(0, object{"paid_total": 20.0})
	s.wantDeposits(7)
}

// A file that a later one corrected stays known: in another envelope it changes nothing.
func TestSupersededFileAgain(t *testing.T) {
	s := newSentClaim(t, 1)
	claim := s.decision(2000, 500)
	damaged := strings.Split(strings.Replace(strings.Join(claim, "~"), "CAS*CO*", "CAS*XX*", 1), "~")
	s.wantReasons(s.upload(remittances("D1", paymentSegments("EFT1", 2000, damaged...))).want(200), "unreadable 20")
	s.wantReasons(s.upload(remittances("D2", paymentSegments("EFT1", 2000, claim...))).want(200))
	for _, envelope := range []string{"D3", "D4"} {
		answer := s.upload(remittances(envelope, paymentSegments("EFT1", 2000, damaged...))).want(200)
		answer.wantAt(object{"applied": 0.0, "unmatched": 0.0})
		s.wantReasons(answer)
		if rows := s.wantDeposits(1); rows[0]["status"] != "balanced" {
			t.Errorf("the payment is %v", rows[0])
		}
	}
	s.upload(remittances("D5", paymentSegments("EFT1", 2000, claim...))).want(200).wantAt(object{"applied": 0.0, "unmatched": 0.0})
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0, "patient_responsibility": 5.0, "open": 0.0})
	s.tasks().wantAt(object{"unposted_remittances": 0.0})
}

// A payer that takes a payment back by a debit is out of the ledger what it is out of the bank: with a reversal, and one with a provider adjustment.
func TestDebitOfReversal(t *testing.T) {
	for name, start := range map[string]string{"debit": "BPR*I*20.00*D*", "negative debit": "BPR*I*-20.00*D*", "negative": "BPR*I*-20.00*C*"} {
		s := newSentClaim(t, 1)
		s.wantReasons(s.remit(2000, s.decision(2000, 500)...))
		segments := paymentSegments("BACK", 2000, s.back(2000, 500)...)
		segments[0] = strings.Replace(segments[0], "BPR*I*20.00*C*", start, 1)
		s.wantReasons(s.upload(remittances("B"+name, segments)).want(200))
		s.wantEntry(0, object{"lifecycle_status": "submitted", "paid_total": 0.0, "open": 47.87})
		wantMembers(t, name, s.wantDeposits(2)[0], object{"payment_amount": -20.0, "posted": -20.0, "unposted": 0.0, "status": "balanced"})
	}
	s := newSentClaim(t, 1)
	segments := paymentSegments("OWED", 3000, append(s.decision(2000, 500), "PLB*1234567893*20261231*WO:OLD*50")...)
	segments[0] = strings.Replace(segments[0], "BPR*I*30.00*C*", "BPR*I*30.00*D*", 1)
	s.wantReasons(s.upload(remittances("OWED", segments)).want(200), "PLB WO 50")
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0})
}
