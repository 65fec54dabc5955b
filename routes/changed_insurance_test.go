package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/x12"
)

// anotherPayer makes a further payer.
func (cc *claimsClinic) anotherPayer(code string) any {
	cc.t.Helper()
	return cc.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Payer " + code, "payer_id": code, "edi_payer_id": code + "11", "claim_filing_code": "CI"}).want(201).at("id")
}

func (cc *claimsClinic) insure(patient string, insurance any) {
	cc.t.Helper()
	cc.request(authz.Admin, "PATCH", "/patients/"+patient+"/", object{"insurance": insurance}).want(200)
}

// A payer recorded after an entry was made is the entry's, with its rates, until a person has reviewed it.
func TestLatePayer(t *testing.T) {
	h := newClaimsClinic(t)
	h.request(authz.Admin, "POST", "/billing/payer-rates/", object{"payer_id": h.insurer, "cpt_code": "99457", "rate": 61.5, "effective_date": "2025-01-01"}).want(201)
	late, approved, other := h.insured("Late", 20, object{"payer_id": nil, "member_id": nil}), h.insured("Approved", 20, object{"payer_id": nil, "member_id": nil}), h.insured("Other", 20, object{"payer_id": h.anotherPayer("OT")})
	h.request(authz.Admin, "POST", "/billing/run/", object{"job": "time"}).want(200)
	pending, reviewed, kept := h.entryOf(late, "99457"), h.entryOf(approved, "99457"), h.entryOf(other, "99457")
	h.entry(pending).wantAt(object{"payer": "Self-pay", "payer_id": nil})
	h.move(reviewed, "review", nil).want(200)
	for _, id := range []string{late, approved, other} {
		h.insure(id, object{"payer_id": h.insurer, "member_id": "W-9"})
	}
	h.entry(pending).wantAt(object{"payer": "Acme", "payer_id": h.insurer, "amount": 61.5, "charge": 61.5})
	h.entry(reviewed).wantAt(object{"payer": "Self-pay"})
	h.entry(kept).wantAt(object{"payer": "Payer OT"})
	h.move(reviewed, "return", object{"reason": "Insured"}).want(200).wantAt(object{"payer": "Acme", "amount": 61.5})
	h.move(pending, "review", nil).want(200).wantAt(object{"payer": "Acme", "amount": 61.5})
	_, file := h.send(pending)
	if file.Claims[0].Charge != 6150 {
		t.Errorf("the claim's charge is %d", file.Claims[0].Charge)
	}
}

// 99458 goes only to a payer that has the 99457 of its month.
func TestAddOnNeedsPayersPrimary(t *testing.T) {
	h := newClaimsClinic(t)
	patient := h.insured("Moved", 20, nil)
	first := h.reviewed()[patient+" 99457"]
	h.send(first)
	h.insure(patient, object{"payer_id": h.anotherPayer("NEW"), "member_id": "N-1"})
	h.logCall(patient, "2026-01-12T14:00:00Z", 20)
	if skipped := h.request(authz.Admin, "POST", "/billing/run/", object{"job": "time"}).want(200).body; !strings.Contains(skipped, `"cpt_code":"99458","reason":"missing_primary_code"`) {
		t.Errorf("the run answers %s", skipped)
	}
	alone := h.manualEntry(patient, "99458", "2026-01-12", 20)
	h.entry(alone).wantAt(object{"payer": "Payer NEW"})
	h.wantRefusal(alone, "review", nil, "missing_primary_code")
	// An entry to the payer of its 99457 goes there.
	h.move(alone, "void", object{"reason": "Other payer"}).want(200)
	h.insure(patient, object{"payer_id": h.insurer, "member_id": "W-1"})
	again := h.manualEntry(patient, "99458", "2026-01-12", 20)
	h.move(again, "review", nil).want(200)
	h.send(again)

	// One that was reviewed beside a 99457 which then was voided and billed again to another payer stays out of a batch.
	moved := h.insured("Twice", 40, nil)
	byCode := h.reviewed()
	h.insure(moved, object{"payer_id": h.anotherPayer("NE2"), "member_id": "N-2"})
	h.move(byCode[moved+" 99457"], "void", object{"reason": "Other payer"}).want(200)
	by := h.manualEntry(moved, "99457", "2026-01-12", 20)
	h.move(by, "review", nil).want(200)
	h.insure(moved, object{"payer_id": h.insurer, "member_id": "W-2"})
	if refused := h.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": []string{byCode[moved+" 99458"]}}).want(400, "invalid_state").body; !strings.Contains(refused, "missing_primary_code") {
		t.Errorf("the batch answers %s", refused)
	}
}

