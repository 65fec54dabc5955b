package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/x12"
)

// newTwiceInsured returns a sent claim of a patient with a second payer, which is the filing code's: MB is Medicare.
func newTwiceInsured(t *testing.T, lines int, filing string) *sentClaim {
	h := newClaimsClinic(t)
	second := h.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Second Co", "payer_id": "S2", "edi_payer_id": "SEC22", "claim_filing_code": filing}).want(201).at("id")
	covered := object{"payer_id": second, "member_id": "S-77"}
	if filing == "MB" {
		covered["medicare_secondary_type"] = "12"
	}
	id := h.insured("Ada", 20*lines, object{"secondary": covered})
	byCode := h.reviewed()
	s := &sentClaim{claimsClinic: h, second: second}
	for _, code := range []string{"99457", "99458"}[:lines] {
		s.entries = append(s.entries, byCode[id+" "+code])
	}
	_, file := h.send(s.entries...)
	s.claim = file.Claims[0]
	return s
}

// billSecond sends the claim of the first entry to the second payer, checks the file with other programs, and continues with that claim.
func (s *sentClaim) billSecond() (raw string) {
	s.t.Helper()
	s.move(s.entries[0], "bill-secondary", nil).want(200).wantAt(object{"secondary.status": "submitted", "secondary.payer_id": s.second})
	batches := s.request(authz.Admin, "GET", "/billing/claim-batches/", nil).want(200).results()
	raw = s.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batches[0]["id"], "/file/"), nil).want(200).body
	for _, reader := range []payer.Reader{payer.Pyx12, payer.LinuxForHealth} {
		if found := reader.Read(s.t, []byte(raw)); !found.OK || len(found.Errors) > 0 {
			s.t.Errorf("a reader finds %q in %s", found.Errors, raw)
		}
	}
	file, err := payer.Read837P([]byte(raw))
	if err != nil {
		s.t.Fatal(err)
	}
	s.claim = file.Claims[0]
	return raw
}

func (s *sentClaim) wantIn(raw string, segments ...string) {
	s.t.Helper()
	for _, segment := range segments {
		if !strings.Contains(raw, segment+"~") {
			s.t.Errorf("no %s in %s", segment, raw)
		}
	}
}

// What the first payer leaves to the patient goes to the second, as a whole claim with the first payer's decision, and the second payer's answer is
// posted to the same entries.
func TestSecondaryClaim(t *testing.T) {
	s := newTwiceInsured(t, 2, "MB")
	first, next := s.claim.Lines[0].Charge, s.claim.Lines[1].Charge
	s.wantEntry(0, object{"secondary": nil})
	s.move(s.entries[0], "bill-secondary", nil).want(400, "invalid_state")
	paid := first - 1000 + next - 500
	s.remit(paid, append(append([]string{s.clp("1", paid), "MOA***MA01"}, s.svc(0, first-1000, "CAS*CO*45*6", "CAS*PR*2*4")...), s.svc(1, next-500, "CAS*CO*45*5")...)...)
	s.wantEntry(0, object{"secondary.status": "due", "secondary.payer_id": s.second, "patient_responsibility": 4.0})
	s.wantEntry(1, object{"secondary": nil})
	tasks := s.tasks().wantAt(object{"secondary_due": 1.0})
	if !strings.Contains(tasks.body, `"entry_id":"`+s.entries[0]+`","task":"secondary_due"`) {
		t.Errorf("the tasks are %s", tasks.body)
	}
	raw := s.billSecond()
	s.wantIn(raw, "SBR*S*18***12****MB", "SBR*P*18*******CI", "AMT*D*"+amountOf(paid), "MOA***MA01", "NM1*PR*2*ACME*****PI*60054", "REF*F8*ICN1",
		"SVD*60054*"+amountOf(first-1000)+"*HC:99457**1", "CAS*CO*45*6", "CAS*PR*2*4", "DTP*573*D8*20260115", "AMT*EAF*4",
		"SVD*60054*"+amountOf(next-500)+"*HC:99458**1", "AMT*EAF*0")
	s.tasks().wantAt(object{"secondary_due": 0.0})
	s.wantEntry(1, object{"secondary.status": "submitted"})
	s.move(s.entries[0], "bill-secondary", nil).want(400, "invalid_state")
	s.entry(s.entries[0]).wantAt(object{"lifecycle_status": "paid", "claim_frequency_code": nil, "payer_control_number": "ICN1"})

	answer := append(append([]string{strings.Replace(s.clp("2", 300), "ICN1", "ICN2", 1)}, s.svc(0, 300, "CAS*OA*23*"+usd(first-400), "CAS*PR*2*1")...), s.svc(1, 0, "CAS*OA*23*"+usd(next))...)
	s.wantReasons(s.remit(300, answer...))
	s.wantEntry(0, object{"secondary.status": "paid", "paid_total": float64(first-700) / 100, "adjusted": 6.0, "patient_responsibility": 1.0, "open": 0.0, "payer_control_number": "ICN1"})
	s.wantEntry(1, object{"secondary.status": "paid", "open": 0.0})
	s.wantBalanced("paid by both")
	s.wantDeposits(2)
}

