package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/x12"
)

// sendSecond sends the claim of the first entry to the second payer; s.claim is that claim then.
func (s *sentClaim) sendSecond(body any) {
	s.t.Helper()
	s.move(s.entries[0], "bill-secondary", body).want(200).wantAt(object{"secondary.status": "submitted", "secondary.rejection": nil})
	s.claim = s.file().Claims[0]
}

// answerSecond imports the second payer's payment, with its share of the patient.
func (s *sentClaim) answerSecond(paid, share x12.Cents) reply {
	s.t.Helper()
	return s.remit(paid, append([]string{s.clp("2", paid)}, s.svc(0, paid, "CAS*OA*23*"+usd(s.claim.Charge-paid-share), "CAS*PR*2*"+usd(share))...)...)
}

// The reason for which a claim to the second payer was rejected is shown until the claim is sent again; an older claim's rejection changes nothing.
func TestReasonOfRejectedSecondClaim(t *testing.T) {
	s := newTwiceInsured(t, 1, "CI")
	s.decide("1", 2000, 1000)
	s.wantEntry(0, object{"secondary.status": "due", "secondary.rejection": nil})
	s.sendSecond(nil)
	old := s.file()
	s.upload(s.payer.Write277CA(old, map[string]payer.Rejection{s.claim.ControlNumber: {Category: "A7", Code: "562", Entity: "85"}})).want(200).wantAt(object{"applied": 1.0})
	s.wantEntry(0, object{"lifecycle_status": "paid", "rejection": nil, "secondary.status": "due", "secondary.rejection.source": "277CA"})
	if r := s.entry(s.entries[0]); fmt.Sprint(r.at("secondary.rejection.codes")) != "[A7:562]" || !strings.Contains(r.body, `"entity":"85"`) {
		t.Errorf("the reason is %v", r.at("secondary.rejection"))
	}
	s.request(authz.DataMonitor, "GET", "/billing/entries/?status=paid", nil).want(200) // a list has it, too
	s.takes(1, "patient").wantAt(object{"secondary.status": "due", "secondary.rejection.source": "277CA"})
	s.sendSecond(nil)
	s.payer.Control++
	s.upload(s.payer.Write999(old, payer.Fault{Claim: old.Claims[0].ControlNumber, Element: 2, Code: "7"})).want(200)
	s.wantEntry(0, object{"secondary.status": "submitted", "secondary.rejection": nil})
	s.upload(s.payer.Write999(s.file(), payer.Fault{Claim: s.claim.ControlNumber, Element: 2, Code: "7"})).want(200)
	s.wantEntry(0, object{"secondary.status": "due", "secondary.rejection.source": "999"})
	s.sendSecond(nil)
	s.answerSecond(1000, 0)
	s.wantEntry(0, object{"secondary.status": "paid", "secondary.rejection": nil})
}

// Whether a claim to the second payer is due follows the patient's insurance; what that payer has stays.
func TestSecondClaimFollowsInsurance(t *testing.T) {
	s := newTwiceInsured(t, 1, "CI")
	s.decide("1", 2000, 1000)
	patient := s.entry(s.entries[0]).at("patient_id").(string)
	insure := func(second any) {
		t.Helper()
		s.request(authz.Admin, "PATCH", "/patients/"+patient+"/", object{"insurance": object{"secondary": second}}).want(200)
	}
	insure(nil)
	s.wantEntry(0, object{"secondary": nil})
	s.tasks().wantAt(object{"secondary_due": 0.0})
	other := s.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Third Co", "payer_id": "T3", "edi_payer_id": "THR33", "claim_filing_code": "CI"}).want(201).at("id")
	insure(object{"payer_id": other, "member_id": "T-1"})
	s.wantEntry(0, object{"secondary.status": "due", "secondary.payer_id": other})
	s.tasks().wantAt(object{"secondary_due": 1.0})
	insure(object{"payer_id": s.second, "member_id": "S-77"})
	s.wantEntry(0, object{"secondary.status": "due", "secondary.payer_id": s.second})
	history := s.entry(s.entries[0]).at("history").([]any)
	if last := history[len(history)-1].(object); last["detail"] != "insurance" {
		t.Errorf("the history ends with %v", last)
	}
	s.sendSecond(nil)
	insure(nil)
	s.wantEntry(0, object{"secondary.status": "submitted", "secondary.payer_id": s.second})
}

