package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// setPayer changes the insurer.
func (cc *claimsClinic) setPayer(changes object) reply {
	cc.t.Helper()
	return cc.request(authz.Admin, "PATCH", fmt.Sprint("/billing/payers/", cc.insurer, "/"), changes).want(200)
}

// decided sends the reviewed 99457 of a new patient and applies the payer's decision.
func (cc *claimsClinic) decided(name string, decision payer.Decision) (entry string, sent payer.Claim) {
	cc.t.Helper()
	id := cc.insured(name, 20, nil)
	entry = cc.reviewed()[id+" 99457"]
	_, file := cc.send(entry)
	cc.upload(cc.payer.Write835(file, map[string]payer.Decision{file.Claims[0].ControlNumber: decision})).want(200)
	cc.payer.Control++
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
		"modifiers.0.modifiers":   {"modifiers": []object{{"cpt_code": "99457", "modifiers": []string{"25", "25"}}}},
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

// A claim names who referred the patient and, for a payer that requires it, who ordered the monitoring; Medicare second needs its reason.
func TestNamedPractitioners(t *testing.T) {
	h := newClaimsClinic(t)
	send := func(id, code string) string {
		t.Helper()
		entry := h.reviewed()[id+" "+code]
		batch := h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{entry}}).want(201)
		raw := h.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch.at("id"), "/file/"), nil).want(200).body
		for _, reader := range []payer.Reader{payer.Pyx12, payer.LinuxForHealth} {
			if found := reader.Read(t, []byte(raw)); !found.OK || len(found.Errors) > 0 {
				t.Errorf("a reader finds %q in %s", found.Errors, raw)
			}
		}
		return raw
	}
	wantIn := func(raw string, segments ...string) {
		t.Helper()
		for _, s := range segments {
			if !strings.Contains(raw, s) {
				t.Errorf("no %s in %s", s, raw)
			}
		}
	}
	plain := send(h.insured("Ada", 20, nil), "99457")
	if strings.Contains(plain, "NM1*DK") || strings.Contains(plain, "NM1*DN") {
		t.Errorf("names nobody asked for: %s", plain)
	}
	h.setPayer(object{"send_ordering_provider": true})
	bea := h.insured("Bea", 20, object{"member_id": "W-1.2/3 (A)&B=C"})
	raw := send(bea, "99457")
	wantIn(raw, "NM1*82*1*", "*XX*1245319599~", "*MI*W-1.2/3 (A)&B=C~")
	if strings.Contains(raw, "NM1*DK") { // the rendering provider ordered it
		t.Errorf("names the rendering provider again: %s", raw)
	}
	cleo := h.insured("Cleo", 20, nil)
	outside := object{"npi": "1003000126", "first_name": "Olive", "last_name": "Out"}
	h.request(authz.Provider, "POST", "/patients/"+cleo+"/orders/", object{"kind": "rpm_order", "dated": "2025-12-02", "ordering_provider": outside}).want(201).
		wantAt(object{"ordering_provider.npi": "1003000126"})
	h.request(authz.Provider, "POST", "/patients/"+cleo+"/orders/", object{
		"kind": "rpm_order", "dated": "2025-12-02", "ordering_provider": object{"npi": "1003000127", "first_name": "O", "last_name": "O"},
	}).wantFields("ordering_provider.npi")
	h.request(authz.Admin, "PATCH", "/patients/"+cleo+"/", object{"referring_provider": object{"npi": "1003000127", "first_name": "O", "last_name": "O"}}).wantFields("referring_provider.npi")
	h.request(authz.Admin, "PATCH", "/patients/"+cleo+"/", object{"referring_provider": outside}).want(200).wantAt(object{"referring_provider.last_name": "Out"})
	h.request(authz.Admin, "GET", "/patients/"+cleo+"/", nil).want(200).wantAt(object{"referring_provider.npi": "1003000126"})
	wantIn(send(cleo, "99457"), "NM1*DN*1*OUT*OLIVE****XX*1003000126~", "NM1*DK*1*OUT*OLIVE****XX*1003000126~")

	medicare := h.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Medicare", "payer_id": "MC", "edi_payer_id": "13282", "claim_filing_code": "MB"}).want(201).at("id")
	second := object{"payer_id": medicare, "member_id": "1EG4-TE5-MK73"}
	dora := h.insured("Dora", 20, object{"secondary": second})
	entry := h.reviewed()[dora+" 99457"]
	if r := h.request(authz.DataMonitor, "GET", "/billing/entries/"+entry+"/preflight/", nil).want(200); !strings.Contains(r.body, `"insurance.secondary.medicare_secondary_type"`) {
		t.Errorf("Medicare second without its reason: %s", r.body)
	}
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+entry+"/void/", object{"reason": "The reason is missing"}).want(200)
	second["medicare_secondary_type"] = "12"
	wantIn(send(h.insured("Eva", 20, object{"secondary": second}), "99457"), "SBR*S*18***12****MB~", "*MI*1EG4TE5MK73~")
}
