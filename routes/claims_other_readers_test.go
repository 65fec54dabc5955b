package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// Every kind of claim that the service sends is valid for three programs of others: a first claim, a replacement and a void, with the referring and the
// ordering provider and without, and one to the second payer, which is Medicare.
func TestClaimsPassOtherReaders(t *testing.T) {
	s := newTwiceInsured(t, 1, "MB")
	s.setPayer(object{"send_ordering_provider": true, "corrected_claims": "replacement"})
	plain := s.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Plain", "payer_id": "PL", "edi_payer_id": "60054", "claim_filing_code": "CI"}).want(201).at("id")
	var patients []string // in the order of frequencies, referred and not
	for range 3 {
		referred := s.insured("Referred", 40, nil)
		s.request(authz.Admin, "PATCH", "/patients/"+referred+"/", object{
			"referring_provider": object{"npi": "1457305872", "first_name": "Ruth", "last_name": "Ray"},
		}).want(200)
		s.request(authz.Provider, "POST", "/patients/"+referred+"/orders/", object{
			"kind": "rpm_order", "dated": "2025-12-02", "ordering_provider": object{"npi": "1003000126", "first_name": "Olive", "last_name": "Out"},
		}).want(201)
		patients = append(patients, referred, s.insured("Plain", 40, object{"payer_id": plain}))
	}
	byCode, entries := s.reviewed(), []string(nil)
	for i, patient := range patients {
		lines := []string{byCode[patient+" 99457"], byCode[patient+" 99458"]}
		s.sendAgain(lines, []string{"", "resubmit", "request-void"}[i/2])
		entries = append(entries, lines...)
	}
	batch, file := s.send(entries...)
	sent := map[string]int{}
	for _, c := range file.Claims {
		sent[c.Frequency]++
	}
	first := s.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch.at("id"), "/file/"), nil).want(200).body
	if ordering, referring := strings.Count(first, "~NM1*DK*1*"), strings.Count(first, "~NM1*DN*1*"); fmt.Sprint(sent) != "map[1:2 7:2 8:2]" || ordering != 6 || referring != 3 {
		t.Errorf("sent %v with %d ordering and %d referring providers", sent, ordering, referring)
	}
	if paid := strings.Count(first, "~AMT*F5*3~"); paid != 4 { // by the patients, toward the claims that go again
		t.Errorf("%d claims state what the patient paid: %s", paid, first)
	}
	s.decide("1", 1000, 2000)
	second := s.billSecond() // read by two of the programs
	s.wantIn(second, "SBR*S*18***12****MB")
	for kind, found := range map[string]payer.ReadResult{
		"pyx12": payer.Pyx12.Read(t, []byte(first)), "linuxforhealth-x12": payer.LinuxForHealth.Read(t, []byte(first)),
		"x12-parser": payer.ReadWithImsweb(t, []byte(first)), "x12-parser, second payer": payer.ReadWithImsweb(t, []byte(second)),
	} {
		if !found.OK || len(found.Errors) > 0 {
			t.Errorf("%s finds %q in %s", kind, found.Errors, first)
		}
	}
}

// sendAgain sends lines, which the payer pays, and makes them go again.
func (s *sentClaim) sendAgain(lines []string, again string) {
	s.t.Helper()
	if again == "" {
		return
	}
	_, file := s.send(lines...)
	s.upload(s.payer.Write835(file, map[string]payer.Decision{file.Claims[0].ControlNumber: payer.Partly(500, 300, 0)})).want(200)
	s.payer.Control++
	s.move(lines[0], "pay", object{"amount": 3, "payment_date": "2026-01-15", "reference": "Desk", "payer": "patient"}).want(200)
	for _, line := range lines {
		s.move(line, again, nil).want(200)
	}
}