// A claim to the second payer, and a corrected one, name the insurance with which the claim was sent after the patient has another.
func TestSecondClaimAfterChangedInsurance(t *testing.T) {
	for name, now := range map[string]func(s *sentClaim) any{
		"another first payer":     func(s *sentClaim) any { return object{"payer_id": s.anotherPayer("NEW"), "member_id": "N-1"} },
		"the second is the first": func(s *sentClaim) any { return object{"payer_id": s.second, "member_id": "S-77", "secondary": nil} },
		"another second payer too": func(s *sentClaim) any {
			return object{"payer_id": s.anotherPayer("NEW"), "member_id": "N-1", "secondary": object{"payer_id": s.anotherPayer("NE2"), "member_id": "N-2"}}
		},
		"no insurance": func(*sentClaim) any { return object{"payer_id": nil, "member_id": nil, "secondary": nil} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTwiceInsured(t, 1, "CI")
			charge := s.claim.Charge
			patient := s.entry(s.entries[0]).at("patient_id").(string)
			s.insure(patient, now(s))
			s.remit(charge-1000, append([]string{s.clp("1", charge-1000)}, s.svc(0, charge-1000, "CAS*PR*2*10")...)...)
			s.wantEntry(0, object{"secondary.status": "due", "secondary.payer_id": s.second})
			raw := s.billSecond()
			s.wantIn(raw, "SBR*S*18*******CI", "SBR*P*18*******CI", "NM1*IL*1*ADA*ADA****MI*S-77", "NM1*IL*1*ADA*ADA****MI*W1ADA", "NM1*PR*2*ACME*****PI*60054")
		})
	}
	// A denied claim goes to its payer again.
	s := newTwiceInsured(t, 1, "CI")
	s.insure(s.entry(s.entries[0]).at("patient_id").(string), object{"payer_id": s.anotherPayer("NEW"), "member_id": "N-1"})
	s.remit(0, append([]string{s.clp("4", 0)}, s.svc(0, 0, "CAS*CO*16*"+usd(s.claim.Charge))...)...)
	s.move(s.entries[0], "resubmit", object{"corrections": object{"icd10_codes": []string{"I10"}}}).want(200)
	batch, _ := s.send(s.entries[0])
	raw := s.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch.at("id"), "/file/"), nil).want(200).body
	s.wantIn(raw, "NM1*IL*1*ADA*ADA****MI*W1ADA", "NM1*PR*2*ACME*****PI*60054", "REF*F8*ICN1")
	if _, err := payer.Read837P([]byte(raw)); err != nil {
		t.Error(err)
	}
}

// A denial by hand takes a CARC with or without its group, and stores one form.
func TestDenialCodes(t *testing.T) {
	for code, want := range map[string]string{
		"CO-16": "CO-16", "16": "CO-16", "co16": "CO-16", "PR 204": "PR-204", "oa-b20": "OA-B20", "B7": "CO-B7", "P12": "CO-P12", "PI-A1": "PI-A1", "CO-016": "CO-16", "CR129": "CR-129",
		"XX-16": "", "CO": "", "CO-": "", "999": "", "CO-0": "", "A9": "", "B24": "", "16A": "", "lost": "", "N211": "", "CO-16, 45": "", "C0-16": "", "-16": "",
	} {
		s := newSentClaim(t, 1)
		got := s.move(s.entries[0], "deny", object{"code": code, "description": "By phone"})
		if want == "" {
			got.wantFields("code")
			s.wantEntry(0, object{"lifecycle_status": "submitted"})
			continue
		}
		got.want(200).wantAt(object{"denial.code": want})
	}
	s := newSentClaim(t, 1)
	s.remit(s.claim.Charge-200, append([]string{s.clp("1", s.claim.Charge-200)}, s.svc(0, s.claim.Charge-200, "CAS*PR*1*2")...)...)
	for _, wrong := range []string{"999", "C45", "0", "045", "N1"} {
		s.move(s.entries[0], "adjust", object{"amount": -1, "group": "PR", "carc": wrong, "reason": "Typed"}).wantFields("carc")
	}
}

