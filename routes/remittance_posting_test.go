package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/x12"
)

// usd writes an amount as X12 does.
func usd(cents x12.Cents) string { return fmt.Sprintf("%.2f", float64(cents)/100) }

// remittance returns an 835 of one payment with the given claims and provider adjustments.
func (cc *claimsClinic) remittance(trace string, total x12.Cents, segments ...string) []byte {
	return remittances(trace+usd(total), paymentSegments(trace, total, segments...))
}

// paymentSegments returns the segments of one payment.
func paymentSegments(trace string, total x12.Cents, segments ...string) []string {
	return append([]string{
		"BPR*I*" + usd(total) + "*C*ACH************20260115", "TRN*1*" + trace + "*1999999999", "DTM*405*20260115", "N1*PR*ACME HEALTH", "N3*1 PLAZA",
		"N4*HARTFORD*CT*06101", "REF*2U*60054", "PER*BL*EDI*TE*8005550100", "N1*PE*ELM STREET CLINIC*XX*1234567893", "LX*1",
	}, segments...)
}

// remittances returns one interchange with the payments, each from BPR to its last segment.
func remittances(control string, payments ...[]string) []byte {
	var b strings.Builder
	number := 0
	for _, r := range control {
		number = (number*31 + int(r)) % 999_999_999
	}
	fmt.Fprintf(&b, "ISA*00*          *00*          *ZZ*HOUSE1         *ZZ*SUB1           *260115*1200*^*00501*%09d*0*T*:~GS*HP*HOUSE1*SUB1*20260115*1200*1*X*005010X221A1~", number)
	for i, segments := range payments {
		body := strings.Join(segments, "~")
		fmt.Fprintf(&b, "ST*835*%04d~%s~SE*%d*%04d~", i+1, body, strings.Count(body, "~")+3, i+1)
	}
	fmt.Fprintf(&b, "GE*%d*1~IEA*1*%09d~", len(payments), number)
	return []byte(b.String())
}

// sentClaim is a claim of one or two lines, in a clinic of its own.
type sentClaim struct {
	*claimsClinic
	entries []string
	claim   payer.Claim
	second  any // the second payer
	count   int
}

func newSentClaim(t *testing.T, lines int) *sentClaim {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 20*lines, nil)
	byCode := h.reviewed()
	s := &sentClaim{claimsClinic: h}
	for _, code := range []string{"99457", "99458"}[:lines] {
		s.entries = append(s.entries, byCode[id+" "+code])
	}
	_, file := h.send(s.entries...)
	s.claim = file.Claims[0]
	return s
}

// clp returns a CLP of the claim.
func (s *sentClaim) clp(status string, paid x12.Cents) string {
	return fmt.Sprintf("CLP*%s*%s*%s*%s**12*ICN1*11*1", s.claim.ControlNumber, status, usd(s.claim.Charge), usd(paid))
}

// svc returns the segments of a line.
func (s *sentClaim) svc(line int, paid x12.Cents, adjustments ...string) []string {
	l := s.claim.Lines[line]
	list := append([]string{fmt.Sprintf("SVC*HC:%s*%s*%s**1", l.Procedure[1], usd(l.Charge), usd(paid)), "DTM*472*" + l.From}, adjustments...)
	return append(list, "REF*6R*"+l.ControlNumber)
}

func (s *sentClaim) remit(total x12.Cents, segments ...string) reply {
	s.t.Helper()
	s.count++
	return s.upload(s.remittance(fmt.Sprint("EFT", s.count), total, segments...)).want(200)
}

// reasons returns why parts of an imported file wait for a person.
func (s *sentClaim) reasons(answer reply) (list []string) {
	s.t.Helper()
	full := s.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-responses/", answer.at("id"), "/"), nil).want(200)
	for _, u := range full.at("unmatched").([]any) {
		list = append(list, fmt.Sprint(u.(object)["reason"], " ", u.(object)["amount"]))
	}
	return list
}

func (s *sentClaim) wantReasons(answer reply, want ...string) {
	s.t.Helper()
	if got := s.reasons(answer); fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("waits for %q, want %q", got, want)
	}
}

func (s *sentClaim) wantEntry(line int, want object) {
	s.t.Helper()
	s.entry(s.entries[line]).wantAt(want)
}