// A larger share after the second payer's answer is due to it again; a smaller one, or one that it decided on, is not.
func TestLargerShareAfterSecondAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		share x12.Cents
		want  string
	}{"larger": {1500, "due"}, "the same": {1000, "paid"}, "smaller": {500, "paid"}} {
		s := newTwiceInsured(t, 1, "CI")
		s.decide("1", 2000, 1000)
		first := s.claim
		s.sendSecond(nil)
		s.wantReasons(s.answerSecond(1000, 0))
		s.move(s.entries[0], "bill-secondary", nil).want(400, "invalid_state")
		s.claim = first
		s.wantReasons(s.remit(-2000, s.back(2000, 1000)...))
		s.wantEntry(0, object{"lifecycle_status": "submitted", "secondary.status": "paid", "paid_total": 10.0})
		s.wantReasons(s.remit(1800, s.decision(1800, test.share)...))
		if s.wantEntry(0, object{"lifecycle_status": "paid", "secondary.status": test.want, "paid_total": 28.0}); t.Failed() {
			t.Fatal(name)
		}
		if test.want == "due" {
			s.tasks().wantAt(object{"secondary_due": 1.0})
			s.wantIn(s.billSecond(), "AMT*D*18", "CAS*PR*2*15", "AMT*EAF*15")
			s.wantReasons(s.answerSecond(400, 100))
			s.wantEntry(0, object{"secondary.status": "paid", "paid_total": 32.0, "patient_responsibility": 1.0, "open": 0.0})
			s.wantBalanced(name)
		}
	}
}

// A payment of an earlier file is shown by the preview of another envelope that has it.
func TestPreviewOfKnownPayment(t *testing.T) {
	s := newSentClaim(t, 1)
	s.decide("1", 2000, 1000)
	file := remittances("OTHER", paymentSegments("EFT1", 2000, s.decision(2000, 1000)...))
	preview := s.request(authz.DataMonitor, "POST", "/billing/claim-responses/preview/", string(file), "Content-Type", "application/edi-x12").want(200)
	preview.wantAt(object{"applied": 0.0, "repeated": false})
	if list := preview.at("remittances").([]any); len(list) != 1 || list[0].(object)["trace_number"] != "EFT1" || list[0].(object)["posted"] != 20.0 {
		t.Errorf("the preview shows %v", list)
	}
	s.wantDeposits(1)
}

// A claim that the second payer lost, or did not answer again after its reversal, is sent again on request; its answer closes it.
func TestSecondClaimGoesAgain(t *testing.T) {
	s := newTwiceInsured(t, 1, "CI")
	s.decide("1", 2000, 1000)
	s.sendSecond(object{"resend": true}) // due: nothing to repeat
	s.move(s.entries[0], "bill-secondary", nil).want(400, "invalid_state")
	s.move(s.entries[0], "bill-secondary", object{"resend": "yes"}).wantFields("resend")
	s.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": s.entries, "resend": true}).wantFields("resend")
	lost := s.claim.ControlNumber
	s.sendSecond(object{"resend": true})
	if s.claim.ControlNumber == lost {
		t.Error("the claim has its old number")
	}
	batches := s.request(authz.Admin, "GET", "/billing/claim-batches/", nil).want(200).results()
	if fmt.Sprint(batches[1]["answers"].(object)["sent_again"], batches[0]["answers"].(object)["open"]) != "1 1" {
		t.Errorf("the answers are %v and %v", batches[1]["answers"], batches[0]["answers"])
	}
	s.wantReasons(s.answerSecond(1000, 0))
	s.move(s.entries[0], "bill-secondary", object{"resend": true}).want(400, "invalid_state")
	s.wantReasons(s.remit(-1000, s.backed(1000, "CAS*OA*23*-37.87")...))
	s.wantEntry(0, object{"secondary.status": "submitted", "patient_responsibility": 10.0, "open": 0.0})
	s.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": s.entries, "sequence": "secondary", "resend": true}).want(201)
	s.claim = s.file().Claims[0]
	s.wantReasons(s.answerSecond(900, 100))
	s.wantEntry(0, object{"secondary.status": "paid", "paid_total": 29.0, "patient_responsibility": 1.0, "open": 0.0})
	s.wantBalanced("sent again")
}

