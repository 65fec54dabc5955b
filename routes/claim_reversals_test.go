package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/x12"
)

// wantBalanced checks that the billed amounts are accounted for, to the cent.
func (cc *claimsClinic) wantBalanced(what string) {
	cc.t.Helper()
	r := cc.request(authz.Admin, "GET", "/billing/reports/revenue/?date_from=2025-12-01&date_to=2026-01-15", nil).want(200)
	cents := func(name string) int { return int(r.at(name).(float64)*100 + 1e6 + 0.5) }
	if cents("billed")-1e6 != cents("paid")+cents("adjusted")+cents("patient_responsibility")+cents("open")-4e6 {
		cc.t.Errorf("%s: does not reconcile: %s", what, r.body)
	}
}

// secondary changes an 835 into one of a payer that pays after another.
func secondary(file []byte, status string) []byte {
	clp := strings.Index(string(file), "CLP*")
	head, claim := string(file)[:clp], string(file)[clp:]
	trn := strings.Index(head, "TRN*1*")
	end := trn + strings.Index(head[trn:], "~")
	last := strings.LastIndex(head[:end], "*")
	parts := strings.SplitN(claim, "*", 4)
	parts[2] = status
	return []byte(head[:last+1] + "1888888888" + head[end:] + strings.Join(parts, "*"))
}

// The primary payer reverses its payment after a secondary one has paid: the claim waits for the correction.
func TestPrimaryReversalWithSecondaryPayment(t *testing.T) {
	first := payer.Partly(400, 0, 200)
	for name, test := range map[string]struct {
		correction payer.Decision
		want       object
	}{
		"less":   {payer.Partly(400, 0, 300), object{"lifecycle_status": "paid", "paid_total": 42.87, "adjusted": 4.0, "patient_responsibility": 1.0, "open": 0.0}},
		"more":   {payer.Partly(400, 0, 0), object{"lifecycle_status": "paid", "paid_total": 45.87, "adjusted": 4.0, "patient_responsibility": 0.0, "open": -2.0}},
		"denied": {payer.Deny("CO", "50"), object{"lifecycle_status": "denied", "paid_total": 2.0, "adjusted": 47.87, "patient_responsibility": 0.0, "open": -2.0}},
	} {
		for _, by := range []string{"by hand", "by file"} {
			t.Run(name+" "+by, func(t *testing.T) {
				h := newClaimsClinic(t)
				h.t = t
				one := h.reviewedOne()
				_, file := h.send(one)
				c := h.claimOf(one, file)
				pay := func(d payer.Decision) []byte { return h.payer.Write835(file, map[string]payer.Decision{c: d}) }
				h.upload(pay(first)).want(200).wantAt(object{"applied": 1.0})
				if by == "by hand" {
					h.move(one, "pay", object{"amount": 2, "payment_date": "2026-01-15", "reference": "SEC", "payer": "secondary"}).want(200)
				} else {
					h.upload(secondary(pay(payer.Partly(4587, 0, 0)), "2")).want(200).wantAt(object{"applied": 1.0})
				}
				h.entry(one).wantAt(object{"lifecycle_status": "paid", "paid_total": 43.87, "patient_responsibility": 0.0})
				h.wantBalanced("paid by two")
				h.upload(pay(payer.Reverse(first))).want(200).wantAt(object{"applied": 1.0})
				h.entry(one).wantAt(object{"lifecycle_status": "submitted", "paid_total": 2.0, "adjusted": 0.0, "patient_responsibility": 0.0, "open": 45.87})
				h.wantBalanced("reversed")
				h.upload(pay(test.correction)).want(200).wantAt(object{"applied": 1.0, "unmatched": 0.0})
				h.entry(one).wantAt(test.want)
				h.wantBalanced("corrected")
			})
		}
	}
}

// sentToBoth sends an entry. It returns the claim's control number, the first payer's file of a decision, and what uploads one of the second payer.
func (h *claimsClinic) sentToBoth(entry string) (claim string, first func(payer.Decision) []byte, second func(d payer.Decision, status string)) {
	h.t.Helper()
	_, file := h.send(entry)
	claim = h.claimOf(entry, file)
	first = func(d payer.Decision) []byte { return h.payer.Write835(file, map[string]payer.Decision{claim: d}) }
	return claim, first, func(d payer.Decision, status string) {
		h.t.Helper()
		answer := strings.Replace(string(secondary(first(d), status)), "*P"+claim, "*SECOND9", 1)
		h.upload([]byte(answer)).want(200).wantAt(object{"applied": 1.0, "unmatched": 0.0})
	}
}

