package routes_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/x12"
)

// decide imports a decision on the whole charge of the claim's only line: paid, contractual (CO-45) and the patient's share (PR-2).
func (s *sentClaim) decide(status string, paid, share x12.Cents) reply {
	s.t.Helper()
	segments := s.svc(0, paid, "CAS*CO*45*"+usd(s.claim.Charge-paid-share), "CAS*PR*2*"+usd(share))
	return s.remit(paid, append([]string{s.clp(status, paid)}, segments...)...)
}

// A payer that names a line only as paid before (OA-B13) leaves it as it is, with the share of the patient.
func TestAnswerPaidBefore(t *testing.T) {
	s := newSentClaim(t, 1)
	s.decide("1", 2000, 500)
	before := object{"lifecycle_status": "paid", "paid_total": 20.0, "patient_responsibility": 5.0, "open": 0.0}
	s.wantEntry(0, before)
	s.wantReasons(s.remit(0, append([]string{s.clp("1", 0)}, s.svc(0, 0, "CAS*OA*B13*"+usd(s.claim.Charge))...)...))
	s.wantEntry(0, before)
}

// A payer that denies the correction of a claim that it paid makes no credit: a person decides what its money is for.
func TestDenialOfCorrectedClaim(t *testing.T) {
	for _, reason := range []string{"CO*16", "OA*18", "CO*50"} {
		s := newSentClaim(t, 1)
		s.decide("1", 2000, 500)
		s.move(s.entries[0], "resubmit", object{"corrections": object{"icd10_codes": []string{"I10"}}}).want(200)
		_, file := s.send(s.entries[0])
		s.claim = file.Claims[0]
		s.wantReasons(s.remit(0, append([]string{s.clp("4", 0)}, s.svc(0, 0, "CAS*"+reason+"*"+usd(s.claim.Charge))...)...), "already_decided 0")
		s.wantEntry(0, object{"lifecycle_status": "submitted", "paid_total": 20.0})
		s.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/", nil).want(200).wantAt(object{"credits": 0.0})
	}
}

// A claim that went again as new after MA130, and was paid, is corrected as a replacement.
func TestCorrectionAfterUnprocessable(t *testing.T) {
	s := newSentClaim(t, 1)
	s.remit(0, append([]string{s.clp("4", 0), "MOA***MA130"}, s.svc(0, 0, "CAS*CO*16*"+usd(s.claim.Charge))...)...)
	again := func(frequency string) {
		t.Helper()
		s.move(s.entries[0], "resubmit", object{"corrections": object{"icd10_codes": []string{"I10"}}}).want(200)
		_, file := s.send(s.entries[0])
		if s.claim = file.Claims[0]; s.claim.Frequency != frequency {
			t.Fatalf("sent with frequency %s, want %s", s.claim.Frequency, frequency)
		}
	}
	again("1")
	s.decide("1", 2000, 500)
	again("7")
}

// back returns the segments of the reversal of a decision about the claim's only line.
func (s *sentClaim) back(paid, share x12.Cents) []string {
	c := s.claim
	return []string{
		strings.Replace(s.clp("22", -paid), "*"+usd(c.Charge)+"*", "*-"+usd(c.Charge)+"*", 1),
		fmt.Sprintf("SVC*HC:%s*-%s*%s**1", c.Lines[0].Procedure[1], usd(c.Charge), usd(-paid)), "DTM*472*" + c.Lines[0].From,
		"CAS*CO*45*" + usd(paid+share-c.Charge), "CAS*PR*2*" + usd(-share), "REF*6R*" + c.Lines[0].ControlNumber,
	}
}

// decision returns the segments of a decision about the claim's only line: paid, contractual and the patient's share.
func (s *sentClaim) decision(paid, share x12.Cents) []string {
	return append([]string{s.clp("1", paid)}, s.svc(0, paid, "CAS*CO*45*"+usd(s.claim.Charge-paid-share), "CAS*PR*2*"+usd(share))...)
}