// A claim-level adjustment lessens what the lines were paid: what is posted is what the payer sent.
func TestClaimAdjustmentLessensPayment(t *testing.T) {
	s := newSentClaim(t, 1)
	c := s.claim.Charge
	s.wantReasons(s.remit(2000, append([]string{s.clp("1", 2000), "CAS*CO*45*" + usd(c-2000)}, s.svc(0, c)...)...))
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0, "adjusted": float64(c-2000) / 100, "open": 0.0})

	s = newSentClaim(t, 1) // a check of nothing
	s.wantReasons(s.remit(0, append([]string{s.clp("1", 0), "CAS*CO*45*" + usd(c-2000), "CAS*PR*1*20"}, s.svc(0, c)...)...))
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 0.0, "patient_responsibility": 20.0, "open": 0.0})

	s = newSentClaim(t, 1) // beside adjustments of the line, with an increase
	s.wantReasons(s.remit(2350, append([]string{s.clp("1", 2350), "CAS*CO*253*1.5**237*-5"}, s.svc(0, 2000, "CAS*CO*45*"+usd(c-2000))...)...))
	s.wantEntry(0, object{"paid_total": 23.5, "adjusted": float64(c-2350) / 100, "open": 0.0})

	s = newSentClaim(t, 1) // the line's payment is stated after the claim's adjustment
	s.wantReasons(s.remit(2000, append([]string{s.clp("1", 2000), "CAS*CO*45*" + usd(c-2000)}, s.svc(0, 2000)...)...))
	s.wantEntry(0, object{"paid_total": 20.0, "adjusted": float64(c-2000) / 100, "open": 0.0})
}

// Of several lines, an adjustment equal to a line that is not listed is that line's; any other is shared in proportion to what is open, to the cent.
func TestClaimAdjustmentOfSeveralLines(t *testing.T) {
	s := newSentClaim(t, 2)
	first, next := s.claim.Lines[0].Charge, s.claim.Lines[1].Charge
	s.wantReasons(s.remit(first-500, append([]string{s.clp("1", first-500), "CAS*CO*97*" + usd(next)}, s.svc(0, first-500, "CAS*CO*45*5")...)...))
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": float64(first-500) / 100, "adjusted": 5.0, "open": 0.0})
	s.wantEntry(1, object{"lifecycle_status": "denied", "denial.code": "CO-97", "denial.next_step": "write_off", "open": 0.0})

	s = newSentClaim(t, 2)
	paid := first + next - 1000 - 1001
	s.wantReasons(s.remit(paid, append(append([]string{s.clp("1", paid), "CAS*CO*45*10.01"}, s.svc(0, first-500, "CAS*PR*2*5")...), s.svc(1, next-500, "CAS*PR*2*5")...)...))
	sum := 0.0
	for _, id := range s.entries {
		e := s.entry(id)
		e.wantAt(object{"lifecycle_status": "paid", "patient_responsibility": 5.0, "open": 0.0})
		sum += e.at("paid_total").(float64)
	}
	if fmt.Sprintf("%.2f", sum) != usd(paid) {
		t.Errorf("posted %.2f of %s", sum, usd(paid))
	}
	s.remit(-paid, append(append([]string{strings.Replace(s.clp("22", -paid), usd(s.claim.Charge), usd(-s.claim.Charge), 1), "CAS*CO*45*-10.01"},
		strings.Replace(strings.Join(s.svc(0, 500-first, "CAS*PR*2*-5"), "~"), usd(first), usd(-first), 1)),
		strings.Replace(strings.Join(s.svc(1, 500-next, "CAS*PR*2*-5"), "~"), usd(next), usd(-next), 1))...).wantAt(object{"applied": 2.0, "unmatched": 0.0})
	s.wantEntry(0, object{"lifecycle_status": "submitted", "paid_total": 0.0, "adjusted": 0.0, "patient_responsibility": 0.0})
}

// One adjustment of several lines that are not listed is theirs: the listed line keeps what it was paid.
func TestOneAdjustmentOfUnlistedLines(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 60, nil)
	byCode := h.reviewed()
	s := &sentClaim{claimsClinic: h, entries: []string{byCode[id+" 99457"], byCode[id+" 99458"]}}
	_, file := h.send(s.entries...)
	s.claim = file.Claims[0]
	first := s.claim.Lines[0].Charge
	s.wantReasons(s.remit(2000, append([]string{s.clp("1", 2000), "CAS*CO*97*" + usd(s.claim.Charge-first)}, s.svc(0, 2000, "CAS*CO*45*"+usd(first-2000))...)...))
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0, "open": 0.0})
	s.wantEntry(1, object{"lifecycle_status": "denied", "denial.code": "CO-97", "paid_total": 0.0, "open": 0.0})
}

