package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// Every kind of claim that the service sends is valid for three programs of others: to the first payer, a replacement, a void, and to the second payer;
// with the referring and the ordering provider and without; also where Medicare is second.
func TestClaimsPassOtherReaders(t *testing.T) {
	for _, withOrdering := range []bool{false, true} {
		t.Run(fmt.Sprintf("ordering provider %v", withOrdering), func(t *testing.T) {
			s := newTwiceInsured(t, 1, "MB")
			s.setPayer(object{"send_ordering_provider": withOrdering, "corrected_claims": "replacement"})
			files := map[string]string{}
			for kind, frequency := range map[string]string{"first": "1", "replacement": "7", "void": "8"} {
				files[kind] = s.fileOf(kind, frequency, withOrdering)
			}
			s.decide("1", 1000, 2000)
			files["Medicare second"] = s.billSecond()
			for kind, file := range files {
				s.wantAccepted(kind, file)
				if has := strings.Contains(file, "~NM1*DK*1*"); has != withOrdering && kind != "Medicare second" {
					t.Errorf("%s: an ordering provider is there: %v", kind, has)
				}
			}
			if !strings.Contains(files["Medicare second"], "SBR*S*18***12****MB~") {
				t.Errorf("no SBR05 in %s", files["Medicare second"])
			}
		})
	}
}

// fileOf sends a claim of a new patient, who may be referred, and returns the file of a frequency.
func (s *sentClaim) fileOf(name, frequency string, isReferred bool) string {
	s.t.Helper()
	id := s.insured(name, 40, nil)
	if isReferred {
		s.request(authz.Admin, "PATCH", "/patients/"+id+"/", object{
			"referring_provider": object{"npi": "1457305872", "first_name": "Ruth", "last_name": "Ray"},
		}).want(200)
	}
	byCode := s.reviewed()
	entries := []string{byCode[id+" 99457"], byCode[id+" 99458"]}
	batch, file := s.send(entries...)
	if frequency != "1" {
		s.upload(s.payer.Write835(file, map[string]payer.Decision{file.Claims[0].ControlNumber: payer.Partly(500, 300, 0)})).want(200)
		s.payer.Control++
		for _, entry := range entries {
			s.move(entry, map[string]string{"7": "resubmit", "8": "request-void"}[frequency], nil).want(200)
		}
		batch, file = s.send(entries...)
	}
	if got := file.Claims[0].Frequency; got != frequency {
		s.t.Fatalf("%s has frequency %s", name, got)
	}
	return s.request(authz.Admin, "GET", fmt.Sprint("/billing/claim-batches/", batch.at("id"), "/file/"), nil).want(200).body
}

// wantAccepted reads a file with pyx12, linuxforhealth-x12 and imsweb's x12-parser.
func (s *sentClaim) wantAccepted(kind, file string) {
	s.t.Helper()
	for name, found := range map[string]payer.ReadResult{
		"pyx12": payer.Pyx12.Read(s.t, []byte(file)), "linuxforhealth-x12": payer.LinuxForHealth.Read(s.t, []byte(file)), "x12-parser": payer.ReadWithImsweb(s.t, []byte(file)),
	} {
		if !found.OK || len(found.Errors) > 0 {
			s.t.Errorf("%s: %s finds %q in %s", kind, name, found.Errors, file)
		}
	}
}
