package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// unmatched returns the entries of a payer's answer that need a person.
func (cc *claimsClinic) unmatched(answer reply) string {
	cc.t.Helper()
	return cc.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-responses/", answer.at("id"), "/"), nil).want(200).body
}

// A claim that is rejected while a user requests its void becomes a task: there is no claim to void.
func TestRejectionOfClaimBeingVoided(t *testing.T) {
	h := newClaimsClinic(t)
	a, b := h.insured("Ada", 20, nil), h.insured("Bea", 20, nil)
	entries := h.reviewed()
	one, two := entries[a+" 99457"], entries[b+" 99457"]
	_, file := h.send(one)
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+one+"/request-void/", nil).want(200)
	claim := h.claimOf(one, file)
	answer := h.upload(h.payer.Write277CA(file, map[string]payer.Rejection{claim: {Category: "A7", Code: "562"}})).want(200).wantAt(object{"applied": 0.0, "unmatched": 1.0})
	if text := h.unmatched(answer); !strings.Contains(text, claim) || !strings.Contains(text, `"reason":"void_requested"`) {
		t.Errorf("left %s", text)
	}
	h.entry(one).wantAt(object{"lifecycle_status": "void_requested"})
	h.upload(h.payer.Write999(file, payer.Fault{Claim: claim, Element: 2, Code: "7"})).want(200).wantAt(object{"unmatched": 1.0})

	_, file = h.send(two) // a rejected void is sent as a void once more
	h.upload(h.payer.Write277CA(file, nil)).want(200)
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+two+"/request-void/", nil).want(200)
	_, file = h.send(two)
	back := h.payer.Write277CA(file, map[string]payer.Rejection{h.claimOf(two, file): {Category: "A7", Code: "562"}})
	h.upload(back).want(200).wantAt(object{"applied": 1.0, "unmatched": 0.0})
	h.upload([]byte(strings.ReplaceAll(string(back), "~", "~\n"))).want(200).wantAt(object{"applied": 0.0, "unmatched": 0.0})
	h.send(two)
}

// A payment to another payee is not applied even if it names our claim number, and a file without our number needs a
// person to assign it.
func TestPaymentToOtherPayee(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 20, nil)
	entry := h.reviewed()[id+" 99457"]
	_, file := h.send(entry)
	paid := string(h.payer.Write835(file, nil))
	other := strings.Replace(paid, "*XX*1234567893", "*XX*1245319599", 1)
	answer := h.upload([]byte(other)).want(200).wantAt(object{"applied": 0.0, "unmatched": 1.0})
	if text := h.unmatched(answer); !strings.Contains(text, `"reason":"other_payee"`) {
		t.Errorf("left %s", text)
	}
	h.entry(entry).wantAt(object{"lifecycle_status": "submitted", "paid_total": 0.0})

	h.money.Claims.Submitter.ID = ""
	h.upload([]byte(paid)).want(400, "invalid_x12").wantAt(object{"segment": "ISA", "position": 8.0})
	h.money.Claims.Submitter.ID = "SUB1"
	h.upload([]byte(strings.Replace(paid, "*XX*1234567893", "*FI*12-3456789", 1))).want(200).wantAt(object{"applied": 1.0})
	h.entry(entry).wantAt(object{"lifecycle_status": "paid"})
}

// An answer marked for production cannot be about a claim that was only sent as a test: it needs a person, and the claim
// is still sent for production.
func TestProductionAnswerToTestClaim(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 20, nil)
	entry := h.reviewed()[id+" 99457"]
	_, test := h.send(entry)
	claim := h.claimOf(entry, test)

	h.money.Claims.Submitter.Usage, h.payer.Usage = "P", "P"
	for name, answer := range map[string][]byte{
		"999":    h.payer.Write999(test, payer.Fault{Claim: claim, Element: 2, Code: "7"}),
		"277CA":  h.payer.Write277CA(test, map[string]payer.Rejection{claim: {Category: "A7", Code: "562"}}),
		"taken":  h.payer.Write277CA(test, nil),
		"paid":   h.payer.Write835(test, nil),
		"denied": h.payer.Write835(test, map[string]payer.Decision{claim: payer.Deny("CO", "16")}),
	} {
		answered := h.upload(answer).want(200).wantAt(object{"applied": 0.0, "unmatched": 1.0})
		if text := h.unmatched(answered); !strings.Contains(text, `"reason":"test_usage"`) {
			t.Errorf("%s: left %s", name, text)
		}
		h.entry(entry).wantAt(object{"lifecycle_status": "submitted", "paid_total": 0.0, "rejection": nil})
	}

	_, real := h.send(entry)
	if c := real.Claims[0]; c.Frequency != "1" || c.ControlNumber == claim {
		t.Errorf("sent as %+v", c)
	}
	h.upload(h.payer.Write835(real, nil)).want(200).wantAt(object{"applied": 1.0, "unmatched": 0.0})
	h.entry(entry).wantAt(object{"lifecycle_status": "paid"})
}