// A payment that moves no money is listed as what it is, and posts nothing; the payment itself, which follows, is posted.
func TestPaymentWithoutMoney(t *testing.T) {
	for start, want := range map[string]string{"BPR*I*20.00*D*": "no_money_moved 20", "BPR*P*20.00*C*": "prenotification 20", "BPR*H*20.00*C*": "no_money_moved 20"} {
		s := newSentClaim(t, 1)
		claim := append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)
		segments := paymentSegments("EFT1", 2000, claim...)
		segments[0] = strings.Replace(segments[0], "BPR*I*20.00*C*", start, 1)
		s.wantReasons(s.upload(remittances("D", segments)).want(200), want)
		s.wantEntry(0, object{"lifecycle_status": "submitted", "paid_total": 0.0})
		s.wantReasons(s.upload(remittances("E", paymentSegments("EFT1", 2000, claim...))).want(200))
		s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0})
	}
}

// A payment that a user recorded and the 835 of the same payment are money once, in any order and however the number was typed.
func TestPaymentRecordedTwice(t *testing.T) {
	pay := func(s *sentClaim, amount float64, number, from string) reply {
		return s.move(s.entries[0], "pay", object{"amount": amount, "payment_date": "2026-01-15", "reference": number, "payer": from})
	}
	for name, c := range map[string]struct {
		amount       float64
		number, from string
		want         []string
		total        float64
	}{
		"same number":            {20, "EFT0012345", "primary", []string{"already_recorded 20"}, 20},
		"typed otherwise":        {20, "Check 12345", "primary", []string{"already_recorded 20"}, 20},
		"another amount":         {19, "eft-0012345", "primary", []string{"already_recorded 20"}, 19},
		"another number":         {20, "HAND", "primary", []string{"already_recorded 20"}, 20},
		"beyond the charge":      {45, "HAND", "primary", []string{"already_recorded 20"}, 45},
		"another payment":        {5, "HAND", "primary", nil, 25},
		"the patient's":          {20, "EFT0012345", "patient", nil, 40},
		"the second payer's own": {20, "EFT0012345", "secondary", nil, 40},
	} {
		s := newSentClaim(t, 1)
		pay(s, c.amount, c.number, c.from).want(200)
		claim := append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)
		if s.wantReasons(s.upload(s.remittance("EFT0012345", 2000, claim...)).want(200), c.want...); t.Failed() {
			t.Fatal(name)
		}
		s.wantEntry(0, object{"paid_total": c.total})
	}
	s := newSentClaim(t, 1)
	s.upload(s.remittance("EFT0012345", 2000, append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)...)).want(200)
	pay(s, 20, "12345", "primary").wantFields("reference")
	pay(s, 20, "CHECK 7", "primary").want(400, "duplicate_payment")
	s.wantEntry(0, object{"paid_total": 20.0})
	pay(s, 19, "CHECK 7", "primary").wantFields("overpayment_reason")
	other := object{"amount": 19, "payment_date": "2026-01-15", "reference": "CHECK 7", "payer": "primary", "overpayment_reason": "Paid twice"}
	s.move(s.entries[0], "pay", other).want(200)
	pay(s, 5, "COPAY", "patient").want(200)
	again := object{"amount": 20, "payment_date": "2026-01-15", "reference": "CHECK 8", "payer": "primary", "confirm": true, "overpayment_reason": "Paid twice"}
	s.move(s.entries[0], "pay", again).want(200)
	s.wantEntry(0, object{"paid_total": 64.0})
}

