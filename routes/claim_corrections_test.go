package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// setPayer changes the insurer.
func (h *claimsClinic) setPayer(changes object) reply {
	h.t.Helper()
	return h.request(authz.Admin, "PATCH", fmt.Sprint("/billing/payers/", h.insurer, "/"), changes).want(200)
}

// decided sends the reviewed 99457 of a new patient and applies the payer's decision.
func (h *claimsClinic) decided(name string, decision payer.Decision) (entry string, sent payer.Claim) {
	h.t.Helper()
	id := h.insured(name, 20, nil)
	entry = h.reviewed()[id+" 99457"]
	_, file := h.send(entry)
	h.upload(h.payer.Write835(file, map[string]payer.Decision{file.Claims[0].ControlNumber: decision})).want(200)
	h.payer.Control++
	return entry, file.Claims[0]
}

// The frequency of a claim that is sent again follows from the payer, the state and the remark; REF F8 is only the payer's number.
func TestFrequencyOfCorrectedClaims(t *testing.T) {
	h := newClaimsClinic(t)
	again := func(entry string) payer.Claim {
		t.Helper()
		h.moveEntry(entry, "resubmit", nil).want(200).wantAt(object{"lifecycle_status": "submitted"})
		_, file := h.send(entry)
		return file.Claims[0]
	}
	wantClaim := func(what string, got payer.Claim, frequency, number string) {
		t.Helper()
		if got.Frequency != frequency || got.PayerControlNumber != number {
			t.Errorf("%s: frequency %s for %q, want %s for %q", what, got.Frequency, got.PayerControlNumber, frequency, number)
		}
	}
	h.setPayer(object{}).wantAt(object{"corrected_claims": "replacement"})
	denied, sent := h.decided("Ada", payer.Deny("CO", "50"))
	wantClaim("denied", again(denied), "7", sent.Number())
	unprocessed, _ := h.decided("Bea", payer.Deny("CO", "16", "MA130"))
	h.moveEntry(unprocessed, "appeal", object{"reason": "It was complete"}).want(400, "not_appealable")
	wantClaim("not processed", again(unprocessed), "1", "")
	paid, sent := h.decided("Cleo", payer.Full())
	wantClaim("paid", again(paid), "7", sent.Number())
	if got := h.entry(paid).at("paid_total"); got == 0.0 {
		t.Error("the payment is gone before the payer reversed it")
	}
	voided, sent := h.decided("Dora", payer.Full())
	h.moveEntry(voided, "request-void", nil).want(200).wantAt(object{"lifecycle_status": "refund_due", "claim_frequency_code": "8"})
	_, file := h.send(voided)
	wantClaim("paid, voided", file.Claims[0], "8", sent.Number())
	h.upload(h.payer.Write835(file, map[string]payer.Decision{file.Claims[0].ControlNumber: payer.Reverse(payer.Full())})).want(200)
	h.entry(voided).wantAt(object{"lifecycle_status": "refunded"})

	eva := h.insured("Eva", 20, nil)
	byHand := h.reviewed()[eva+" 99457"]
	h.send(byHand)
	h.moveEntry(byHand, "deny", object{"code": "CO-50", "description": "Not necessary"}).want(200)
	h.moveEntry(byHand, "resubmit", nil).want(200)
	if r := h.request(authz.DataMonitor, "GET", "/billing/entries/"+byHand+"/preflight/", nil).want(200); !strings.Contains(r.body, `"missing_original_claim"`) {
		t.Errorf("preflight of a replacement without the payer's number: %s", r.body)
	}
	h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{byHand}}).want(400)

	h.setPayer(object{"claim_filing_code": "MB"}).wantAt(object{"corrected_claims": "new_claim"})
	denied, _ = h.decided("Fay", payer.Deny("CO", "50"))
	wantClaim("denied by Medicare", again(denied), "1", "")
	paid, _ = h.decided("Gia", payer.Full())
	for _, move := range []string{"resubmit", "request-void"} {
		h.moveEntry(paid, move, nil).want(400, "reopening_required")
	}
	h.entry(paid).wantAt(object{"lifecycle_status": "paid"})
	h.moveEntry(paid, "request-void", object{"refund": true}).want(200).wantAt(object{"lifecycle_status": "refund_due"})
	h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{paid}}).want(400)
	h.setPayer(object{"corrected_claims": "replacement"}).wantAt(object{"corrected_claims": "replacement"})
	paid, sent = h.decided("Hal", payer.Full())
	wantClaim("paid by a payer that takes replacements", again(paid), "7", sent.Number())
}

// The settings of a payer are checked, shown and kept.
func TestPayerSettings(t *testing.T) {
	h := newClaimsClinic(t)
	all := object{
		"corrected_claims": "new_claim", "minutes_rule": "care_management", "device_days": 16.0, "receiver_ids": []any{"HOUSE2", "12345"},
		"send_ordering_provider": true, "modifiers": []any{object{"cpt_code": "99457", "modifiers": []any{"25", "GW"}}},
	}
	h.setPayer(all)
	got := h.request(authz.Admin, "GET", "/billing/payers/", nil).want(200).results()[0]
	for name, want := range all {
		if fmt.Sprint(got[name]) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	for field, wrong := range map[string]object{
		"corrected_claims": {"corrected_claims": "both"}, "minutes_rule": {"minutes_rule": "all"}, "device_days": {"device_days": 3},
		"receiver_ids.0": {"receiver_ids": []string{"TOO LONG FOR AN ISA08"}}, "modifiers.0.cpt_code": {"modifiers": []object{{"cpt_code": "1", "modifiers": []string{}}}},
		"modifiers.0.modifiers.0": {"modifiers": []object{{"cpt_code": "99457", "modifiers": []string{"ABC"}}}},
	} {
		h.request(authz.Admin, "PATCH", fmt.Sprint("/billing/payers/", h.insurer, "/"), wrong).wantFields(field)
	}
	h.setPayer(object{"minutes_rule": nil, "device_days": nil, "receiver_ids": nil, "corrected_claims": nil}).wantAt(object{
		"minutes_rule": nil, "device_days": nil, "corrected_claims": "replacement",
	})
	entry, sent := h.decided("Ada", payer.Full())
	if m := sent.Lines[0].Procedure; fmt.Sprint(m) != "[HC 99457 25 GW]" {
		t.Errorf("the line of %s has the procedure %v", entry, m)
	}
}