// What the patient paid before the payer decides counts toward the share that the payer leaves; only beyond it is a credit.
func TestCopayBeforeDecision(t *testing.T) {
	for name, test := range map[string]struct {
		copay   float64
		decided func(*sentClaim) []string
		want    object
		credits float64
	}{
		"all of the share": {5, func(s *sentClaim) []string { return s.decision(2000, 500) }, object{"paid_total": 25.0, "patient_responsibility": 0.0, "open": 0.0}, 0},
		"a part of it":     {2, func(s *sentClaim) []string { return s.decision(2000, 500) }, object{"paid_total": 22.0, "patient_responsibility": 3.0, "open": 0.0}, 0},
		"more":             {8, func(s *sentClaim) []string { return s.decision(2000, 500) }, object{"paid_total": 28.0, "patient_responsibility": 0.0, "open": -3.0}, 1},
		"a deductible":     {20, func(s *sentClaim) []string { return s.decision(0, 4787) }, object{"paid_total": 20.0, "patient_responsibility": 27.87, "open": 0.0}, 0},
		"denied, the patient's": {20, func(s *sentClaim) []string {
			return append([]string{s.clp("4", 0)}, s.svc(0, 0, "CAS*PR*96*"+usd(s.claim.Charge))...)
		}, object{"paid_total": 20.0, "patient_responsibility": 27.87, "open": 0.0}, 0},
	} {
		s := newSentClaim(t, 1)
		s.move(s.entries[0], "pay", object{"amount": test.copay, "payment_date": "2026-01-15", "reference": "CASH", "payer": "patient"}).want(200)
		s.wantReasons(s.remit(s.decidedTotal(test.decided(s)), test.decided(s)...))
		s.wantEntry(0, test.want)
		s.tasks().wantAt(object{"credits": test.credits})
		s.wantBalanced(name)
		if name == "all of the share" { // the payer decides again, with another share
			s.wantReasons(s.remit(300, append([]string{s.clp("1", 300)}, s.svc(0, 300, "CAS*CO*45*"+usd(s.claim.Charge-3200), "CAS*PR*2*9", "CAS*OA*B13*20")...)...))
			s.wantEntry(0, object{"paid_total": 28.0, "patient_responsibility": 4.0, "open": 0.0})
			s.wantReasons(s.remit(-2300, s.back(2300, 900)...))
			s.wantEntry(0, object{"lifecycle_status": "submitted", "paid_total": 5.0, "patient_responsibility": 0.0})
			s.wantReasons(s.remit(2500, s.decision(2500, 200)...))
			s.wantEntry(0, object{"paid_total": 30.0, "patient_responsibility": 0.0, "open": -3.0})
		}
	}
}

// decidedTotal returns CLP04 of a claim's segments.
func (s *sentClaim) decidedTotal(segments []string) x12.Cents {
	dollars, err := strconv.ParseFloat(strings.Split(segments[0], "*")[4], 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return x12.Cents(math.Round(dollars * 100))
}

// A reversal and what comes after it are posted in their order in time for any order in the file.
func TestOrderOfClaimsInPayment(t *testing.T) {
	for name, parts := range map[string]func(*sentClaim) [][]string{
		"reversal first":   func(s *sentClaim) [][]string { return [][]string{s.back(2000, 500), s.decision(2500, 300)} },
		"correction first": func(s *sentClaim) [][]string { return [][]string{s.decision(2500, 300), s.back(2000, 500)} },
	} {
		s := newSentClaim(t, 1)
		s.wantReasons(s.remit(2000, s.decision(2000, 500)...))
		file := slices.Concat(parts(s)...)
		s.wantReasons(s.remit(500, file...))
		want := object{"lifecycle_status": "paid", "paid_total": 25.0, "adjusted": 19.87, "patient_responsibility": 3.0, "open": 0.0}
		s.wantEntry(0, want)
		s.upload(remittances("AGAIN"+name, paymentSegments("EFT2", 500, file...))).want(200).wantAt(object{"applied": 0.0, "unmatched": 0.0})
		s.wantEntry(0, want)
		s.wantDeposits(2)
	}
	for name, order := range map[string][]int{"in order": {0, 1, 2}, "backward": {1, 0, 2}} { // original, reversal and correction in one file
		s := newSentClaim(t, 1)
		parts := [][]string{s.decision(2000, 500), s.back(2000, 500), s.decision(2500, 300)}
		s.wantReasons(s.remit(2500, slices.Concat(parts[order[0]], parts[order[1]], parts[order[2]])...))
		if s.wantEntry(0, object{"paid_total": 25.0, "adjusted": 19.87, "patient_responsibility": 3.0, "open": 0.0}); t.Failed() {
			t.Fatal(name)
		}
	}
}

// A line that went to a newer claim and is not paid does not hold up the lines that the old claim's answer pays.
func TestSupersededLineLeavesTheOthers(t *testing.T) {
	s := newSentClaim(t, 2)
	next := s.claim.Lines[1].Charge
	s.move(s.entries[1], "deny", object{"code": "CO-16", "description": "By phone"}).want(200)
	s.move(s.entries[1], "resubmit", object{"new_claim": true}).want(200)
	old := s.claim
	s.send(s.entries[1])
	s.claim = old
	answer := s.remit(2000, append(append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(old.Lines[0].Charge-2000))...), s.svc(1, 0, "CAS*CO*16*"+usd(next))...)...)
	s.wantReasons(answer, "superseded_claim 0")
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0, "open": 0.0})
	s.wantEntry(1, object{"lifecycle_status": "submitted", "paid_total": 0.0})
	s.wantDeposits(1)
}