// A claim is found by its number in lower case, and by the claim id under which other software sent it.
func TestOtherFormsOfClaimNumber(t *testing.T) {
	s := newSentClaim(t, 2)
	claim := append(append([]string{strings.Replace(s.clp("1", 3000), s.claim.ControlNumber, strings.ToLower(s.claim.ControlNumber), 1)},
		s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Lines[0].Charge-2000))...), s.svc(1, 1000, "CAS*CO*45*"+usd(s.claim.Lines[1].Charge-1000))...)
	s.wantReasons(s.remit(3000, claim...))
	s.wantEntry(1, object{"lifecycle_status": "paid", "paid_total": 10.0})

	h := newClaimsClinic(t)
	h.insured("Ada", 20, nil)
	s = &sentClaim{claimsClinic: h}
	for _, id := range h.reviewed() {
		s.entries = append(s.entries, id)
	}
	s.move(s.entries[0], "submit", object{"reference": "PORTAL-1"}).want(200)
	entry := s.entry(s.entries[0])
	charge := fmt.Sprintf("%.2f", entry.at("charge"))
	for _, number := range []string{fmt.Sprint(entry.at("claim_id")), strings.ToLower(fmt.Sprint(entry.at("claim_id")))} {
		s.remit(0, "CLP*"+number+"*4*"+charge+"*0**12*ICN1*11*1", "CAS*CO*50*"+charge)
		s.wantEntry(0, object{"lifecycle_status": "denied", "denial.code": "CO-50", "payer_control_number": "ICN1"})
	}
	s.wantReasons(s.remit(0, "CLP*CLM-2026-999999*4*"+charge+"*0**12*ICN1*11*1", "CAS*CO*50*"+charge), "unknown_claim 0")
}

// A payment of another code than ours, and one dated before the service, are posted with a warning.
func TestWarningsOfPostedLines(t *testing.T) {
	s := newSentClaim(t, 2)
	lines := func(number string) []any {
		t.Helper()
		for _, row := range s.request(authz.Admin, "GET", "/billing/remittances/", nil).want(200).results() {
			if row["trace_number"] == number {
				return s.request(authz.Admin, "GET", fmt.Sprint("/billing/remittances/", row["id"], "/"), nil).want(200).at("lines").([]any)
			}
		}
		return nil
	}
	claim := append([]string{s.clp("1", 3000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Lines[0].Charge-2000))...)
	claim[1] = strings.Replace(claim[1], "SVC*HC:99457", "SVC*HC:99470", 1) + "*HC:99457"
	segments := paymentSegments("EFT1", 3000, append(claim, s.svc(1, 1000, "CAS*CO*45*"+usd(s.claim.Lines[1].Charge-1000))...)...)
	s.wantReasons(s.upload(remittances("E", segments)).want(200))
	got := lines("EFT1")
	wantLine := func(line any, want string) {
		t.Helper()
		if row := line.(object); fmt.Sprint(row["paid_code"], " ", row["warnings"]) != want {
			t.Errorf("the line is %v, want %s", row, want)
		}
	}
	wantLine(got[0], "99470 [other_code]")
	wantLine(got[1], "<nil> []")

	s = newSentClaim(t, 1)
	segments = paymentSegments("EFT1", 2000, append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)...)
	segments[0] = strings.Replace(segments[0], "20260115", "20200101", 1)
	s.wantReasons(s.upload(remittances("E", segments)).want(200))
	wantLine(lines("EFT1")[0], "<nil> [paid_before_service]")
	if warnings := fmt.Sprint(s.entry(s.entries[0]).at("warnings")); !strings.Contains(warnings, "paid_before_service") {
		t.Errorf("the entry has the warnings %s", warnings)
	}
}