func amountOf(cents x12.Cents) string {
	return strings.TrimPrefix(strings.TrimSuffix(strings.TrimRight(usd(cents), "0"), "."), "0")
}

// A second claim is due only where the first payer left something to the second; a forwarded claim is submitted already.
func TestWhenSecondaryIsDue(t *testing.T) {
	for name, test := range map[string]struct {
		status   string
		paid     x12.Cents
		segments []string
		want     any
	}{
		"a share":             {"1", 2000, []string{"CAS*CO*45*7.87", "CAS*PR*2*20"}, "due"},
		"nothing left":        {"1", 2000, []string{"CAS*CO*45*27.87"}, nil},
		"forwarded":           {"19", 2000, []string{"CAS*CO*45*7.87", "CAS*PR*2*20"}, "submitted"},
		"forwarded, a remark": {"1", 2000, []string{"CAS*CO*45*7.87", "CAS*PR*2*20", "LQ*HE*N89"}, "submitted"},
		"not covered":         {"4", 0, []string{"CAS*CO*96*47.87"}, "due"},
		"the patient's":       {"4", 0, []string{"CAS*PR*204*47.87"}, "due"},
		"lacks information":   {"4", 0, []string{"CAS*CO*16*47.87"}, nil},
		"capitated":           {"1", 0, []string{"CAS*CO*24*47.87"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTwiceInsured(t, 1, "CI")
			s.t = t
			s.remit(test.paid, append([]string{s.clp(test.status, test.paid)}, s.svc(0, test.paid, test.segments...)...)...)
			if test.want == nil {
				s.wantEntry(0, object{"secondary": nil})
				s.move(s.entries[0], "bill-secondary", nil).want(400, "invalid_state")
				return
			}
			s.wantEntry(0, object{"secondary.status": test.want, "secondary.payer_id": s.second})
			s.billSecond() // also a forwarded claim that did not arrive
		})
	}
}

// The second payer's rejection makes the claim due again; its denial leaves the patient's share; a batch takes several claims.
func TestSecondaryRefused(t *testing.T) {
	s := newTwiceInsured(t, 1, "CI")
	s.decide("1", 2000, 500)
	s.billSecond()
	batch := s.request(authz.Admin, "GET", "/billing/claim-batches/", nil).want(200).results()[0]
	raw := s.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch["id"], "/file/"), nil).want(200).body
	file, _ := payer.Read837P([]byte(raw))
	s.upload(s.payer.Write277CA(file, map[string]payer.Rejection{s.claim.ControlNumber: {Category: "A7", Code: "562"}})).want(200).wantAt(object{"applied": 1.0})
	s.wantEntry(0, object{"lifecycle_status": "paid", "secondary.status": "due", "rejection": nil})
	s.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": s.entries, "sequence": "tertiary"}).wantFields("sequence")
	s.request(authz.DataMonitor, "POST", "/billing/claim-batches/", object{"entry_ids": s.entries, "sequence": "secondary"}).want(201).wantAt(object{"claims": 1.0, "lines": 1.0})
	s.wantEntry(0, object{"secondary.status": "submitted"})
	lines := s.request(authz.Admin, "GET", "/billing/claim-batches/", nil).want(200).results()[0]
	detail := s.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", lines["id"], "/"), nil).want(200)
	s.claim.ControlNumber = detail.at("entries").([]any)[0].(object)["claim_control_number"].(string)
	s.claim.Lines[0].ControlNumber = detail.at("entries").([]any)[0].(object)["line_control_number"].(string)
	denial := append([]string{s.clp("4", 0)}, s.svc(0, 0, "CAS*CO*29*"+usd(s.claim.Charge))...)
	s.wantReasons(s.remit(0, denial...))
	s.wantEntry(0, object{"lifecycle_status": "paid", "secondary.status": "denied", "paid_total": 20.0, "patient_responsibility": 5.0, "open": 0.0, "denial": nil})
	s.wantRoles("POST", "/billing/entries/"+s.entries[0]+"/bill-secondary/", nil, authz.Admin, authz.DataMonitor)
}

