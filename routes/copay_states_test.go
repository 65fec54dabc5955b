package routes_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// takes records a payment by hand and returns the entry.
func (s *sentClaim) takes(amount float64, from string) reply {
	s.t.Helper()
	s.count++
	return s.move(s.entries[0], "pay", object{"amount": amount, "payment_date": "2026-01-15", "reference": fmt.Sprint("HAND", s.count), "payer": from}).want(200)
}

// inDollars rounds a sum to cents.
func inDollars(sum float64) float64 { return math.Round(sum*100) / 100 }

// file returns the claim as the submission that has it.
func (s *sentClaim) file() payer.Submission {
	batches := s.request(authz.Admin, "GET", "/billing/claim-batches/", nil).want(200).results()
	raw := s.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batches[0]["id"], "/file/"), nil).want(200).body
	file, err := payer.Read837P([]byte(raw))
	if err != nil {
		s.t.Fatal(err)
	}
	return file
}

// What the patient or the second payer pays decides nothing for the first payer: its claim can be rejected, denied, paid, voided and sent again as without it.
func TestPaymentOfOthersLeavesClaimUndecided(t *testing.T) {
	for _, from := range []string{"patient", "secondary"} {
		for _, amount := range []float64{10, 47.87} {
			t.Run(fmt.Sprint(from, " ", amount), func(t *testing.T) {
				newClaim := func() *sentClaim {
					s := newTwiceInsured(t, 1, "CI")
					s.t = t
					s.takes(amount, from).wantAt(object{"lifecycle_status": "submitted", "paid_total": amount, "denial": nil})
					s.tasks().wantAt(object{"credits": 0.0, "open_balances": 0.0})
					return s
				}
				s := newClaim() // rejected, sent again, paid
				s.upload(s.payer.Write277CA(s.file(), map[string]payer.Rejection{s.claim.ControlNumber: {Category: "A7", Code: "562"}})).want(200).wantAt(object{"applied": 1.0, "unmatched": 0.0})
				s.wantEntry(0, object{"lifecycle_status": "reviewed", "paid_total": amount, "rejection.source": "277CA"})
				_, file := s.send(s.entries[0])
				s.claim = file.Claims[0]
				s.wantEntry(0, object{"lifecycle_status": "submitted", "rejection": nil})
				s.wantReasons(s.remit(2000, s.decision(2000, 1000)...))
				s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": inDollars(20 + amount), "adjusted": 17.87, "patient_responsibility": 0.0, "open": inDollars(10 - amount)})
				s.wantBalanced("rejected and paid")

				s = newClaim() // denied, sent again as it was never decided
				s.wantReasons(s.remit(0, append([]string{s.clp("4", 0)}, s.svc(0, 0, "CAS*CO*50*"+usd(s.claim.Charge))...)...))
				s.wantEntry(0, object{"lifecycle_status": "denied", "adjusted": 47.87, "open": -amount})
				s.move(s.entries[0], "resubmit", nil).want(200).wantAt(object{"lifecycle_status": "submitted", "adjusted": 0.0, "open": inDollars(47.87 - amount)})
				s.wantBalanced("denied and sent again")

				s = newClaim() // denied by phone, appealed, paid by the patient again, paid
				s.move(s.entries[0], "deny", object{"code": "CO-50", "description": "By phone"}).want(200).wantAt(object{"lifecycle_status": "denied"})
				s.move(s.entries[0], "appeal", object{"reason": "It was necessary"}).want(200)
				if amount == 10 {
					s.takes(1, "patient").wantAt(object{"lifecycle_status": "appealed", "paid_total": 11.0})
					s.takes(20, "primary").wantAt(object{"lifecycle_status": "paid"})
				}
				s.wantBalanced("appealed")

				s = newClaim() // voided by the payer after the money went back
				s.move(s.entries[0], "request-void", object{"reason": "Wrong patient"}).want(200).wantAt(object{"lifecycle_status": "refund_due", "claim_frequency_code": "8"})
				s.move(s.entries[0], "refund", object{"amount": amount, "date": "2026-01-15", "reference": "CHK"}).want(200).wantAt(object{"lifecycle_status": "void_requested"})
				s.move(s.entries[0], "request-void", object{"payer_control_number": "ICN-9"}).want(200)
				if _, file := s.send(s.entries[0]); file.Claims[0].Frequency != "8" {
					t.Errorf("the void is sent as %s", file.Claims[0].Frequency)
				}
				s.move(s.entries[0], "void", object{"reason": "The payer voided it"}).want(200).wantAt(object{"lifecycle_status": "refunded", "refund.amount": amount})
				s.wantBalanced("voided")

				s = newClaim() // rejected and given up: the money goes back
				s.upload(s.payer.Write999(s.file(), payer.Fault{Claim: s.claim.ControlNumber, Element: 2, Code: "7"})).want(200)
				s.wantEntry(0, object{"lifecycle_status": "reviewed"})
				s.move(s.entries[0], "void", object{"reason": "Not billable"}).want(200).wantAt(object{"lifecycle_status": "refund_due", "repay_by": "2026-03-16"})
				s.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": s.entries}).want(400)
				s.move(s.entries[0], "refund", object{"amount": amount, "date": "2026-01-15", "reference": "CHK"}).want(200).wantAt(object{"lifecycle_status": "refunded"})
			})
		}
	}
}