// A secondary payer's reversal keeps the primary payer's payment and control number.
func TestSecondaryReversal(t *testing.T) {
	h := newClaimsClinic(t)
	one := h.reviewedOne()
	c, pay, second := h.sentToBoth(one)
	prior := func(paid x12.Cents) payer.Decision {
		return payer.Adjust(x12.Adjustment{Group: "OA", Code: "23", Amount: 3787}, x12.Adjustment{Group: "PR", Code: "2", Amount: 1000 - paid})
	}
	h.upload(pay(payer.Partly(400, 0, 1000))).want(200).wantAt(object{"applied": 1.0})
	second(prior(1000), "2")
	h.entry(one).wantAt(object{"lifecycle_status": "paid", "paid_total": 43.87, "adjusted": 4.0, "patient_responsibility": 0.0, "open": 0.0})
	second(payer.Reverse(prior(1000)), "22")
	h.entry(one).wantAt(object{"lifecycle_status": "paid", "paid_total": 33.87, "adjusted": 4.0, "patient_responsibility": 10.0, "open": 0.0, "payer_control_number": "P" + c})
	h.wantBalanced("reversed")
	second(prior(800), "2")
	h.entry(one).wantAt(object{"lifecycle_status": "paid", "paid_total": 41.87, "adjusted": 4.0, "patient_responsibility": 2.0, "open": 0.0})
	h.wantBalanced("corrected")
}

// Of what the patient paid, only what was not refunded counts toward the share that is left after a reversal by the second payer.
func TestSecondaryReversalAfterRefund(t *testing.T) {
	for _, test := range []struct {
		patient     float64
		second      x12.Cents
		refunds     []float64
		paid, share float64
	}{
		{patient: 3, second: 800, refunds: []float64{1}, paid: 35.87, share: 8},
		{patient: 3, second: 800, paid: 36.87, share: 7},
		{patient: 3, second: 1000, refunds: []float64{3}, paid: 33.87, share: 10},
		{patient: 10, second: 1000, refunds: []float64{4}, paid: 39.87, share: 4},
		{patient: 10, second: 1000, refunds: []float64{4, 5.5}, paid: 34.37, share: 9.5},
	} {
		h := newClaimsClinic(t)
		one := h.reviewedOne()
		_, pay, second := h.sentToBoth(one)
		decision := payer.Adjust(x12.Adjustment{Group: "OA", Code: "23", Amount: 3787}, x12.Adjustment{Group: "PR", Code: "2", Amount: 1000 - test.second})
		h.upload(pay(payer.Partly(400, 0, 1000))).want(200)
		h.move(one, "pay", object{"amount": test.patient, "payment_date": "2026-01-15", "reference": "C1", "payer": "patient"}).want(200)
		second(decision, "2")
		for i, amount := range test.refunds {
			h.move(one, "refund", object{"amount": amount, "date": "2026-01-15", "reference": fmt.Sprint("R", i), "payer": "patient"}).want(200)
		}
		second(payer.Reverse(decision), "22")
		h.entry(one).wantAt(object{"lifecycle_status": "paid", "paid_total": test.paid, "adjusted": 4.0, "patient_responsibility": test.share, "open": 0.0})
		h.wantBalanced(fmt.Sprint(test))
	}
}

// A payer's decision on a replacement reverses its decision on the replaced claim, including a denial.
func TestReplacementDecisionReversesOriginal(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 40, nil)
	entries := h.reviewed()
	first, next := entries[id+" 99457"], entries[id+" 99458"]
	_, old := h.send(first, next)
	h.upload(h.payer.Write835(old, map[string]payer.Decision{h.claimOf(first, old): payer.Deny("CO", "16")})).want(200)
	h.move(first, "resubmit", object{"corrections": object{"icd10_codes": []string{"I10"}}}).want(200)
	h.move(next, "resubmit", nil).want(200)
	_, file := h.send(first, next)
	answer := h.upload(h.payer.Write835(old, map[string]payer.Decision{old.Claims[0].ControlNumber: payer.Reverse(payer.Deny("CO", "16"))})).want(200)
	if answer.at("unmatched") != 0.0 {
		t.Errorf("left %s", h.unmatched(answer))
	}
	h.entry(first).wantAt(object{"lifecycle_status": "submitted", "open": 47.87, "adjusted": 0.0})
	h.upload(h.payer.Write835(file, nil)).want(200).wantAt(object{"applied": 2.0})
	h.entry(next).wantAt(object{"lifecycle_status": "paid", "open": 0.0})
	h.wantBalanced("paid")
}