// The second payer's answer explains only what the first left: what it states again of the first payer's contract makes no credit, an answer by contract
// alone is no denial, and a denied first claim is paid by it.
func TestSecondaryAnswers(t *testing.T) {
	decided := func(t *testing.T) *sentClaim {
		s := newTwiceInsured(t, 1, "CI")
		s.t = t
		s.decide("1", 2000, 1000) // of 47.87: CO-45 17.87
		return s
	}
	for name, test := range map[string]struct {
		paid     x12.Cents
		segments []string
		want     object
	}{
		"with its own contract":  {1000, []string{"CAS*CO*45*17.87", "CAS*OA*23*20"}, object{"paid_total": 30.0, "adjusted": 17.87, "patient_responsibility": 0.0, "secondary.status": "paid"}},
		"a part":                 {600, []string{"CAS*CO*45*17.87", "CAS*OA*23*20", "CAS*PR*3*4"}, object{"paid_total": 26.0, "adjusted": 17.87, "patient_responsibility": 4.0, "secondary.status": "paid"}},
		"contract alone":         {0, []string{"CAS*CO*45*27.87", "CAS*OA*23*20"}, object{"paid_total": 20.0, "adjusted": 27.87, "patient_responsibility": 0.0, "secondary.status": "paid"}},
		"contract, without 23":   {0, []string{"CAS*CO*45*47.87"}, object{"paid_total": 20.0, "adjusted": 27.87, "patient_responsibility": 0.0, "secondary.status": "paid"}},
		"a deductible":           {0, []string{"CAS*PR*1*10", "CAS*OA*23*37.87"}, object{"paid_total": 20.0, "adjusted": 17.87, "patient_responsibility": 10.0, "secondary.status": "paid"}},
		"not covered":            {0, []string{"CAS*PR*96*10", "CAS*OA*23*37.87"}, object{"paid_total": 20.0, "patient_responsibility": 10.0, "secondary.status": "denied"}},
		"more than what is left": {1200, []string{"CAS*CO*45*15.87", "CAS*OA*23*20"}, object{"paid_total": 32.0, "adjusted": 17.87, "patient_responsibility": 0.0, "open": -2.0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := decided(t)
			s.wantReasons(s.remit(test.paid, append([]string{s.clp("2", test.paid)}, s.svc(0, test.paid, test.segments...)...)...))
			want := object{"lifecycle_status": "paid", "open": 0.0, "denial": nil, "payer_control_number": "ICN1"}
			for k, v := range test.want {
				want[k] = v
			}
			s.wantEntry(0, want)
			s.wantBalanced(name)
		})
	}
	for name, segments := range map[string][]string{"denied for the patient": {"CAS*PR*96*47.87"}, "denied by contract": {"CAS*CO*96*47.87"}} {
		s := newTwiceInsured(t, 1, "CI")
		s.remit(0, append([]string{s.clp("4", 0)}, s.svc(0, 0, segments...)...)...)
		s.wantEntry(0, object{"lifecycle_status": "denied", "secondary.status": "due"})
		s.billSecond()
		s.wantReasons(s.remit(3000, append([]string{s.clp("1", 3000)}, s.svc(0, 3000, "CAS*CO*45*7.87", "CAS*PR*2*10")...)...))
		s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 30.0, "adjusted": 7.87, "patient_responsibility": 10.0, "open": 0.0, "secondary.status": "paid"})
		s.wantBalanced(name)
	}
}