// One bad claim waits for a person, and the others of its file are posted.
func TestBadClaimLeavesTheOthers(t *testing.T) {
	h := newClaimsClinic(t)
	names := []string{"Ada", "Bea"}
	ids := []string{h.insured(names[0], 20, nil), h.insured(names[1], 20, nil)}
	byCode := h.reviewed()
	good, bad := byCode[ids[0]+" 99457"], byCode[ids[1]+" 99457"]
	_, file := h.send(good, bad)
	s := &sentClaim{claimsClinic: h, entries: []string{good, bad}}
	claimOf := map[string]payer.Claim{}
	for _, c := range file.Claims {
		claimOf[c.ControlNumber] = c
	}
	s.claim = claimOf[h.claimOf(good, file)]
	fine := append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)
	s.claim = claimOf[h.claimOf(bad, file)]
	for _, c := range []struct {
		name     string
		total    x12.Cents
		segments []string
		want     []string
	}{
		{"a line that does not balance", 4000, append([]string{s.clp("1", 2000)}, s.svc(0, 1999, "CAS*CO*45*"+usd(s.claim.Charge-2000))...), []string{"unbalanced 20"}},
		{"a claim that does not", 4000, append([]string{s.clp("1", 2000), "CAS*CO*253*1"}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...), []string{"unbalanced 20"}},
		{"a sum that the total has not", 4001, append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-1999))...), []string{"unbalanced 20", "total_differs 0.01"}},
		{"a negative payment", 1000, append([]string{s.clp("1", -1000)}, s.svc(0, -1000, "CAS*CO*45*"+usd(s.claim.Charge+1000))...), []string{"wrong_sign -10"}},
		{"a reversal without original", 0, []string{strings.Replace(s.clp("22", -2000), usd(s.claim.Charge), usd(-s.claim.Charge), 1), "CAS*CO*45*" + usd(2000-s.claim.Charge)}, []string{"reversal_without_original -20"}},
		{"another line", 4000, []string{s.clp("1", 2000), "SVC*HC:99999*" + usd(s.claim.Charge) + "*20", "CAS*CO*45*" + usd(s.claim.Charge-2000), "REF*6R*X"}, []string{"unknown_line 20"}},
		{"a status of no code", 4000, append([]string{s.clp("5", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...), []string{"unreadable 20"}},
		{"a group of no code", 4000, append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*XX*45*"+usd(s.claim.Charge-2000))...), []string{"unreadable 20"}},
		{"an amount that is none", 4000, append([]string{s.clp("1", 2000) + "*", "AMT*AU*"}, s.svc(0, 2000, "CAS*CO*45*1.234")...), []string{"unreadable 20"}},
		{"a day that is none", 4000, append([]string{s.clp("1", 2000)}, append(s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000)), "DTM*472*20261399")...), []string{"unreadable 20"}},
		{"a payment that is none", 4000, []string{strings.Replace(s.clp("1", 2000), "*20.00*", "*20,00*", 1)}, []string{"unreadable 0", "total_differs 20"}},
		{"a forwarded claim", 2000, []string{s.clp("23", 0), "CAS*OA*23*" + usd(s.claim.Charge)}, []string{"sent_on 0"}},
	} {
		s.count++
		answer := h.upload(h.remittance(fmt.Sprint("BAD", s.count), c.total, append(append([]string{}, fine...), c.segments...)...)).want(200)
		want := append([]string{}, c.want...)
		if s.count > 1 { // the good claim was posted with the first file
			want = append([]string{"already_decided 20"}, want...)
		}
		if s.wantReasons(answer, want...); t.Failed() {
			t.Fatal(c.name)
		}
		s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0, "open": 0.0})
		s.wantEntry(1, object{"lifecycle_status": "submitted", "paid_total": 0.0})
	}
}

// A second decision without a reversal: its money adds up, and its adjustments replace the earlier ones; what would exceed the charge, and the same
// decision again, wait for a person.
func TestSecondDecision(t *testing.T) {
	s := newSentClaim(t, 1)
	c := s.claim.Charge
	one := func(paid x12.Cents, adjustments ...string) reply {
		t.Helper()
		return s.remit(paid, append([]string{s.clp("1", paid)}, s.svc(0, paid, adjustments...)...)...)
	}
	one(1000, "CAS*CO*45*"+usd(c-2500), "CAS*OA*133*15")
	s.wantReasons(one(1500, "CAS*CO*45*"+usd(c-2500), "CAS*OA*B13*10"))
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 25.0, "adjusted": float64(c-2500) / 100, "open": 0.0})
	s.wantReasons(one(1500, "CAS*CO*45*"+usd(c-2500), "CAS*OA*B13*10"), "already_decided 15")
	s.wantReasons(one(c-100, "CAS*PR*2*1"), "already_decided "+strings.TrimSuffix(strings.TrimSuffix(usd(c-100), "0"), ".0"))
	s.wantReasons(one(0, "CAS*OA*18*"+usd(c)), "already_decided 0")
	s.wantReasons(one(300, "CAS*CO*45*"+usd(c-2800), "CAS*PR*2*25")) // without a word about what was paid before
	s.wantEntry(0, object{"paid_total": 28.0, "open": 0.0})
	tasks := s.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/", nil).want(200)
	tasks.wantAt(object{"credits": 0.0})
}