// A claim that went nowhere without the payer's number has a way on: the number, or a new claim; so has a void.
func TestClaimWithoutPayersNumber(t *testing.T) {
	for name, more := range map[string]object{"as new": {"new_claim": true}, "with the number": {"payer_control_number": "ICN-77"}} {
		s := newSentClaim(t, 1)
		s.move(s.entries[0], "resubmit", more).want(400, "invalid_transition")
		s.move(s.entries[0], "deny", object{"code": "CO-50", "description": "By phone"}).want(200)
		s.move(s.entries[0], "resubmit", nil).want(200).wantAt(object{"claim_frequency_code": "7", "resubmission_count": 1.0})
		s.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": s.entries}).want(400)
		s.move(s.entries[0], "resubmit", more).want(200).wantAt(object{"lifecycle_status": "submitted", "resubmission_count": 1.0})
		_, file := s.send(s.entries[0])
		if got := file.Claims[0].Frequency + file.Claims[0].PayerControlNumber; got != map[string]string{"as new": "1", "with the number": "7ICN-77"}[name] {
			t.Errorf("%s: sent as %s", name, got)
		}
		s.move(s.entries[0], "resubmit", more).want(400, "invalid_transition")
	}
	s := newSentClaim(t, 1)
	s.move(s.entries[0], "request-void", object{"reason": "Wrong patient"}).want(200)
	s.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": s.entries}).want(400)
	s.move(s.entries[0], "request-void", nil).want(400, "invalid_transition")
	s.move(s.entries[0], "request-void", object{"payer_control_number": "ICN-78"}).want(200).wantAt(object{"lifecycle_status": "void_requested"})
	_, file := s.send(s.entries[0])
	if c := file.Claims[0]; c.Frequency != "8" || c.PayerControlNumber != "ICN-78" {
		t.Errorf("voided as %s %s", c.Frequency, c.PayerControlNumber)
	}

	s = newSentClaim(t, 1) // a payer that takes no voids denies the claim: the user records the end
	s.setPayer(object{"claim_filing_code": "MB"})
	s.move(s.entries[0], "request-void", object{"reason": "Wrong patient"}).want(200)
	if waiting, err := collections.EntriesToSubmit(s.app, "2026-01-01", "2026-01-31", "T"); err != nil || len(waiting) != 0 {
		t.Errorf("waiting for a file are %v, %v", waiting, err)
	}
	s.wantReasons(s.remit(0, append([]string{s.clp("4", 0)}, s.svc(0, 0, "CAS*CO*50*"+usd(s.claim.Charge))...)...))
	s.wantEntry(0, object{"lifecycle_status": "void_requested", "adjusted": 0.0})
	s.move(s.entries[0], "void", object{"reason": "The payer denied it"}).want(200)
}

// What a person closed is not posted by a second import, in which another reason holds, and an interrupted import can be closed or finished.
func TestClosedItemIsNotPosted(t *testing.T) {
	s := newSentClaim(t, 1)
	s.decide("1", 2000, 500)
	second := s.decision(2000, 500)
	s.wantReasons(s.remit(2000, second...), "already_decided 20")
	list := s.wantDeposits(2)
	s.request(authz.DataMonitor, "POST", fmt.Sprint("/billing/remittances/", list[0]["id"], "/items/1/close/"), object{"notes": "Sent back"}).want(200).wantAt(object{"status": "closed"})
	s.remit(-2000, s.back(2000, 500)...)
	s.wantEntry(0, object{"lifecycle_status": "submitted", "paid_total": 0.0})
	s.upload(remittances("ENVELOPE2", paymentSegments("EFT2", 2000, second...))).want(200).wantAt(object{"applied": 0.0})
	s.wantEntry(0, object{"lifecycle_status": "submitted", "paid_total": 0.0})
	s.wantDeposits(3)
	s.tasks().wantAt(object{"unposted_remittances": 0.0})

	for _, isClosed := range []bool{false, true} {
		s = newSentClaim(t, 1)
		unknown := "CLP*UNKNOWN1*1*20*20**12*ICN7*11*1"
		s.remit(2000, unknown)
		for _, sql := range []string{"UPDATE remittances SET items = '', status = 'open'", "UPDATE claim_responses SET finished_at = ''"} { // as a kill leaves it
			if _, err := s.app.DB().NewQuery(sql).Execute(); err != nil {
				t.Fatal(err)
			}
		}
		r := s.wantDeposits(1)[0]
		if item := r["items"].([]any)[0].(object); item["reason"] != "import_interrupted" || item["amount"] != 20.0 {
			t.Errorf("left %v", item)
		}
		if isClosed {
			s.request(authz.DataMonitor, "POST", fmt.Sprint("/billing/remittances/", r["id"], "/close/"), object{"notes": "Posted by hand"}).want(200).wantAt(object{"status": "closed"})
		}
		s.upload(remittances("ENVELOPE3", paymentSegments("EFT1", 2000, unknown))).want(200)
		want := map[bool]string{false: "open unknown_claim", true: "closed import_interrupted"}[isClosed]
		if r = s.wantDeposits(1)[0]; fmt.Sprint(r["status"], " ", r["items"].([]any)[0].(object)["reason"]) != want {
			t.Errorf("after another import the payment is %v, want %s", r, want)
		}
	}
}

