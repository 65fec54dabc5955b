package routes_test

import (
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/authz"
)

// A denial states until when the payer takes a corrected claim and an appeal, by the payer's limits or those of its filing code.
func TestDenialDeadlines(t *testing.T) {
	h := newClaimsClinic(t)
	entry, _ := h.decided("Ada", payer.Deny("CO", "50"))
	denied := h.entry(entry)
	day := func(path string, days int) string {
		t.Helper()
		return dayAfter(t, denied.at(path).(string), days)
	}
	denied.wantAt(object{"denial.next_step": "appeal", "denial.refile_by": nil, "denial.appeal_by": nil})
	h.setPayer(object{"filing_limit_days": 90, "appeal_limit_days": 60}).wantAt(object{"filing_limit_days": 90.0, "appeal_limit_days": 60.0})
	h.entry(entry).wantAt(object{"denial.refile_by": day("service_date", 90), "denial.appeal_by": day("denial.date", 60)})
	h.setPayer(object{"filing_limit_days": nil, "appeal_limit_days": nil, "claim_filing_code": "MB"}).wantAt(object{"filing_limit_days": nil})
	h.entry(entry).wantAt(object{"denial.refile_by": day("service_date", 365), "denial.appeal_by": day("denial.date", 125)})
	path := fmt.Sprint("/billing/payers/", h.insurer, "/")
	for _, days := range []any{0, -1, 1826, 1.5, "90"} {
		h.request(authz.Admin, "PATCH", path, object{"filing_limit_days": days, "appeal_limit_days": days}).wantFields("filing_limit_days", "appeal_limit_days")
	}
}

// A claim is found by each of its numbers and by the patient, and by nothing else.
func TestEntrySearch(t *testing.T) {
	h := newClaimsClinic(t)
	entry, first := h.decided("Quillbrandt", payer.Deny("CO", "16"))
	h.decided("Other", payer.Full())
	h.moveEntry(entry, "resubmit", nil).want(200)
	_, again := h.send(entry)
	stored := h.entry(entry)
	id := stored.at("patient_id").(string)
	mrn := h.request(authz.Admin, "GET", "/patients/"+id+"/", nil).want(200).at("mrn").(string)
	h.request(authz.Admin, "POST", "/patients/"+id+"/archive/", object{"reason": "moved", "confirm": true}).want(200)
	find := func(words string) (found []string) {
		t.Helper()
		for _, e := range h.request(authz.DataMonitor, "GET", "/billing/entries/?search="+url.QueryEscape(words), nil).want(200).results() {
			found = append(found, e["id"].(string))
		}
		return found
	}
	for _, words := range []string{
		stored.at("claim_id").(string), first.ControlNumber, again.Claims[0].ControlNumber, first.Number(), mrn, "quillbrandt", "QUILL", " Quillbrandt ",
	} {
		if found := find(words); len(found) != 1 || found[0] != entry {
			t.Errorf("%q finds %v, want %s", words, found, entry)
		}
	}
	for _, words := range []string{",", "Nobody", "%", "CLM-"} {
		if found := find(words); len(found) != 0 {
			t.Errorf("%q finds %v", words, found)
		}
	}
	h.request(authz.DataMonitor, "GET", "/billing/entries/?search="+url.QueryEscape(string(make([]byte, 101))), nil).want(400)
}

func dayAfter(t *testing.T, date string, days int) string {
	t.Helper()
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		t.Fatal(err)
	}
	return day.AddDate(0, 0, days).Format(time.DateOnly)
}

// A preview shows what the import of a file would do, and stores nothing.
func TestResponsePreview(t *testing.T) {
	s := newSentClaim(t, 1)
	claim := append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)
	file := s.remittance("EFT1", 2050, append(claim, "CLP*UNKNOWN1*1*50*50**12*ICN7*11*1", "PLB*1234567893*20261231*L6:INT*49.5")...)
	before := s.entry(s.entries[0]).body
	preview := func(body string) reply {
		t.Helper()
		return s.request(authz.DataMonitor, "POST", "/billing/claim-responses/preview/", body, "Content-Type", "application/edi-x12")
	}
	for range 2 {
		answer := preview(string(file)).want(200).wantAt(object{"type": "835", "applied": 1.0, "unmatched": 2.0, "repeated": false})
		r := answer.at("remittances").([]any)[0].(object)
		line, item := r["lines"].([]any)[0].(object), r["items"].([]any)[0].(object)
		if got := fmt.Sprint(r["trace_number"], r["posted"], r["payment_amount"], line["entry_id"], item["reason"]); got != fmt.Sprint("EFT1", 20, 20.5, s.entries[0], "unknown_claim") {
			t.Errorf("the preview shows %s: %v", got, r)
		}
	}
	if s.entry(s.entries[0]).body != before {
		t.Error("the preview changed the entry")
	}
	for _, list := range []string{"remittances", "claim-responses"} {
		s.request(authz.DataMonitor, "GET", "/billing/"+list+"/", nil).want(200).wantAt(object{"count": 0.0})
	}
	preview("").want(400, "invalid_x12")
	preview("ISA*00").want(400, "invalid_x12")
	s.request(authz.Nurse, "POST", "/billing/claim-responses/preview/", "", "Content-Type", "application/edi-x12").want(403)
	s.upload(file).want(200).wantAt(object{"applied": 1.0, "unmatched": 2.0, "repeated": false})
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0})
	preview(string(file)).want(200).wantAt(object{"repeated": true})
}

// A preview, imports and closes at the same time wait for each other and end.
func TestPreviewBesideImports(t *testing.T) {
	s := newSentClaim(t, 1)
	claim := append([]string{s.clp("1", 2000)}, s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Charge-2000))...)
	var group sync.WaitGroup
	for i := range 6 {
		file := string(s.remittance(fmt.Sprint("EFT", i), 2000, claim...))
		for _, path := range []string{"/billing/claim-responses/", "/billing/claim-responses/preview/"} {
			group.Go(func() {
				if answer := s.request(authz.DataMonitor, "POST", path, file, "Content-Type", "application/edi-x12"); answer.status != 200 {
					t.Errorf("%s answered %d: %s", path, answer.status, answer.body)
				}
			})
		}
	}
	group.Wait()
	s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 20.0})
}

// A claim of which one line is refused is shown as the import would leave it: nothing of it is posted.
func TestPreviewOfRefusedClaim(t *testing.T) {
	s := newSentClaim(t, 2)
	s.move(s.entries[1], "pay", object{"amount": 10, "payment_date": "2026-01-15", "reference": "EFT1"}).want(200)
	segments := append(s.svc(0, 2000, "CAS*CO*45*"+usd(s.claim.Lines[0].Charge-2000)), s.svc(1, 1000, "CAS*CO*45*"+usd(s.claim.Lines[1].Charge-1000))...)
	file := string(s.remittance("EFT1", 3000, append([]string{s.clp("1", 3000)}, segments...)...))
	shown := s.request(authz.DataMonitor, "POST", "/billing/claim-responses/preview/", file, "Content-Type", "application/edi-x12").want(200)
	s.upload([]byte(file)).want(200).wantAt(object{"applied": shown.at("applied"), "unmatched": shown.at("unmatched")})
	stored := s.request(authz.DataMonitor, "GET", "/billing/remittances/", nil).want(200).results()[0]
	preview := shown.at("remittances").([]any)[0].(object)
	for _, name := range []string{"posted", "unposted", "status"} {
		if preview[name] != stored[name] {
			t.Errorf("%s is %v in the preview, %v stored", name, preview[name], stored[name])
		}
	}
}