// Adjustments by contract alone are no denial; remark codes of the claim are kept with lines' adjustments and with none, and decide the next step.
func TestContractualAndNextStep(t *testing.T) {
	for carc, want := range map[string]object{
		"CO*24": {"lifecycle_status": "paid", "denial": nil, "open": 0.0, "paid_total": 0.0}, "CO*45": {"lifecycle_status": "paid", "denial": nil, "open": 0.0},
		"CO*50": {"lifecycle_status": "denied", "denial.code": "CO-50", "denial.next_step": "appeal"},
		"OA*18": {"lifecycle_status": "denied", "denial.next_step": "check_duplicate"},
		"CO*16": {"lifecycle_status": "denied", "denial.next_step": "correct_and_resubmit"},
	} {
		s := newSentClaim(t, 1)
		s.remit(0, append([]string{s.clp("1", 0)}, s.svc(0, 0, "CAS*"+carc+"*"+usd(s.claim.Charge))...)...)
		s.wantEntry(0, want)
	}
	s := newSentClaim(t, 1)
	s.remit(0, append([]string{s.clp("4", 0), "MOA***MA130"}, append(s.svc(0, 0, "CAS*CO*16*"+usd(s.claim.Charge)), "LQ*HE*M76")...)...)
	s.wantEntry(0, object{"lifecycle_status": "denied", "denial.next_step": "new_claim"})
	if text := s.entry(s.entries[0]).body; !strings.Contains(text, `"remarks":["MA130"],"next_step"`) {
		t.Errorf("denied with %s", text)
	}
	s.move(s.entries[0], "appeal", object{"reason": "We disagree"}).want(400, "not_appealable")
	s = newSentClaim(t, 1)
	s.remit(s.claim.Charge, append([]string{s.clp("19", s.claim.Charge), "MOA***MA18*N89"}, s.svc(0, s.claim.Charge)...)...)
	if text := s.entry(s.entries[0]).body; !strings.Contains(text, `"remarks":["MA18","N89"]`) {
		t.Errorf("kept %s", text)
	}
}

// A line without our number, with another or in lower case, is found by its procedure and day; joined payments are read.
func TestLinesWithoutNumber(t *testing.T) {
	for name, reference := range map[string]func(string) []string{
		"none": func(string) []string { return nil }, "lower case": func(r string) []string { return []string{"REF*6R*" + strings.ToLower(r)} },
		"the payer's": func(string) []string { return []string{"REF*6R*774411"} },
	} {
		s := newSentClaim(t, 2)
		segments := []string{s.clp("1", 3000)}
		for i, l := range s.claim.Lines {
			line := s.svc(i, 1500, "CAS*CO*45*"+usd(l.Charge-1500))
			segments = append(append(segments, line[:len(line)-1]...), reference(l.ControlNumber)...)
		}
		if s.wantReasons(s.remit(3000, segments...)); t.Failed() {
			t.Fatal(name)
		}
		s.wantEntry(0, object{"paid_total": 15.0, "open": 0.0})
		s.wantEntry(1, object{"paid_total": 15.0, "open": 0.0})
	}
	s := newSentClaim(t, 1)
	head := []string{"N1*PR*ACME HEALTH", "N1*PE*ELM STREET CLINIC*XX*1234567893", "LX*2"}
	claim := append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)
	other := append([]string{"N1*PR*ACME HEALTH", "N1*PE*OTHER*XX*1245319599", "LX*3"}, strings.Replace(claim[0], "*1*", "*2*", 1), "CAS*CO*45*"+usd(s.claim.Charge-2000))
	s.wantReasons(s.remit(4000, append(append(append([]string{"CLP*V9*1*0*0"}, head...), claim...), other...)...), "unknown_claim 0", "other_payee 20")
	s.wantEntry(0, object{"paid_total": 20.0})
}

// A payment that went back is no duplicate of a later one: by hand after the 835's reversal, and by 835 after the refund or reversal of one by hand.
func TestPaymentAgainAfterItWentBack(t *testing.T) {
	pay := func(s *sentClaim, number string) reply {
		return s.move(s.entries[0], "pay", object{"amount": 20, "payment_date": "2026-01-15", "reference": number, "payer": "primary"})
	}
	s := newSentClaim(t, 1)
	s.wantReasons(s.remit(2000, s.decision(2000, 500)...))
	s.wantReasons(s.remit(-2000, s.back(2000, 500)...))
	pay(s, "CHECK 7").want(200)
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0})
	s.wantReasons(s.remit(2000, s.decision(2000, 500)...), "already_recorded 20")
	s.wantReasons(s.remit(-2000, s.back(2000, 500)...)) // of the payment by hand
	s.wantEntry(0, object{"lifecycle_status": "submitted", "paid_total": 0.0})
	s.wantReasons(s.upload(s.remittance("LATER", 2000, s.decision(2000, 500)...)).want(200))
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0, "patient_responsibility": 5.0})
}
