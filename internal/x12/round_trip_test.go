package x12_test

import (
	"fmt"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/x12"
)

// A thousand claims each return under their own control number with their result: rejected, paid in full, paid in part, denied, reversed.
func TestClaimRoundTrip(t *testing.T) {
	b := batchOf(1000)
	s := received(t, written(t, b))
	if len(s.Claims) != len(b.Claims) {
		t.Fatalf("%d claims arrived", len(s.Claims))
	}
	sent := map[string]x12.Claim{}
	for _, c := range b.Claims {
		sent[c.ControlNumber] = c
	}
	p := newPayer()
	refusals, decisions, want := map[string]payer.Rejection{}, map[string]payer.Decision{}, map[string]string{}
	for i, c := range s.Claims {
		if claim := sent[c.ControlNumber]; c.Charge != claim.Charge() || c.PayerControlNumber != claim.PayerControlNumber || len(c.Lines) != 3 || c.Frequency != claim.Frequency {
			t.Fatalf("claim %d arrived as %+v", i, c)
		}
		switch i % 7 {
		case 0:
			refusals[c.ControlNumber] = payer.Rejection{Category: "A7", Code: "562"}
			decisions[c.ControlNumber] = payer.NoDecision()
			want[c.ControlNumber] = "refused"
		case 1:
			decisions[c.ControlNumber] = payer.Partly(1000, 500, 300)
			want[c.ControlNumber] = "1:11452:2400"
		case 2:
			decisions[c.ControlNumber] = payer.Deny("CO", "50", "N115")
			want[c.ControlNumber] = "4:0:0"
		case 3:
			decisions[c.ControlNumber] = payer.Then(payer.Full(), payer.Reverse(payer.Full()), payer.Partly(0, 0, 1000))
			want[c.ControlNumber] = "1:16852:0 22:-16852:0 1:13852:3000"
		default:
			want[c.ControlNumber] = "1:16852:0"
		}
	}
	if a := answered(t, p.Write999(s)); a.ImplementationAck.Rejected() || a.ImplementationAck.Sets[0].Rejected() || a.ImplementationAck.Group != "4711" || a.ImplementationAck.Sets[0].ControlNumber != "0001" {
		t.Errorf("999: %+v", a.ImplementationAck)
	}
	got, payers := map[string]string{}, map[string]string{}
	for _, provider := range answered(t, p.Write277CA(s, refusals)).ClaimAck.Sources[0].Providers {
		for _, c := range provider.Claims {
			if c.Rejected() {
				got[c.ControlNumber] = "refused"
			}
			payers[c.ControlNumber] = c.PayerControlNumber
		}
	}
	pay := answered(t, p.Write835(s, decisions, x12.ProviderAdjustment{Reason: "WO", Amount: 4302})).Remittance
	for _, c := range pay.Claims {
		if got[c.ControlNumber] != "" {
			got[c.ControlNumber] += " "
		}
		got[c.ControlNumber] += fmt.Sprintf("%s:%d:%d", c.Status, c.Paid, c.PatientResponsibility)
		if c.PayerControlNumber != payers[c.ControlNumber] {
			t.Errorf("the payer has two numbers for %s", c.ControlNumber)
		}
		for i, line := range c.Lines {
			if l := sent[c.ControlNumber].Lines[i]; l.ControlNumber != line.ControlNumber || l.Procedure != line.Procedure || l.From != line.From || l.Through != line.Through {
				t.Errorf("line %d of %s came back as another one", i, c.ControlNumber)
			}
		}
	}
	for number, word := range want {
		if got[number] != word {
			t.Errorf("%s: %q, want %q", number, got[number], word)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d claims came back, of %d", len(got), len(want))
	}
	if refused := answered(t, p.Write999(s, payer.Fault{Claim: s.Claims[9].ControlNumber, Element: 2, Code: "1"})).ImplementationAck; !refused.Rejected() ||
		refused.Sets[0].Errors[0].Claim != s.Claims[9].ControlNumber {
		t.Errorf("rejecting 999: %+v", refused)
	}
}