// The second payer's reversal takes back its own decision; what the first payer decided stays, also if that paid nothing.
func TestReversalBySecondPayer(t *testing.T) {
	reverse := func(s *sentClaim, paid x12.Cents, adjustments ...string) {
		s.t.Helper()
		l := s.claim.Lines[0]
		segments := []string{
			fmt.Sprintf("CLP*%s*22*-%s*-%s**12*ICN2*11*1", s.claim.ControlNumber, usd(s.claim.Charge), usd(paid)),
			fmt.Sprintf("SVC*HC:%s*-%s*-%s**1", l.Procedure[1], usd(l.Charge), usd(paid)), "DTM*472*" + l.From,
		}
		s.wantReasons(s.remit(-paid, append(append(segments, adjustments...), "REF*6R*"+l.ControlNumber)...))
	}
	for name, test := range map[string]struct {
		first, firstShare, second x12.Cents
		answer, reversed          []string
		corrected                 x12.Cents
		correction                []string
	}{
		"the first paid": {
			2000, 1000, 1000,
			[]string{"CAS*CO*45*17.87", "CAS*OA*23*20"},
			[]string{"CAS*CO*45*-17.87", "CAS*OA*23*-20"},
			500,
			[]string{"CAS*OA*23*37.87", "CAS*PR*2*5"},
		},
		"the first left all to the deductible": {
			0, 3000, 3000,
			[]string{"CAS*OA*23*17.87"},
			[]string{"CAS*OA*23*-17.87"},
			2500,
			[]string{"CAS*OA*23*17.87", "CAS*PR*2*5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTwiceInsured(t, 1, "CI")
			s.t = t
			s.decide("1", test.first, test.firstShare)
			s.billSecond()
			s.wantReasons(s.remit(test.second, append([]string{s.clp("2", test.second)}, s.svc(0, test.second, test.answer...)...)...))
			s.wantEntry(0, object{"open": 0.0, "adjusted": 17.87})
			reverse(s, test.second, test.reversed...)
			s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": float64(test.first) / 100, "adjusted": 17.87, "patient_responsibility": float64(test.firstShare) / 100, "open": 0.0, "secondary.status": "submitted"})
			s.wantReasons(s.remit(test.corrected, append([]string{s.clp("2", test.corrected)}, s.svc(0, test.corrected, test.correction...)...)...))
			s.wantEntry(0, object{"paid_total": float64(test.first+test.corrected) / 100, "adjusted": 17.87, "patient_responsibility": 5.0, "open": 0.0, "secondary.status": "paid"})
			s.wantBalanced(name)
		})
	}
}

// A claim that the evidence no longer supports does not go to the second payer.
func TestChangedEvidenceKeepsFromSecondPayer(t *testing.T) {
	s := newTwiceInsured(t, 1, "CI")
	s.decide("1", 2000, 1000)
	s.wantEntry(0, object{"secondary.status": "due"})
	patient := s.entry(s.entries[0]).at("patient_id").(string)
	consents := s.request(authz.Admin, "GET", "/patients/"+patient+"/consents/", nil).want(200).results()
	s.request(authz.Admin, "POST", fmt.Sprint("/patients/", patient, "/consents/", consents[0]["id"], "/revoke/"), object{"reason": "never agreed", "effective_at": consents[0]["granted_at"]}).want(200)
	if s.entry(s.entries[0]).at("evidence_changed_at") == nil {
		t.Fatal("the evidence did not change")
	}
	if refused := s.move(s.entries[0], "bill-secondary", nil).want(400); !strings.Contains(refused.body, "evidence_changed") {
		t.Errorf("refused with %s", refused.body)
	}
}

// The second payer's share stays due when only the first payer changes, as in January.
func TestSecondaryAfterChangeOfFirstPayer(t *testing.T) {
	s := newTwiceInsured(t, 1, "CI")
	next := s.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Next Co", "payer_id": "N3", "edi_payer_id": "NEXT3", "claim_filing_code": "CI"}).want(201).at("id")
	s.decide("1", 2000, 1000)
	patient := s.entry(s.entries[0]).text("patient_id")
	change := func(first, second any) {
		t.Helper()
		s.request(authz.Provider, "PATCH", "/patients/"+patient+"/", object{"insurance": object{
			"payer_id": first, "member_id": "N-1", "secondary": object{"payer_id": second, "member_id": "S-77"},
		}}).want(200)
	}
	change(next, s.second)
	s.wantEntry(0, object{"secondary.status": "due", "secondary.payer_id": s.second})
	change(s.second, s.insurer) // the second payer of the claim as sent; the former first payer is none of its own entry
	s.wantEntry(0, object{"secondary.status": "due", "secondary.payer_id": s.second})
}
