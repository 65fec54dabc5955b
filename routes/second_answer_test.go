package routes_test

import (
	"testing"

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
