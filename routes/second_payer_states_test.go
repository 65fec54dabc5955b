package routes_test

import (
	"fmt"
	"testing"

	"github.com/vigilhealth/vigil/internal/x12"
)

// deny imports the first payer's denial of the whole charge.
func (s *sentClaim) deny(adjustment string) {
	s.t.Helper()
	s.wantReasons(s.remit(0, append([]string{s.clp("4", 0)}, s.svc(0, 0, adjustment+"*"+usd(s.claim.Charge))...)...))
}

// backed returns the segments of a reversal of what the second payer paid and adjusted; each adjustment ends with its amount.
func (s *sentClaim) backed(paid x12.Cents, adjustments ...string) []string {
	l := s.claim.Lines[0]
	list := append([]string{
		fmt.Sprintf("CLP*%s*22*-%s*-%s**12*ICN2*11*1", s.claim.ControlNumber, usd(s.claim.Charge), usd(paid)),
		fmt.Sprintf("SVC*HC:%s*-%s*-%s**1", l.Procedure[1], usd(l.Charge), usd(paid)), "DTM*472*" + l.From,
	}, adjustments...)
	return append(list, "REF*6R*"+l.ControlNumber)
}

// A payment by check for a claim that the first payer denied lessens what the denial adjusted: the second payer's makes the claim paid, the patient's
// leaves it denied.
func TestPaymentByHandOfDeniedClaim(t *testing.T) {
	for _, denial := range []string{"CAS*CO*96", "CAS*PR*96"} {
		s := newTwiceInsured(t, 1, "CI")
		s.deny(denial)
		s.move(s.entries[0], "pay", object{"amount": 5, "payment_date": "2026-01-15", "reference": "C-1"}).want(400, "invalid_transition")
		s.takes(5, "patient").wantAt(object{"lifecycle_status": "denied", "secondary.status": "due", "paid_total": 5.0})
		s.wantBalanced(denial + ", the patient")
		s = newTwiceInsured(t, 1, "CI")
		s.deny(denial)
		s.takes(30, "secondary").wantAt(object{"lifecycle_status": "paid", "secondary.status": "paid", "paid_total": 30.0, "open": 0.0})
		s.tasks().wantAt(object{"credits": 0.0, "open_balances": 0.0, "secondary_due": 0.0})
		s.takes(7.87, "secondary").wantAt(object{"lifecycle_status": "paid", "paid_total": 37.87})
		s.wantBalanced(denial)
	}
	s := newTwiceInsured(t, 1, "CI")
	s.move(s.entries[0], "deny", object{"code": "CO-96", "description": "By phone"}).want(200)
	s.takes(47.87, "secondary").wantAt(object{"lifecycle_status": "paid", "secondary.status": "paid", "open": 0.0})
	s.wantBalanced("denied by phone")
}