// Every reason of an explanation is true for the state of the entry: what its next step would refuse, why its payer denied it, or that it is undone.
func TestExplainStates(t *testing.T) {
	h := newClaimsClinic(t)
	want := func(patient, what string, reasons string) {
		t.Helper()
		for _, x := range h.request(authz.Admin, "GET", "/billing/explain/"+patient+"/?month=2026-01", nil).want(200).at("codes").([]any) {
			if code := x.(object); code["cpt_code"] == "99457" && fmt.Sprint(code["reasons"]) != reasons {
				t.Errorf("%s: %v, want %s", what, code["reasons"], reasons)
			}
		}
	}
	patient := h.insured("Ada", 20, nil)
	want(patient, "before the run", "[not_billed_yet]")
	h.request(authz.Admin, "POST", "/billing/run/", object{"job": "time"}).want(200)
	entry := h.entryOf(patient, "99457")
	want(patient, "pending", "[]")
	consents := h.request(authz.Nurse, "GET", "/patients/"+patient+"/consents/", nil).results()
	h.request(authz.Nurse, "PATCH", "/patients/"+patient+"/", object{"icd10_codes": []string{}}).want(200)
	want(patient, "its own diagnoses remain", "[]")
	h.move(entry, "review", nil).want(200)
	want(patient, "reviewed", "[]")
	h.insure(patient, object{"member_id": nil})
	want(patient, "reviewed, without a member id", "[preflight_errors]")
	h.insure(patient, object{"member_id": "W1"})
	_, file := h.send(entry)
	want(patient, "submitted", "[]")
	h.request(authz.Nurse, "POST", fmt.Sprint("/patients/", patient, "/consents/", consents[0]["id"], "/revoke/"), object{"reason": "Told late", "effective_at": "2025-12-20"}).want(200)
	want(patient, "the consent ended before", "[evidence_changed missing_consent]")
	s := &sentClaim{claimsClinic: h, entries: []string{entry}}
	s.claim = file.Claims[0]
	s.remit(0, append([]string{s.clp("4", 0)}, s.svc(0, 0, "CAS*CO*50*"+usd(s.claim.Charge))...)...)
	want(patient, "denied", "[denied_CO-50]")

	undone := h.insured("Bea", 20, nil)
	by := h.reviewed()[undone+" 99457"]
	h.move(by, "submit", nil).want(200)
	h.move(by, "request-void", object{"reason": "Wrong patient"}).want(200)
	want(undone, "to be voided", "[void_requested]")
	h.move(by, "void", object{"reason": "Confirmed"}).want(200)
	want(undone, "voided", "[voided_before]")
}

// What a user wrote off of the patient's share gives way to money that arrives for it after all, and stands again when that goes back.
func TestWriteOffYieldsToMoney(t *testing.T) {
	for name, test := range map[string]struct {
		writeOff, second, patient, byCheck, adjusted, share float64
	}{
		"second payer pays a part":   {writeOff: 10, second: 8, adjusted: 2},
		"second payer pays all":      {writeOff: 10, second: 10},
		"a part was written off":     {writeOff: 4, second: 8, adjusted: 2},
		"less than what was not":     {writeOff: 4, second: 5, adjusted: 4, share: 1},
		"the second payer by check":  {writeOff: 10, byCheck: 8, adjusted: 2},
		"the patient pays after all": {writeOff: 10, patient: 3, adjusted: 7},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTwiceInsured(t, 1, "CI")
			charge := s.claim.Charge
			left := float64(charge-1000) / 100
			s.remit(charge-1000, append([]string{s.clp("1", charge-1000)}, s.svc(0, charge-1000, "CAS*PR*2*10")...)...)
			s.billSecond()
			s.move(s.entries[0], "adjust", object{"amount": -test.writeOff, "group": "PR", "carc": "2", "reason": "Hardship"}).want(200)
			s.move(s.entries[0], "adjust", object{"amount": test.writeOff, "group": "OA", "reason": "Hardship"}).want(200)
			before := object{"adjusted": test.writeOff, "patient_responsibility": 10 - test.writeOff, "open": 0.0, "paid_total": left}
			s.wantEntry(0, before)
			switch {
			case test.second > 0:
				s.answerSecond(x12.Cents(test.second*100), 1000-x12.Cents(test.second*100))
			case test.byCheck > 0:
				s.move(s.entries[0], "pay", object{"amount": test.byCheck, "payment_date": "2026-01-15", "reference": "CK 9", "payer": "secondary"}).want(200)
			default:
				s.move(s.entries[0], "pay", object{"amount": test.patient, "payment_date": "2026-01-15", "reference": "CASH", "payer": "patient"}).want(200)
			}
			s.wantEntry(0, object{"adjusted": test.adjusted, "patient_responsibility": test.share, "open": 0.0, "paid_total": left + test.second + test.byCheck + test.patient})
			if test.second > 0 {
				s.wantReasons(s.remit(-x12.Cents(test.second*100), s.backed(x12.Cents(test.second*100), "CAS*OA*23*-"+usd(charge-1000), "CAS*PR*2*"+usd(x12.Cents(test.second*100)-1000))...))
				s.wantEntry(0, before)
			}
		})
	}
}