// A claim to the second payer that was only a test is sent again for production, and an answer to the test changes nothing.
func TestTestOfSecondClaim(t *testing.T) {
	s := newTwiceInsured(t, 1, "CI")
	s.decide("1", 2000, 1000)
	s.sendSecond(nil)
	s.money.Claims.Submitter.Usage = "P"
	answer := func(paid, share x12.Cents) reply {
		segments := append([]string{s.clp("2", paid)}, s.svc(0, paid, "CAS*OA*23*"+usd(s.claim.Charge-paid-share), "CAS*PR*2*"+usd(share))...)
		return s.upload([]byte(strings.Replace(string(s.remittance("EFTP", paid, segments...)), "*0*T*:", "*0*P*:", 1))).want(200)
	}
	s.wantReasons(answer(1000, 0), "test_usage 10")
	s.wantEntry(0, object{"secondary.status": "submitted", "paid_total": 20.0})
	s.sendSecond(nil)
	s.wantReasons(answer(800, 200))
	s.wantEntry(0, object{"secondary.status": "paid", "paid_total": 28.0, "patient_responsibility": 2.0, "open": 0.0})
	s.wantDeposits(3)
}

// A line that the second payer paid keeps that when it goes along with another, and when an answer to a copy of the claim denies it.
func TestPaidBySecondPayerStays(t *testing.T) {
	s := newTwiceInsured(t, 2, "CI")
	both := func(paid x12.Cents, share string) []string {
		list := []string{s.clp("1", 2*paid)}
		for n := range 2 {
			list = append(list, s.svc(n, paid, "CAS*CO*45*"+usd(s.claim.Lines[n].Charge-paid-500), "CAS*PR*2*"+share)...)
		}
		return list
	}
	s.remit(4000, both(2000, "5")...)
	s.sendSecond(nil)
	s.takes(5, "secondary").wantAt(object{"secondary.status": "paid"})
	denial := append([]string{s.clp("4", 0)}, append(s.svc(0, 0, "CAS*CO*18*"+usd(s.claim.Lines[0].Charge)), s.svc(1, 0, "CAS*CO*29*"+usd(s.claim.Lines[1].Charge))...)...)
	s.wantReasons(s.remit(0, denial...))
	s.wantEntry(0, object{"lifecycle_status": "paid", "secondary.status": "paid", "paid_total": 25.0, "open": 0.0})
	s.wantEntry(1, object{"lifecycle_status": "paid", "secondary.status": "denied", "patient_responsibility": 5.0})
	if list := s.entry(s.entries[1]).at("payments").([]any); !strings.HasPrefix(fmt.Sprint(list[len(list)-1].(object)["reason"]), "CO-29: ") {
		t.Errorf("the denial is %v", list[len(list)-1])
	}
	s.move(s.entries[1], "bill-secondary", nil).want(200).wantAt(object{"secondary.status": "submitted"})
	s.wantEntry(0, object{"secondary.status": "paid"})
}

// A paid claim that waits to be replaced does not go as an original.
func TestPaidWaitingClaimIsNoOriginal(t *testing.T) {
	s := newSentClaim(t, 1)
	s.decide("1", 2000, 1000)
	s.move(s.entries[0], "resubmit", nil).want(200).wantAt(object{"lifecycle_status": "submitted", "claim_frequency_code": "7"})
	s.move(s.entries[0], "resubmit", object{"new_claim": true}).wantFields("new_claim")
	s.setPayer(object{"corrected_claims": "new_claim"})
	s.move(s.entries[0], "resubmit", nil).want(400, "reopening_required")
	if r := s.request(authz.DataMonitor, "GET", "/billing/entries/"+s.entries[0]+"/preflight/", nil).want(200); !strings.Contains(r.body, `"reopening_required"`) {
		t.Errorf("preflight finds %s", r.body)
	}
	s.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": s.entries}).want(400)
}

// A 999 that names no claim (no CTX) shows no values: they may be another patient's.
func TestValuesOfErrorWithoutClaim(t *testing.T) {
	for isNamed, want := range map[bool]any{true: "118.4", false: nil} {
		s := newSentClaim(t, 1)
		file := string(s.payer.Write999(s.file(), payer.Fault{Claim: s.claim.ControlNumber, Element: 2, Code: "7"}))
		file = strings.Replace(file, "IK4*2**7", "IK4*2**7*118.4", 1)
		if !isNamed {
			from := strings.Index(file, "CTX*CLM01:")
			file = file[:from] + file[from+strings.Index(file[from:], "~")+1:]
			at := strings.Index(file, "~SE*") + 4
			file = file[:at] + fmt.Sprint(int(file[at]-'0')-1) + file[at+1:]
		}
		s.upload([]byte(file)).want(200).wantAt(object{"applied": 1.0})
		if got := s.entry(s.entries[0]).at("rejection.details").([]any)[0].(object)["value"]; got != want {
			t.Errorf("named %v: the value is %v, want %v", isNamed, got, want)
		}
	}
}