// What a payer states to have paid before (B13) is no adjustment: as far as it is not on record, it stays open for a person.
func TestPaidBeforeStaysOpen(t *testing.T) {
	type decision struct {
		paid        x12.Cents
		adjustments []string
	}
	const charge = 4787
	for name, c := range map[string]struct {
		byHand          float64
		list            []decision
		adjusted, share float64
		open            float64
	}{
		"first decision":          {0, []decision{{1000, []string{"CAS*CO*45*17.87", "CAS*OA*B13*20"}}}, 17.87, 0, 20},
		"first decision, a share": {0, []decision{{0, []string{"CAS*CO*45*7.87", "CAS*PR*2*10", "CAS*CO*B13*30"}}}, 7.87, 10, 30},
		"payment by hand":         {30, []decision{{0, []string{"CAS*OA*B13*47.87"}}}, 0, 0, 17.87},
		"second by hand":          {20, []decision{{1000, []string{"CAS*CO*45*7.87", "CAS*OA*B13*30"}}}, 7.87, 0, 10},
		"as much as on record":    {0, []decision{{2000, []string{"CAS*CO*45*27.87"}}, {1000, []string{"CAS*CO*45*17.87", "CAS*OA*B13*20"}}}, 17.87, 0, 0},
		"more than on record":     {0, []decision{{3000, []string{"CAS*CO*45*7.87", "CAS*PR*2*10"}}, {100, []string{"CAS*CO*45*7.87", "CAS*OA*B13*39"}}}, 7.87, 0, 9},
		"less than on record":     {0, []decision{{3000, []string{"CAS*CO*45*17.87"}}, {1000, []string{"CAS*CO*45*17.87", "CAS*OA*B13*20"}}}, 7.87, 0, 0},
		"the rest of it":          {0, []decision{{3000, []string{"CAS*CO*45*7.87", "CAS*PR*2*10"}}, {1000, []string{"CAS*OA*B13*37.87"}}}, 7.87, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSentClaim(t, 1)
			if s.claim.Charge != charge {
				t.Fatalf("the charge is %d", s.claim.Charge)
			}
			if c.byHand != 0 {
				s.move(s.entries[0], "pay", object{"amount": c.byHand, "payment_date": "2026-01-14", "reference": "EFT-55501"}).want(200)
			}
			for _, d := range c.list {
				s.wantReasons(s.remit(d.paid, append([]string{s.clp("1", d.paid)}, s.svc(0, d.paid, d.adjustments...)...)...))
			}
			s.wantEntry(0, object{"lifecycle_status": "paid", "adjusted": c.adjusted, "patient_responsibility": c.share, "open": c.open})
		})
	}
}

// A first payer's payment by hand beyond what its adjustments leave makes no credit without a reason: the user reverses what it replaces.
func TestPaymentByHandBeyondAdjustments(t *testing.T) {
	s := newSentClaim(t, 1)
	s.decide("1", 2000, 500) // 22.87 by contract
	pay := func(amount float64, payer, reason string) reply {
		return s.move(s.entries[0], "pay", object{"amount": amount, "payment_date": "2026-01-15", "reference": fmt.Sprint("EFT", amount), "payer": payer, "overpayment_reason": reason})
	}
	pay(5.01, "primary", "").wantFields("overpayment_reason")
	pay(20.01, "primary", "").wantFields("overpayment_reason")
	s.wantEntry(0, object{"paid_total": 20.0, "open": 0.0})
	s.move(s.entries[0], "adjust", object{"amount": -15.01, "group": "CO", "carc": "45", "reason": "Corrected"}).want(200)
	pay(20.01, "primary", "").want(200)
	s.wantEntry(0, object{"paid_total": 40.01, "adjusted": 7.86, "patient_responsibility": 0.0, "open": 0.0})
	pay(1, "primary", "Paid twice").want(200)
	s.wantEntry(0, object{"paid_total": 41.01, "open": -1.0})
}