// A denial that the payer reverses is none any more.
func TestReversedDenial(t *testing.T) {
	h := newClaimsClinic(t)
	entry := h.reviewedOne()
	_, file := h.send(entry)
	claim := h.claimOf(entry, file)
	decide := func(d payer.Decision) {
		h.upload(h.payer.Write835(file, map[string]payer.Decision{claim: d})).want(200).wantAt(object{"unmatched": 0.0})
		h.payer.Control++
	}
	decide(payer.Deny("CO", "50"))
	h.entry(entry).wantAt(object{"lifecycle_status": "denied", "denial.code": "CO-50"})
	decide(payer.Reverse(payer.Deny("CO", "50")))
	h.entry(entry).wantAt(object{"lifecycle_status": "submitted", "denial": nil, "open": 47.87})
	decide(payer.Full())
	h.entry(entry).wantAt(object{"lifecycle_status": "paid", "denial": nil, "open": 0.0})
	h.wantBalanced("paid")
}

func (cc *claimsClinic) reviewedOne() string {
	cc.t.Helper()
	id := cc.insured("Ada", 20, nil)
	return cc.reviewed()[id+" 99457"]
}

// A claim that is being voided has no patient balance, and a payment that was never booked is not reversed.
func TestDecisionOnClaimBeingVoided(t *testing.T) {
	h := newClaimsClinic(t)
	one := h.reviewedOne()
	_, file := h.send(one)
	c := h.claimOf(one, file)
	deductible := payer.Adjust(x12.Adjustment{Group: "PR", Code: "1", Amount: 4787})
	h.move(one, "request-void", nil).want(200)
	h.upload(h.payer.Write835(file, map[string]payer.Decision{c: deductible})).want(200).wantAt(object{"applied": 1.0})
	h.entry(one).wantAt(object{"lifecycle_status": "void_requested", "patient_responsibility": 0.0, "open": 47.87})
	h.upload(h.payer.Write835(file, map[string]payer.Decision{c: payer.Partly(400, 0, 200)})).want(200).wantAt(object{"applied": 1.0})
	h.entry(one).wantAt(object{"lifecycle_status": "refund_due", "paid_total": 41.87, "adjusted": 4.0, "patient_responsibility": 2.0, "open": 0.0})
	h.wantBalanced("paid all the same")

	h = newClaimsClinic(t)
	two := h.reviewedOne()
	_, file = h.send(two)
	h.upload(h.payer.Write835(file, map[string]payer.Decision{h.claimOf(two, file): payer.Partly(400, 0, 200)})).want(200)
	h.upload(h.payer.Write835(file, map[string]payer.Decision{h.claimOf(two, file): payer.Reverse(deductible)})).want(200)
	h.entry(two).wantAt(object{"lifecycle_status": "paid", "paid_total": 41.87, "adjusted": 4.0, "patient_responsibility": 2.0, "open": 0.0})
}

// Of two decisions of a payer, either may be reversed: the other stays as it was stated, with its adjustments and the patient's share.
func TestReversalOfOneOfTwoDecisions(t *testing.T) {
	for name, test := range map[string]struct {
		back []x12.Cents // the amounts of the reversed decision
		want object
	}{
		"the first":  {[]x12.Cents{2000, 800}, object{"lifecycle_status": "paid", "paid_total": 10.0, "adjusted": 32.87, "patient_responsibility": 5.0, "open": 0.0}},
		"the second": {[]x12.Cents{1000, 500}, object{"lifecycle_status": "paid", "paid_total": 20.0, "adjusted": 19.87, "patient_responsibility": 8.0, "open": 0.0}},
		"both":       {[]x12.Cents{3000, 500}, object{"lifecycle_status": "submitted", "paid_total": 0.0, "adjusted": 0.0, "patient_responsibility": 0.0, "open": 47.87}},
	} {
		s := newSentClaim(t, 1)
		s.wantReasons(s.decide("1", 2000, 800))
		s.wantReasons(s.decide("1", 1000, 500))
		s.wantEntry(0, object{"paid_total": 30.0, "patient_responsibility": 5.0, "open": 0.0})
		s.wantReasons(s.remit(-test.back[0], s.back(test.back[0], test.back[1])...))
		if s.wantEntry(0, test.want); t.Failed() {
			t.Fatal(name)
		}
		s.wantBalanced(name)
		if name != "both" {
			s.wantReasons(s.remit(0, s.back(0, 700)...), "reversal_without_original 0") // of nothing on record
		}
	}
}