// The second payer's denial after its reversal leaves the first payer's decision as it was, a denial too.
func TestReversalThenDenialBySecondPayer(t *testing.T) {
	for name, first := range map[string]func(*sentClaim) object{
		"denied": func(s *sentClaim) object {
			s.deny("CAS*CO*96")
			return object{"lifecycle_status": "denied", "paid_total": 0.0, "adjusted": 47.87, "open": 0.0}
		},
		"denied, PR": func(s *sentClaim) object {
			s.deny("CAS*PR*96")
			return object{"lifecycle_status": "denied", "adjusted": 0.0, "patient_responsibility": 47.87, "open": 0.0}
		},
		"denied, phone": func(s *sentClaim) object {
			s.move(s.entries[0], "deny", object{"code": "CO-96", "description": "By phone"}).want(200)
			return object{"lifecycle_status": "denied", "adjusted": 0.0, "open": 47.87}
		},
		"paid": func(s *sentClaim) object {
			s.decide("1", 2000, 1000)
			return object{"lifecycle_status": "paid", "paid_total": 20.0, "adjusted": 17.87, "patient_responsibility": 10.0, "open": 0.0}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTwiceInsured(t, 1, "CI")
			s.t = t
			decided := first(s)
			s.billSecond()
			s.wantReasons(s.remit(800, append([]string{s.clp("2", 800)}, s.svc(0, 800, "CAS*CO*45*37.87", "CAS*PR*2*2")...)...))
			s.wantEntry(0, object{"lifecycle_status": "paid", "secondary.status": "paid"})
			s.wantReasons(s.remit(-800, s.backed(800, "CAS*CO*45*-37.87", "CAS*PR*2*-2")...))
			s.wantEntry(0, decided)
			s.wantEntry(0, object{"secondary.status": "submitted"})
			s.wantBalanced("reversed")
			s.wantReasons(s.remit(0, append([]string{s.clp("4", 0)}, s.svc(0, 0, "CAS*CO*29*"+usd(s.claim.Charge))...)...))
			s.wantEntry(0, decided)
			s.wantEntry(0, object{"secondary.status": "denied"})
			s.wantReasons(s.remit(700, append([]string{s.clp("2", 700)}, s.svc(0, 700, "CAS*CO*45*37.87", "CAS*PR*2*3")...)...))
			s.wantEntry(0, object{"lifecycle_status": "paid", "secondary.status": "paid"})
			s.wantBalanced("corrected")
		})
	}
}

// What the first payer pays by check of the patient's share lessens the share that its decision states to the second payer.
func TestFirstPayerPaysShareByHand(t *testing.T) {
	s := newTwiceInsured(t, 1, "CI")
	s.decide("1", 2000, 1000)
	s.takes(3, "primary").wantAt(object{"paid_total": 23.0, "patient_responsibility": 7.0, "open": 0.0})
	s.takes(2, "patient").wantAt(object{"patient_responsibility": 5.0})
	s.wantIn(s.billSecond(), "AMT*D*23", "SVD*60054*23*HC:99457**1", "CAS*CO*45*17.87", "CAS*PR*2*7", "AMT*EAF*7")
}

// The second payer's payment that comes again with another check is not posted again.
func TestSecondPayerPaysTwice(t *testing.T) {
	for name, segments := range map[string][]string{
		"its own contract": {"CAS*CO*45*17.87", "CAS*OA*23*22", "CAS*PR*2*2"},
		"as prior payer":   {"CAS*OA*23*39.87", "CAS*PR*2*2"},
	} {
		s := newTwiceInsured(t, 1, "CI")
		s.decide("1", 2000, 1000)
		answer := func(more ...string) []string {
			return append([]string{s.clp("2", 600)}, s.svc(0, 600, append(segments, more...)...)...)
		}
		s.wantReasons(s.remit(600, answer()...))
		want := object{"paid_total": 26.0, "adjusted": 19.87, "patient_responsibility": 2.0, "open": 0.0}
		if name == "as prior payer" {
			want = object{"paid_total": 26.0, "patient_responsibility": 2.0}
		}
		s.wantEntry(0, want)
		s.wantReasons(s.remit(600, answer()...), "already_decided 6")
		s.wantEntry(0, want)
		s.wantBalanced(name)
		s.wantDeposits(3)
	}
}

// The second payer's answer that is imported before the first payer's is its money alone; the first payer's decision follows it.
func TestSecondPayerAnswersFirst(t *testing.T) {
	s := newTwiceInsured(t, 1, "CI")
	answer := append([]string{s.clp("2", 600)}, s.svc(0, 600, "CAS*OA*23*37.87", "CAS*PR*2*4")...)
	s.wantReasons(s.remit(600, answer...))
	s.wantEntry(0, object{"lifecycle_status": "submitted", "paid_total": 6.0, "adjusted": 0.0, "patient_responsibility": 0.0, "open": 41.87, "secondary.status": "paid"})
	s.wantReasons(s.remit(600, answer...), "already_decided 6")
	s.wantReasons(s.remit(2000, s.decision(2000, 1000)...))
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 26.0, "adjusted": 17.87, "patient_responsibility": 4.0, "open": 0.0, "secondary.status": "paid"})
	s.wantBalanced("after the first payer")
}
